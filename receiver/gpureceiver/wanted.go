package gpureceiver

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// wants reports whether anything that is told needs a call into NVML. A call
// that nothing needs is never made. A call that is not in the list is wanted,
// so that a forgotten one costs time and no values.
func (cfg *Config) wants(call string) bool {
	needed, listed := callNeeds[call]
	return !listed || needed(cfg)
}

// callNeeds says by the names of nvmlsource.CallNames when a call is wanted.
var callNeeds = map[string]func(*Config) bool{
	"utilization":         engine("general"),
	"encoder_utilization": engine("encoder"),
	"decoder_utilization": engine("decoder"),
	"jpeg_utilization":    engine("jpeg"),
	"ofa_utilization":     engine("ofa"),

	"memory": enabled(func(m *metadata.MetricsConfig) []bool {
		return []bool{
			m.HwGpuMemoryLimit.Enabled, m.HwGpuMemoryUsage.Enabled, m.HwGpuMemoryUtilization.Enabled,
			m.NvidiaGpuMemoryReserved.Enabled,
		}
	}),
	"memory_controller_utilization": enabled(func(m *metadata.MetricsConfig) []bool {
		return []bool{m.NvidiaGpuMemoryControllerUtilization.Enabled}
	}),
	"bar1_memory": enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuBar1Usage.Enabled} }),

	"power":                 enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.HwPower.Enabled} }),
	"power_samples":         enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuPowerPeak.Enabled} }),
	"power_instant":         enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuPowerInstant.Enabled} }),
	"power_limit_enforced":  powerLimit("enforced"),
	"power_limit_requested": powerLimit("requested"),
	"power_limit_default":   powerLimit("default"),
	"power_limit_min":       powerLimit("min"),
	"power_limit_max":       powerLimit("max"),
	"energy":                enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.HwEnergy.Enabled} }),

	"temperature":        enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.HwTemperature.Enabled} }),
	"memory_temperature": enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.HwTemperature.Enabled} }),
	"temperature_limits": enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.HwTemperatureLimit.Enabled} }),
	"fans":               enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.HwFanSpeedRatio.Enabled} }),

	"clocks":            enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuClockFrequency.Enabled} }),
	"max_clocks":        enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuClockLimit.Enabled} }),
	"throttle_reasons":  enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuThrottleActive.Enabled} }),
	"throttle_times":    enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuThrottleTime.Enabled} }),
	"performance_state": enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuPerformanceState.Enabled} }),

	"pcie_replays":         enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuPcieReplays.Enabled} }),
	"pcie_link_generation": enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuPcieLinkGeneration.Enabled} }),
	"pcie_link_width":      enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuPcieLinkWidth.Enabled} }),
	"pcie_throughput":      enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuPcieThroughput.Enabled} }),
	"nvlink_io":            enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuNvlinkIo.Enabled} }),
	"nvlink_errors":        enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuNvlinkErrors.Enabled} }),
	"nvlink_links":         enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuNvlinkLinks.Enabled} }),

	"ecc":          enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.HwErrors.Enabled} }),
	"ecc_lifetime": enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuEccErrorsLifetime.Enabled} }),
	// The next and the last but one say something about a GPU's health, too.
	"remapped_rows": enabled(func(m *metadata.MetricsConfig) []bool {
		return []bool{
			m.NvidiaGpuMemoryRemappedRows.Enabled, m.NvidiaGpuMemoryRemapPending.Enabled,
			m.NvidiaGpuMemoryRemapFailed.Enabled, m.HwStatus.Enabled,
		}
	}),
	"retired_pages": enabled(func(m *metadata.MetricsConfig) []bool { return []bool{m.NvidiaGpuMemoryRetiredPages.Enabled} }),
	"recovery_action": enabled(func(m *metadata.MetricsConfig) []bool {
		return []bool{m.NvidiaGpuRecoveryAction.Enabled, m.HwStatus.Enabled}
	}),
	"gpm": enabled(func(m *metadata.MetricsConfig) []bool {
		return []bool{
			m.NvidiaGpuSmUtilization.Enabled, m.NvidiaGpuSmOccupancy.Enabled, m.NvidiaGpuPipeUtilization.Enabled,
			m.NvidiaGpuDramUtilization.Enabled, m.HwGpuIo.Enabled,
		}
	}),

	"compute_processes":  enabled(processes),
	"graphics_processes": enabled(processes),
	"mps_processes":      enabled(processes),
	"process_utilization": enabled(func(m *metadata.MetricsConfig) []bool {
		return []bool{m.NvidiaGpuWorkloadUtilization.Enabled, m.NvidiaGpuProcessUtilization.Enabled}
	}),

	"serial":       described(func(r *metadata.ResourceAttributesConfig) bool { return r.HwSerialNumber.Enabled }),
	"vbios":        described(func(r *metadata.ResourceAttributesConfig) bool { return r.HwFirmwareVersion.Enabled }),
	"architecture": described(func(r *metadata.ResourceAttributesConfig) bool { return r.NvidiaGpuArchitecture.Enabled }),
	"numa_node":    described(func(r *metadata.ResourceAttributesConfig) bool { return r.NvidiaGpuNumaNode.Enabled }),
	"cuda_version": described(func(r *metadata.ResourceAttributesConfig) bool { return r.NvidiaCudaVersion.Enabled }),
}

// enabled is for a call that any of some metrics needs.
func enabled(metrics func(*metadata.MetricsConfig) []bool) func(*Config) bool {
	return func(cfg *Config) bool { return slices.Contains(metrics(&cfg.Metrics), true) }
}

// engine is for the call about one engine.
func engine(task string) func(*Config) bool {
	needed := enabled(func(m *metadata.MetricsConfig) []bool {
		return []bool{m.HwGpuUtilization.Enabled, m.NvidiaGpuBusyTime.Enabled, m.NvidiaGpuUtilizationPeak.Enabled}
	})
	return func(cfg *Config) bool { return cfg.tells(task) && needed(cfg) }
}

// powerLimit is for the call about one type of limit.
func powerLimit(kind string) func(*Config) bool {
	return func(cfg *Config) bool {
		return cfg.Metrics.NvidiaGpuPowerLimit.Enabled && slices.Contains(cfg.PowerLimits, kind)
	}
}

// described is for a call whose answer is a resource attribute.
func described(attribute func(*metadata.ResourceAttributesConfig) bool) func(*Config) bool {
	return func(cfg *Config) bool { return attribute(&cfg.MetricsBuilderConfig.ResourceAttributes) }
}

// processes are the metrics that the lists of processes feed.
func processes(m *metadata.MetricsConfig) []bool {
	return []bool{
		m.NvidiaGpuWorkloadMemoryUsage.Enabled, m.NvidiaGpuWorkloadUtilization.Enabled,
		m.NvidiaGpuProcessMemoryUsage.Enabled, m.NvidiaGpuProcessUtilization.Enabled,
		m.NvidiaGpuProcesses.Enabled, m.NvidiaGpuAttribution.Enabled,
	}
}
