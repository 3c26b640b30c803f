package device

// The quantities of Readings, one a line: the name that the receiver's own
// metrics have for it, the key that recordings have for it, and the range in which it
// can be true. Counters restart when the driver is loaded.
var (
	// GeneralEngine is the activity of kernels on the SMs.
	GeneralEngine = engine("general")
	EncoderEngine = engine("encoder")
	DecoderEngine = engine("decoder")

	// The values of GPU performance monitoring (GPM) are means of the hardware's use
	// since the last reading.
	SMUtilization   = gauge("pipes.sm_utilization", "sm_utilization", ratio)
	SMOccupancy     = gauge("pipes.sm_occupancy", "sm_occupancy", ratio)
	DRAMUtilization = gauge("pipes.dram_utilization", "dram_utilization", ratio)
	PipeUtilization = set(gauge, "pipes.pipe", "pipe", ratio, "tensor", "fp16", "fp32", "fp64", "integer")

	MemoryTotal    = gauge("memory.total", "total_bytes", memoryTotal)
	MemoryUsed     = gauge("memory.used", "used_bytes", memoryBytes)
	MemoryReserved = gauge("memory.reserved", "reserved_bytes", memoryBytes)
	BAR1Used       = gauge("memory.bar1_used", "bar1_used_bytes", memoryBytes)
	// MemoryControllerUtilization is the fraction of the driver's last sample period
	// in which memory was read or written.
	MemoryControllerUtilization = gauge("memory.controller_utilization", "controller_utilization", ratio)

	PowerDraw          = gauge("power.draw", "draw_watts", watts)
	PowerPeak          = gauge("power.peak", "peak_watts", watts)
	PowerInstantGPU    = gauge("power.instant_gpu", "instant_gpu_watts", watts)
	PowerInstantModule = gauge("power.instant_module", "instant_module_watts", watts)
	Energy             = counter("power.energy", "energy_joules", joules)
	// PowerLimit is the limit in force.
	PowerLimit = gauge("power.limit", "limit_watts.enforced", watts)

	GPUTemperature    = gauge("thermal.gpu", "gpu_celsius", celsius)
	MemoryTemperature = gauge("thermal.memory", "memory_celsius", celsius)
	// SlowdownTemperature and ShutdownTemperature are those at which the hardware
	// slows down and switches itself off.
	SlowdownTemperature = gauge("thermal.slowdown", "slowdown_celsius", celsius)
	ShutdownTemperature = gauge("thermal.shutdown", "shutdown_celsius", celsius)
	// FanSpeeds are fractions of the fans' full speed in NVML's order. The driver can
	// set a fan above 1.
	FanSpeeds = list("thermal.fan_speed_ratio", "fan_speed_ratios", fanRatio, 16)

	// PerformanceState is 0, the fastest, to 15.
	PerformanceState = gauge("clocks.performance_state", "performance_state", pstates)
	ClockFrequencies = set(gauge, "clocks.hertz", "hertz", hertz, "graphics", "sm", "memory", "video")
	ClockLimits      = set(gauge, "clocks.limit_hertz", "limit_hertz", hertz, ClockFrequencies.Names...)
	// ThrottleReasons are the reasons for lower clocks: 1 for each that lowers them
	// now, and 0 for the others. An idle GPU's low clock is none of them.
	ThrottleReasons = set(gauge, "clocks.throttle", "throttle", flag,
		"sw_power_cap", "sw_thermal_slowdown", "hw_slowdown", "hw_thermal_slowdown",
		"hw_power_brake_slowdown", "sync_boost", "applications_clocks", "display_clocks")
	ThrottleTimes = set(counter, "clocks.throttle_seconds", "throttle_seconds", seconds, ThrottleReasons.Names...)

	// PCIeReceived and PCIeTransmitted are bytes since the first reading, and the
	// rates those of a short time.
	PCIeReceived      = counter("pcie.received", "received_bytes", trafficBytes)
	PCIeTransmitted   = counter("pcie.transmitted", "transmitted_bytes", trafficBytes)
	PCIeReceiveRate   = gauge("pcie.receive_rate", "receive_bytes_per_second", pcieRate)
	PCIeTransmitRate  = gauge("pcie.transmit_rate", "transmit_bytes_per_second", pcieRate)
	PCIeReplays       = counter("pcie.replays", "replays", events)
	PCIeGeneration    = gauge("pcie.generation", "generation", small)
	PCIeMaxGeneration = gauge("pcie.max_generation", "max_generation", small)
	PCIeWidth         = gauge("pcie.width", "width", small)
	PCIeMaxWidth      = gauge("pcie.max_width", "max_width", small)

	// NVLinkReceived and NVLinkTransmitted are bytes of data over all links.
	NVLinkReceived      = counter("nvlink.received", "received_bytes", trafficBytes)
	NVLinkTransmitted   = counter("nvlink.transmitted", "transmitted_bytes", trafficBytes)
	NVLinkActiveLinks   = gauge("nvlink.active_links", "active_links", small)
	NVLinkInactiveLinks = gauge("nvlink.inactive_links", "inactive_links", small)
	NVLinkErrors        = set(counter, "nvlink.errors", "errors", events, "crc_flit", "crc_data", "replay", "recovery", "ecc")

	ECCCorrected   = counter("ecc.corrected", "corrected", events)
	ECCUncorrected = counter("ecc.uncorrected", "uncorrected", events)
	// LifetimeCorrected and LifetimeUncorrected are errors of the GPU's life by
	// location in it.
	LifetimeCorrected = set(counter, "ecc.lifetime_corrected", "lifetime_corrected", events,
		"device_memory", "l1_cache", "l2_cache", "register_file", "texture_memory", "texture_shm", "cbu", "sram")
	LifetimeUncorrected = set(counter, "ecc.lifetime_uncorrected", "lifetime_uncorrected", events, LifetimeCorrected.Names...)

	RemappedCorrectable   = counter("repair.remapped_rows_correctable", "remapped_rows_correctable", events)
	RemappedUncorrectable = counter("repair.remapped_rows_uncorrectable", "remapped_rows_uncorrectable", events)
	// RemapPending means that the next reset remaps a row, and RemapFailed that
	// there was no spare row.
	RemapPending = state("repair.remap_pending", "remap_pending")
	RemapFailed  = state("repair.remap_failed", "remap_failed")
	// RetiredSingleBit and RetiredDoubleBit are pages of GPUs before Ampere.
	RetiredSingleBit = counter("repair.retired_pages_multiple_single_bit", "retired_pages_multiple_single_bit", events)
	RetiredDoubleBit = counter("repair.retired_pages_double_bit", "retired_pages_double_bit", events)
	// RecoveryAction is the action that the driver asks for to make the GPU work
	// again, by NVML's number.
	RecoveryAction = gauge("recovery_action", "recovery_action", small)
)

// Engines are the engines of a GPU, in the order of ProcessTasks.
var Engines = []*Engine{GeneralEngine, EncoderEngine, DecoderEngine}

// What a source can be asked for beside Readings.
var (
	ProcessList        = other("process.list")
	ProcessUtilization = other("process.utilization")
	Serial             = other("identity.serial")
	VBIOS              = other("identity.vbios")
	Architecture       = other("identity.architecture")
	NUMANode           = other("identity.numa_node")
	CUDAVersion        = other("driver.cuda_version")
)
