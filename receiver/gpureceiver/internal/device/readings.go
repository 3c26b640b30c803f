package device

// The quantities of Readings, one a line: the name that the receiver's own
// metrics have for it, the range in which it can be true, whether it is a
// counter, and its field, which has the key that recordings use.
var (
	GeneralEngine = engine("general", func(r *Readings) *Activity { return &r.Activity.General })
	EncoderEngine = engine("encoder", func(r *Readings) *Activity { return &r.Activity.Encoder })
	DecoderEngine = engine("decoder", func(r *Readings) *Activity { return &r.Activity.Decoder })
	JPEGEngine    = engine("jpeg", func(r *Readings) *Activity { return &r.Activity.JPEG })
	OFAEngine     = engine("ofa", func(r *Readings) *Activity { return &r.Activity.OFA })

	SMUtilization   = gauge("pipes.sm_utilization", ratio, func(r *Readings) *Number { return &r.Pipes.SMUtilization })
	SMOccupancy     = gauge("pipes.sm_occupancy", ratio, func(r *Readings) *Number { return &r.Pipes.SMOccupancy })
	DRAMUtilization = gauge("pipes.dram_utilization", ratio, func(r *Readings) *Number { return &r.Pipes.DRAMUtilization })
	PipeUtilization = gauges("pipes.pipe", ratio, func(r *Readings) *Numbers { return &r.Pipes.Pipe },
		"tensor", "fp16", "fp32", "fp64", "integer")

	MemoryTotal                 = gauge("memory.total", memoryTotal, func(r *Readings) *Number { return &r.Memory.Total })
	MemoryUsed                  = gauge("memory.used", memoryBytes, func(r *Readings) *Number { return &r.Memory.Used })
	MemoryReserved              = gauge("memory.reserved", memoryBytes, func(r *Readings) *Number { return &r.Memory.Reserved })
	BAR1Used                    = gauge("memory.bar1_used", memoryBytes, func(r *Readings) *Number { return &r.Memory.BAR1Used })
	MemoryControllerUtilization = gauge("memory.controller_utilization", ratio, func(r *Readings) *Number { return &r.Memory.ControllerUtilization })

	PowerDraw          = gauge("power.draw", watts, func(r *Readings) *Number { return &r.Power.Draw })
	PowerPeak          = gauge("power.peak", watts, func(r *Readings) *Number { return &r.Power.Peak })
	PowerInstantGPU    = gauge("power.instant_gpu", watts, func(r *Readings) *Number { return &r.Power.InstantGPU })
	PowerInstantModule = gauge("power.instant_module", watts, func(r *Readings) *Number { return &r.Power.InstantModule })
	Energy             = counter("power.energy", joules, func(r *Readings) *Number { return &r.Power.Energy })
	// PowerLimits are the limit in force, the requested one, and the board's
	// default and range.
	PowerLimits = gauges("power.limit", watts, func(r *Readings) *Numbers { return &r.Power.Limits },
		"enforced", "requested", "default", "min", "max")

	GPUTemperature      = gauge("thermal.gpu", celsius, func(r *Readings) *Number { return &r.Thermal.GPU })
	MemoryTemperature   = gauge("thermal.memory", celsius, func(r *Readings) *Number { return &r.Thermal.Memory })
	SlowdownTemperature = gauge("thermal.slowdown", celsius, func(r *Readings) *Number { return &r.Thermal.Slowdown })
	ShutdownTemperature = gauge("thermal.shutdown", celsius, func(r *Readings) *Number { return &r.Thermal.Shutdown })
	FanSpeeds           = other("thermal.fan_speed_ratio")

	PerformanceState = gauge("clocks.performance_state", pstates, func(r *Readings) *Number { return &r.Clocks.PerformanceState })
	ClockFrequencies = gauges("clocks.hertz", hertz, func(r *Readings) *Numbers { return &r.Clocks.Frequencies },
		"graphics", "sm", "memory", "video")
	ClockLimits = gauges("clocks.limit_hertz", hertz, func(r *Readings) *Numbers { return &r.Clocks.Limits },
		ClockFrequencies.Names...)
	// ThrottleReasons are the reasons for lower clocks. An idle GPU's low clock is
	// none of them.
	ThrottleReasons = gauges("clocks.throttle", flag, func(r *Readings) *Numbers { return &r.Clocks.Throttle },
		"sw_power_cap", "sw_thermal_slowdown", "hw_slowdown", "hw_thermal_slowdown",
		"hw_power_brake_slowdown", "sync_boost", "applications_clocks", "display_clocks")
	ThrottleTimes = counters("clocks.throttle_seconds", seconds, func(r *Readings) *Numbers { return &r.Clocks.ThrottleSeconds },
		ThrottleReasons.Names...)

	PCIeReceived      = counter("pcie.received", trafficBytes, func(r *Readings) *Number { return &r.PCIe.Received })
	PCIeTransmitted   = counter("pcie.transmitted", trafficBytes, func(r *Readings) *Number { return &r.PCIe.Transmitted })
	PCIeReceiveRate   = gauge("pcie.receive_rate", pcieRate, func(r *Readings) *Number { return &r.PCIe.ReceiveRate })
	PCIeTransmitRate  = gauge("pcie.transmit_rate", pcieRate, func(r *Readings) *Number { return &r.PCIe.TransmitRate })
	PCIeReplays       = counter("pcie.replays", events, func(r *Readings) *Number { return &r.PCIe.Replays })
	PCIeGeneration    = gauge("pcie.generation", small, func(r *Readings) *Number { return &r.PCIe.Generation })
	PCIeMaxGeneration = gauge("pcie.max_generation", small, func(r *Readings) *Number { return &r.PCIe.MaxGeneration })
	PCIeWidth         = gauge("pcie.width", small, func(r *Readings) *Number { return &r.PCIe.Width })
	PCIeMaxWidth      = gauge("pcie.max_width", small, func(r *Readings) *Number { return &r.PCIe.MaxWidth })

	NVLinkReceived      = counter("nvlink.received", trafficBytes, func(r *Readings) *Number { return &r.NVLink.Received })
	NVLinkTransmitted   = counter("nvlink.transmitted", trafficBytes, func(r *Readings) *Number { return &r.NVLink.Transmitted })
	NVLinkActiveLinks   = gauge("nvlink.active_links", small, func(r *Readings) *Number { return &r.NVLink.ActiveLinks })
	NVLinkInactiveLinks = gauge("nvlink.inactive_links", small, func(r *Readings) *Number { return &r.NVLink.InactiveLinks })
	NVLinkErrors        = counters("nvlink.errors", events, func(r *Readings) *Numbers { return &r.NVLink.Errors },
		"crc_flit", "crc_data", "replay", "recovery", "ecc")

	ECCCorrected   = counter("ecc.corrected", events, func(r *Readings) *Number { return &r.ECC.Corrected })
	ECCUncorrected = counter("ecc.uncorrected", events, func(r *Readings) *Number { return &r.ECC.Uncorrected })
	// LifetimeCorrected and LifetimeUncorrected are by location in the GPU.
	LifetimeCorrected = counters("ecc.lifetime_corrected", events, func(r *Readings) *Numbers { return &r.ECC.LifetimeCorrected },
		"device_memory", "l1_cache", "l2_cache", "register_file", "texture_memory", "texture_shm", "cbu", "sram")
	LifetimeUncorrected = counters("ecc.lifetime_uncorrected", events, func(r *Readings) *Numbers { return &r.ECC.LifetimeUncorrected },
		LifetimeCorrected.Names...)

	RemappedCorrectable   = counter("repair.remapped_rows_correctable", events, func(r *Readings) *Number { return &r.Repair.RemappedCorrectable })
	RemappedUncorrectable = counter("repair.remapped_rows_uncorrectable", events, func(r *Readings) *Number { return &r.Repair.RemappedUncorrectable })
	RemapPending          = state("repair.remap_pending", func(r *Readings) *Flag { return &r.Repair.RemapPending })
	RemapFailed           = state("repair.remap_failed", func(r *Readings) *Flag { return &r.Repair.RemapFailed })
	RetiredSingleBit      = counter("repair.retired_pages_multiple_single_bit", events, func(r *Readings) *Number { return &r.Repair.RetiredSingleBit })
	RetiredDoubleBit      = counter("repair.retired_pages_double_bit", events, func(r *Readings) *Number { return &r.Repair.RetiredDoubleBit })
	RecoveryAction        = gauge("recovery_action", small, func(r *Readings) *Number { return &r.RecoveryAction })
)

// Engines are the engines of a GPU, in the order of ProcessTasks.
var Engines = []*Engine{GeneralEngine, EncoderEngine, DecoderEngine, JPEGEngine, OFAEngine}

// What a source can be asked for beside Readings.
var (
	ProcessList        = &Quantity{name: "process.list"}
	ProcessUtilization = &Quantity{name: "process.utilization"}
	Serial             = &Quantity{name: "identity.serial"}
	VBIOS              = &Quantity{name: "identity.vbios"}
	Architecture       = &Quantity{name: "identity.architecture"}
	NUMANode           = &Quantity{name: "identity.numa_node"}
	CUDAVersion        = &Quantity{name: "driver.cuda_version"}
)

// Readings are the values of a GPU or MIG device at one time. The YAML keys are
// those of a recording.
type Readings struct {
	Activity Activities `yaml:"activity,omitempty"`
	Pipes    Pipes      `yaml:"pipes,omitempty"`
	Memory   Memory     `yaml:"memory,omitempty"`
	Power    Power      `yaml:"power,omitempty"`
	Thermal  Thermal    `yaml:"thermal,omitempty"`
	Clocks   Clocks     `yaml:"clocks,omitempty"`
	PCIe     PCIe       `yaml:"pcie,omitempty"`
	NVLink   NVLink     `yaml:"nvlink,omitempty"`
	ECC      ECC        `yaml:"ecc,omitempty"`
	Repair   Repair     `yaml:"repair,omitempty"`
	// RecoveryAction is the action that the driver asks for to make the GPU work
	// again, one of the Recovery constants.
	RecoveryAction Number `yaml:"recovery_action,omitempty"`
}

// Activities are the activities of the GPU's engines.
type Activities struct {
	// General is the activity of kernels on the SMs.
	General Activity `yaml:"general,omitempty"`
	Encoder Activity `yaml:"encoder,omitempty"`
	Decoder Activity `yaml:"decoder,omitempty"`
	JPEG    Activity `yaml:"jpeg,omitempty"`
	OFA     Activity `yaml:"ofa,omitempty"`
}

// Activity is how busy one engine was.
type Activity struct {
	// Utilization is the fraction of the time since the last reading in which
	// the engine was busy, 0 to 1.
	Utilization Number `yaml:"utilization,omitempty"`
	// Peak is the highest of the driver's samples since the last reading, 0
	// to 1.
	Peak Number `yaml:"peak,omitempty"`
	// BusySeconds is the busy time since the first reading, in seconds.
	BusySeconds Number `yaml:"busy_seconds,omitempty"`
}

// Pipes are the values of GPU performance monitoring (GPM): means of the
// hardware's use since the last reading, 0 to 1.
type Pipes struct {
	SMUtilization   Number `yaml:"sm_utilization,omitempty"`
	SMOccupancy     Number `yaml:"sm_occupancy,omitempty"`
	DRAMUtilization Number `yaml:"dram_utilization,omitempty"`
	// Pipe is the utilization by the names of PipeUtilization.
	Pipe Numbers `yaml:"pipe,omitempty"`
}

// Memory is in bytes.
type Memory struct {
	Total    Number `yaml:"total_bytes,omitempty"`
	Used     Number `yaml:"used_bytes,omitempty"`
	Reserved Number `yaml:"reserved_bytes,omitempty"`
	BAR1Used Number `yaml:"bar1_used_bytes,omitempty"`
	// ControllerUtilization is the fraction of the driver's last sample period
	// in which memory was read or written, 0 to 1.
	ControllerUtilization Number `yaml:"controller_utilization,omitempty"`
}

// Power is in watts.
type Power struct {
	Draw          Number `yaml:"draw_watts,omitempty"`
	Peak          Number `yaml:"peak_watts,omitempty"`
	InstantGPU    Number `yaml:"instant_gpu_watts,omitempty"`
	InstantModule Number `yaml:"instant_module_watts,omitempty"`
	// Limits are by the names of PowerLimits.
	Limits Numbers `yaml:"limit_watts,omitempty"`
	// Energy is in joules since the driver was loaded.
	Energy Number `yaml:"energy_joules,omitempty"`
}

// Thermal is in degrees Celsius.
type Thermal struct {
	GPU    Number `yaml:"gpu_celsius,omitempty"`
	Memory Number `yaml:"memory_celsius,omitempty"`
	// Slowdown and Shutdown are the temperatures at which the hardware slows
	// down and switches itself off.
	Slowdown Number `yaml:"slowdown_celsius,omitempty"`
	Shutdown Number `yaml:"shutdown_celsius,omitempty"`
	// Fans are fractions of the fans' full speed in NVML's order. The driver can
	// set a fan above 1.
	Fans Fans `yaml:"fan_speed_ratios,omitempty"`
}

// Clocks has frequencies and the reasons for lower ones.
type Clocks struct {
	// Frequencies and Limits are in hertz by the names of Clocks and MaxClocks.
	Frequencies Numbers `yaml:"hertz,omitempty"`
	Limits      Numbers `yaml:"limit_hertz,omitempty"`
	// Throttle is 1 for each of ThrottleReasons that lowers the clocks now, and
	// 0 for the others.
	Throttle Numbers `yaml:"throttle,omitempty"`
	// ThrottleSeconds is the time for which each reason has lowered them since
	// the driver was loaded, in seconds.
	ThrottleSeconds Numbers `yaml:"throttle_seconds,omitempty"`
	// PerformanceState is 0, the fastest, to 15.
	PerformanceState Number `yaml:"performance_state,omitempty"`
}

// PCIe has the values of the GPU's link to the host.
type PCIe struct {
	// Received and Transmitted are bytes since the first reading.
	Received    Number `yaml:"received_bytes,omitempty"`
	Transmitted Number `yaml:"transmitted_bytes,omitempty"`
	// ReceiveRate and TransmitRate are those of a short time, in bytes per
	// second.
	ReceiveRate  Number `yaml:"receive_bytes_per_second,omitempty"`
	TransmitRate Number `yaml:"transmit_bytes_per_second,omitempty"`
	// Replays are retransmissions since the driver was loaded.
	Replays       Number `yaml:"replays,omitempty"`
	Generation    Number `yaml:"generation,omitempty"`
	MaxGeneration Number `yaml:"max_generation,omitempty"`
	// Width and MaxWidth are numbers of lanes.
	Width    Number `yaml:"width,omitempty"`
	MaxWidth Number `yaml:"max_width,omitempty"`
}

// NVLink has the values of the GPU's links to other GPUs and switches.
type NVLink struct {
	// Received and Transmitted are bytes of data over all links since the
	// driver was loaded.
	Received    Number `yaml:"received_bytes,omitempty"`
	Transmitted Number `yaml:"transmitted_bytes,omitempty"`
	// Errors are counts by the names of NVLinkErrors.
	Errors Numbers `yaml:"errors,omitempty"`
	// ActiveLinks and InactiveLinks are numbers of links.
	ActiveLinks   Number `yaml:"active_links,omitempty"`
	InactiveLinks Number `yaml:"inactive_links,omitempty"`
}

// ECC has numbers of memory errors.
type ECC struct {
	// Corrected and Uncorrected are counts since the driver was loaded.
	Corrected   Number `yaml:"corrected,omitempty"`
	Uncorrected Number `yaml:"uncorrected,omitempty"`
	// LifetimeCorrected and LifetimeUncorrected are counts of the GPU's life
	// by the names of LifetimeCorrected.
	LifetimeCorrected   Numbers `yaml:"lifetime_corrected,omitempty"`
	LifetimeUncorrected Numbers `yaml:"lifetime_uncorrected,omitempty"`
}

// Repair has the values of memory that the GPU replaced because it failed.
type Repair struct {
	// RemappedCorrectable and RemappedUncorrectable are numbers of rows.
	RemappedCorrectable   Number `yaml:"remapped_rows_correctable,omitempty"`
	RemappedUncorrectable Number `yaml:"remapped_rows_uncorrectable,omitempty"`
	// RemapPending means that the next reset remaps a row, and RemapFailed that
	// there was no spare row.
	RemapPending Flag `yaml:"remap_pending,omitempty"`
	RemapFailed  Flag `yaml:"remap_failed,omitempty"`
	// RetiredSingleBit and RetiredDoubleBit are numbers of pages, of GPUs
	// before Ampere.
	RetiredSingleBit Number `yaml:"retired_pages_multiple_single_bit,omitempty"`
	RetiredDoubleBit Number `yaml:"retired_pages_double_bit,omitempty"`
}

// The actions that the driver asks for to make a GPU work again. The numbers are
// NVML's.
const (
	RecoveryNone          = 0
	RecoveryGPUReset      = 1
	RecoveryNodeReboot    = 2
	RecoveryDrainP2P      = 3
	RecoveryDrainAndReset = 4
	RecoveryIMEXDomain    = 5
)
