// Package cluster installs the Helm chart on a cluster of one node, as docs/install.md
// says, and looks at what runs: agents, readers of GPUs, gateways, the page, pods that train,
// that only print, that fail or that hold a GPU; upgrades, a node that is drained, a roll-back,
// a namespace that permits little, and what an uninstallation leaves. The parts of Kubernetes,
// containerd and the images are real. The driver of the GPUs is the receiver's fake library, which a runtime
// class mounts as NVIDIA's runtime mounts the real one. `make e2e-cluster` builds everything first;
// it needs root, and namespaces and control groups of its own.
package cluster
