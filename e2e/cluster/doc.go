// Package cluster installs the Helm chart on a cluster of one node, as docs/install.md
// says, and looks at what runs: agents, readers of GPUs, gateways, the page, pods that train,
// that only print, that fail or that hold a GPU; connections that network policies admit or
// refuse; upgrades, a node that is drained, a roll-back, a namespace that permits little, and
// what an uninstallation leaves. The parts of Kubernetes, containerd, the images and
// kube-router, which enforces the policies, are real. The driver of the GPUs is the receiver's
// fake library, which a runtime class mounts as NVIDIA's runtime mounts the real one; NVIDIA's
// device plugin, and its driver of dynamic resource allocation, are stand-ins too.
// `make e2e-cluster` builds everything first; it needs root, and namespaces and control groups
// of its own.
package cluster
