// Package kernellog reads the kernel's log, /dev/kmsg, and what the NVIDIA drivers
// write there about errors: of GPUs (XID), of NVSwitches (SXid), and GPUs that fell
// off the bus without a code.
package kernellog
