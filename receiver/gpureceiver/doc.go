// Package gpureceiver reads the NVIDIA GPUs of a host through the NVIDIA
// Management Library (NVML) and its AMD GPUs from the kernel's files, or plays a
// recording of them, and emits metrics about the GPUs and about the workloads that
// use them.
package gpureceiver

//go:generate mdatagen metadata.yaml
//go:generate go test ./internal/seriespage -run Generated -update
//go:generate go test ./internal/nvmlsource -run TestStatesAreGenerated -update
//go:generate go test ./internal/xid -run TestTablesAreGenerated -update
