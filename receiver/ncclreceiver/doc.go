// Package ncclreceiver asks the RAS service of NCCL for the communicators of the
// training jobs on its host, and emits which of their ranks are missing, do not
// respond or are behind. It also reports Flight Recorder dumps of PyTorch.
package ncclreceiver

//go:generate mdatagen metadata.yaml
