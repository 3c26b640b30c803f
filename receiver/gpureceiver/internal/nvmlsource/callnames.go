package nvmlsource

// The names of the calls, as Options.Wanted and the receiver's own metrics
// have them. One name can stand for several calls into the library.
const (
	callUtilization        = "utilization"
	callEncoderUtilization = "encoder_utilization"
	callDecoderUtilization = "decoder_utilization"
	callJPEGUtilization    = "jpeg_utilization"
	callOFAUtilization     = "ofa_utilization"
	callMemoryController   = "memory_controller_utilization"
	callMemory             = "memory"
	callBAR1Memory         = "bar1_memory"
	callPower              = "power"
	callPowerSamples       = "power_samples"
	callPowerInstant       = "power_instant"
	callPowerEnforced      = "power_limit_enforced"
	callPowerRequested     = "power_limit_requested"
	callPowerDefault       = "power_limit_default"
	callPowerMin           = "power_limit_min"
	callPowerMax           = "power_limit_max"
	callEnergy             = "energy"
	callTemperature        = "temperature"
	callMemoryTemperature  = "memory_temperature"
	callTemperatureLimits  = "temperature_limits"
	callFans               = "fans"
	callClocks             = "clocks"
	callMaxClocks          = "max_clocks"
	callThrottleReasons    = "throttle_reasons"
	callThrottleTimes      = "throttle_times"
	callPerformanceState   = "performance_state"
	callPCIeReplays        = "pcie_replays"
	callPCIeGeneration     = "pcie_link_generation"
	callPCIeWidth          = "pcie_link_width"
	callPCIeThroughput     = "pcie_throughput"
	callNVLinkIO           = "nvlink_io"
	callNVLinkErrors       = "nvlink_errors"
	callNVLinkLinks        = "nvlink_links"
	callECC                = "ecc"
	callECCLifetime        = "ecc_lifetime"
	callRemappedRows       = "remapped_rows"
	callRetiredPages       = "retired_pages"
	callRecoveryAction     = "recovery_action"
	callGPM                = "gpm"
	// callFields is the one call for all wanted fields. It is wanted if any
	// of them is.
	callFields = "fields"

	callComputeProcesses   = "compute_processes"
	callGraphicsProcesses  = "graphics_processes"
	callMPSProcesses       = "mps_processes"
	callProcessUtilization = "process_utilization"

	callSerial       = "serial"
	callVBIOS        = "vbios"
	callArchitecture = "architecture"
	callNUMANode     = "numa_node"
	callCUDAVersion  = "cuda_version"
)

// CallNames are the names of all calls that Options.Wanted is asked about.
func CallNames() []string {
	return []string{
		callUtilization, callEncoderUtilization, callDecoderUtilization, callJPEGUtilization, callOFAUtilization,
		callMemoryController, callMemory, callBAR1Memory,
		callPower, callPowerSamples, callPowerInstant,
		callPowerEnforced, callPowerRequested, callPowerDefault, callPowerMin, callPowerMax, callEnergy,
		callTemperature, callMemoryTemperature, callTemperatureLimits, callFans,
		callClocks, callMaxClocks, callThrottleReasons, callThrottleTimes, callPerformanceState,
		callPCIeReplays, callPCIeGeneration, callPCIeWidth, callPCIeThroughput,
		callNVLinkIO, callNVLinkErrors, callNVLinkLinks,
		callECC, callECCLifetime, callRemappedRows, callRetiredPages, callRecoveryAction, callGPM,
		callComputeProcesses, callGraphicsProcesses, callMPSProcesses, callProcessUtilization,
		callSerial, callVBIOS, callArchitecture, callNUMANode, callCUDAVersion,
	}
}
