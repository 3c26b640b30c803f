// Package podresources asks the kubelet of this host which container has which
// GPU, through the Unix socket of its pod-resources API. It asks in the
// background, so that a kubelet that is slow, or gone, delays nobody.
package podresources
