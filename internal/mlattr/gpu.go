package mlattr

// Names of metrics that the gpu receiver writes and that other components read.
// The receiver's metadata.yaml is held against them.
const (
	// GPUMemoryLimit and GPUMemoryUsage are the GPU's memory and what of it is
	// used, in bytes.
	GPUMemoryLimit = "hw.gpu.memory.limit"
	GPUMemoryUsage = "hw.gpu.memory.usage"
	// GPUMemoryReserved is the memory that the driver keeps, in bytes.
	GPUMemoryReserved = "nvidia.gpu.memory.reserved"
	// GPUPower is the power of the GPU and its board, in watts.
	GPUPower = "hw.power"
	// GPUPowerLimit is the power that the GPU may take, in watts, by
	// GPUPowerLimitType.
	GPUPowerLimit = "nvidia.gpu.power.limit"
	// GPUUtilization is the fraction of time in which the GPU worked, by
	// GPUTask.
	GPUUtilization = "hw.gpu.utilization"
	// GPUSMUtilization is the fraction of the SMs that worked.
	GPUSMUtilization = "nvidia.gpu.sm.utilization"
	// GPUBusyTime is the time in which the GPU worked, in seconds, by GPUTask.
	GPUBusyTime = "nvidia.gpu.busy.time"
	// GPUStatus is 1 for the current HardwareState.
	GPUStatus = "hw.status"
	// GPUThrottleActive is 1 for each GPUThrottleReason that holds the clocks
	// down.
	GPUThrottleActive = "nvidia.gpu.throttle.active"
	// GPUWorkloadPrefix and GPUProcessPrefix begin the metrics of a GPU's
	// workloads and of their processes.
	GPUWorkloadPrefix = "nvidia.gpu.workload."
	GPUProcessPrefix  = "nvidia.gpu.process."
	// GPUWorkloadMemory and GPUWorkloadUtilization are what a workload has of a
	// GPU: bytes of memory, and a fraction of time.
	GPUWorkloadMemory      = GPUWorkloadPrefix + "memory.usage"
	GPUWorkloadUtilization = GPUWorkloadPrefix + "utilization"
	// GPUProcessMemory is the memory that one process has, in bytes, by ProcessID.
	GPUProcessMemory = GPUProcessPrefix + "memory.usage"
	// GPURecoveryAction is what the driver asks for, by NVML's nvmlDeviceGpuRecoveryAction_t:
	// a RecoveryReset, for example. It is also an attribute of records about failed GPUs.
	GPURecoveryAction = "nvidia.gpu.recovery.action"
)

// Values of GPURecoveryAction. 0 is none.
const (
	RecoveryReset = 1 + iota
	RecoveryReboot
	RecoveryDrainPeers
	RecoveryDrainAndReset
	RecoveryIMEX
)

// GPUXIDEvent is the name of the gpu receiver's log records of driver errors.
const GPUXIDEvent = "nvidia.gpu.xid"

// Names of attributes of these metrics and events. HardwareID is another.
const (
	// HardwareName is the name of the model of a device.
	HardwareName = "hw.name"
	// HardwareParent is the HardwareID of the GPU that a MIG device is part of.
	HardwareParent = "hw.parent"
	// HardwareState is the state on GPUStatus.
	HardwareState = "hw.state"
	// HardwareType is the type of a device, HardwareTypeGPU for a GPU.
	HardwareType = "hw.type"
	// DriverVersion is the version of the GPU driver of a host.
	DriverVersion = "hw.driver_version"
	// GPUPowerLimitType is the type on GPUPowerLimit, GPUPowerLimitEnforced for the
	// one that holds now.
	GPUPowerLimitType = "nvidia.gpu.power.limit.type"
	// GPUTask is the task on GPUUtilization, GPUTaskGeneral for all of it.
	GPUTask = "hw.gpu.task"
	// ProcessID is the process id on the host.
	ProcessID = "process.pid"
	// NVIDIAIndex is the GPU's index as the driver counts; GPUIndex is the
	// client's.
	NVIDIAIndex = "nvidia.gpu.index"
	// GPUSource says where the numbers come from, GPUSourceReplay for a
	// recording.
	GPUSource = "nvidia.gpu.source"
	// GPUThrottleReason is the reason on GPUThrottleActive.
	GPUThrottleReason = "nvidia.gpu.throttle.reason"
	// GPUXIDCode is the number of a driver error, on GPUXIDEvent.
	GPUXIDCode = "nvidia.gpu.xid.code"
)

// Values of these attributes.
const (
	HardwareTypeGPU       = "gpu"
	HardwareStateFailed   = "failed"
	GPUTaskGeneral        = "general"
	GPUPowerLimitEnforced = "enforced"
	GPUSourceReplay       = "replay"
)
