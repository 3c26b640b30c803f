// Package podresources reads the GPUs of containers from this host's kubelet,
// through the Unix socket of its pod-resources API. It does so in the background,
// so that a slow or missing kubelet delays no reading.
package podresources
