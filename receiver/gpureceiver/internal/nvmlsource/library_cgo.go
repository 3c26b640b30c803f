//go:build cgo && linux

package nvmlsource

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// buildSupported reports that this build can call NVML.
const buildSupported = true

// binding is NVML through go-nvml.
type binding struct {
	path string
	nvml nvml.Interface

	// mu guards symbols, because a call that was left behind may return and
	// look something up while the next goroutine does.
	mu      sync.Mutex
	symbols map[string]bool
}

func newLibrary(path string) library {
	return &binding{path: path, nvml: nvml.New(nvml.WithLibraryPath(path)), symbols: make(map[string]bool)}
}

// Open loads the library only if it has the symbols without which go-nvml
// cannot even begin, because a call of a symbol that is not there ends the
// process. It looks in a local scope, so that a file that is no NVML library
// leaves nothing behind.
func (b *binding) Open() status {
	probe := dl.New(b.path, dl.RTLD_LAZY|dl.RTLD_LOCAL)
	if probe.Open() != nil {
		return statusLibraryNotFound
	}
	// The reference is given back; what it loaded stays anyway.
	defer func() { _ = probe.Close() }()
	for _, symbol := range []string{"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"} {
		if probe.Lookup(symbol) != nil {
			return statusLibraryNotFound
		}
	}
	b.mu.Lock()
	clear(b.symbols)
	b.mu.Unlock()
	return statusOf(b.nvml.Init())
}

// Close shuts NVML down. go-nvml unloads the library, but the process keeps it.
func (b *binding) Close() status {
	return statusOf(b.nvml.Shutdown())
}

// has reports whether the library has a symbol. No symbol is called that it
// does not have.
func (b *binding) has(symbol string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, known := b.symbols[symbol]
	if !known {
		found = b.nvml.Extensions().LookupSymbol(symbol) == nil
		b.symbols[symbol] = found
	}
	return found
}

// DriverVersion implements library.
func (b *binding) DriverVersion() (string, status) {
	if !b.has("nvmlSystemGetDriverVersion") {
		return "", statusFunctionNotFound
	}
	version, ret := b.nvml.SystemGetDriverVersion()
	return version, statusOf(ret)
}

// DeviceCount implements library. Its symbol was looked up by Open.
func (b *binding) DeviceCount() (int, status) {
	count, ret := b.nvml.DeviceGetCount()
	return count, statusOf(ret)
}

// Device implements library. Its symbol was looked up by Open.
func (b *binding) Device(index int) (gpu, status) {
	device, ret := b.nvml.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	return &boundGPU{binding: b, device: device}, statusSuccess
}

// boundGPU is a device handle of go-nvml.
type boundGPU struct {
	*binding
	device nvml.Device
	// lastSample is the time of the last utilization sample that was counted,
	// in the driver's microseconds.
	lastSample uint64
}

// UUID implements gpu.
func (g *boundGPU) UUID() (string, status) {
	if !g.has("nvmlDeviceGetUUID") {
		return "", statusFunctionNotFound
	}
	uuid, ret := g.device.GetUUID()
	return uuid, statusOf(ret)
}

// Name implements gpu.
func (g *boundGPU) Name() (string, status) {
	if !g.has("nvmlDeviceGetName") {
		return "", statusFunctionNotFound
	}
	name, ret := g.device.GetName()
	return name, statusOf(ret)
}

// PCIBusID implements gpu.
func (g *boundGPU) PCIBusID() (string, status) {
	if !g.has("nvmlDeviceGetPciInfo_v3") && !g.has("nvmlDeviceGetPciInfo_v2") && !g.has("nvmlDeviceGetPciInfo") {
		return "", statusFunctionNotFound
	}
	info, ret := g.device.GetPciInfo()
	if ret != nvml.SUCCESS {
		return "", statusOf(ret)
	}
	// NVML's own text has eight digits of domain; sysfs has four.
	return fmt.Sprintf("%04x:%02x:%02x.0", info.Domain, info.Bus, info.Device), statusSuccess
}

// Calls implements gpu.
func (g *boundGPU) Calls() []call {
	return []call{
		number("utilization", g.utilization, func(r *device.Readings) *device.Number { return &r.Activity.General.Utilization }),
		{name: "memory", read: g.memory},
		number("power", g.power, func(r *device.Readings) *device.Number { return &r.Power.Draw }),
		number("energy", g.energy, func(r *device.Readings) *device.Number { return &r.Power.Energy }),
		number("temperature", g.temperature, func(r *device.Readings) *device.Number { return &r.Thermal.GPU }),
		number("memory_temperature", g.memoryTemperature, func(r *device.Readings) *device.Number { return &r.Thermal.Memory }),
		number("encoder_utilization", g.encoderUtilization, func(r *device.Readings) *device.Number { return &r.Activity.Encoder.Utilization }),
		number("decoder_utilization", g.decoderUtilization, func(r *device.Readings) *device.Number { return &r.Activity.Decoder.Utilization }),
	}
}

// utilization is the mean of what the driver sampled since the last reading,
// so that a short burst between two readings counts. GPUs without samples,
// such as those in MIG mode, give the driver's last sample period instead.
func (g *boundGPU) utilization() (float64, status) {
	if samples, ok := g.utilizationSamples(); ok {
		if mean, last, found := meanSince(samples, g.lastSample); found {
			g.lastSample = last
			return mean, statusSuccess
		}
	}
	if !g.has("nvmlDeviceGetUtilizationRates") {
		return 0, statusFunctionNotFound
	}
	rates, ret := g.device.GetUtilizationRates()
	return percent(rates.Gpu), statusOf(ret)
}

func (g *boundGPU) utilizationSamples() ([]sample, bool) {
	if !g.has("nvmlDeviceGetSamples") {
		return nil, false
	}
	kind, values, ret := g.device.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, g.lastSample)
	if ret != nvml.SUCCESS || kind != nvml.VALUE_TYPE_UNSIGNED_INT {
		return nil, false
	}
	samples := make([]sample, 0, len(values))
	for _, value := range values {
		samples = append(samples, sample{time: value.TimeStamp, percent: binary.NativeEndian.Uint32(value.SampleValue[:4])})
	}
	return samples, true
}

func (g *boundGPU) encoderUtilization() (float64, status) {
	if !g.has("nvmlDeviceGetEncoderUtilization") {
		return 0, statusFunctionNotFound
	}
	utilization, _, ret := g.device.GetEncoderUtilization()
	return percent(utilization), statusOf(ret)
}

func (g *boundGPU) decoderUtilization() (float64, status) {
	if !g.has("nvmlDeviceGetDecoderUtilization") {
		return 0, statusFunctionNotFound
	}
	utilization, _, ret := g.device.GetDecoderUtilization()
	return percent(utilization), statusOf(ret)
}

// memory prefers the call that does not count what the driver reserves for
// itself as used.
func (g *boundGPU) memory() (func(*device.Readings), status) {
	if g.has("nvmlDeviceGetMemoryInfo_v2") {
		if info, ret := g.device.GetMemoryInfo_v2(); ret == nvml.SUCCESS {
			return func(r *device.Readings) {
				r.Memory.Total = device.Read(float64(info.Total))
				r.Memory.Used = device.Read(float64(info.Used))
				r.Memory.Reserved = device.Read(float64(info.Reserved))
			}, statusSuccess
		}
	}
	if !g.has("nvmlDeviceGetMemoryInfo") {
		return nil, statusFunctionNotFound
	}
	info, ret := g.device.GetMemoryInfo()
	return func(r *device.Readings) {
		r.Memory.Total = device.Read(float64(info.Total))
		r.Memory.Used = device.Read(float64(info.Used))
	}, statusOf(ret)
}

// NVML gives milliwatts.
func (g *boundGPU) power() (float64, status) {
	if !g.has("nvmlDeviceGetPowerUsage") {
		return 0, statusFunctionNotFound
	}
	milliwatts, ret := g.device.GetPowerUsage()
	return float64(milliwatts) / 1000, statusOf(ret)
}

// NVML gives millijoules.
func (g *boundGPU) energy() (float64, status) {
	if !g.has("nvmlDeviceGetTotalEnergyConsumption") {
		return 0, statusFunctionNotFound
	}
	millijoules, ret := g.device.GetTotalEnergyConsumption()
	return float64(millijoules) / 1000, statusOf(ret)
}

// temperature uses the old call where it exists, which every driver since
// 2011 answers, and its successor where the old one was removed.
func (g *boundGPU) temperature() (float64, status) {
	if g.has("nvmlDeviceGetTemperature") {
		celsius, ret := g.device.GetTemperature(nvml.TEMPERATURE_GPU)
		return float64(int32(celsius)), statusOf(ret)
	}
	if g.has("nvmlDeviceGetTemperatureV") {
		temperature, ret := g.device.GetTemperatureV().V1()
		return float64(temperature.Temperature), statusOf(ret)
	}
	return 0, statusFunctionNotFound
}

func (g *boundGPU) memoryTemperature() (float64, status) {
	if !g.has("nvmlDeviceGetFieldValues") {
		return 0, statusFunctionNotFound
	}
	values := []nvml.FieldValue{{FieldId: nvml.FI_DEV_MEMORY_TEMP}}
	if ret := g.device.GetFieldValues(values); ret != nvml.SUCCESS {
		return 0, statusOf(ret)
	}
	// The call succeeds as a whole also where a field failed.
	if ret := nvml.Return(values[0].NvmlReturn); ret != nvml.SUCCESS {
		return 0, statusOf(ret)
	}
	if nvml.ValueType(values[0].ValueType) != nvml.VALUE_TYPE_UNSIGNED_INT {
		return 0, statusUnexpectedType
	}
	celsius := binary.NativeEndian.Uint32(values[0].Value[:4])
	if celsius == 0 {
		// GPUs without the sensor answer 0 °C.
		return 0, statusNotSupported
	}
	return float64(celsius), statusSuccess
}

// ComputeProcesses implements gpu.
func (g *boundGPU) ComputeProcesses() ([]process, status) {
	return g.processes("nvmlDeviceGetComputeRunningProcesses", g.device.GetComputeRunningProcesses)
}

// GraphicsProcesses implements gpu.
func (g *boundGPU) GraphicsProcesses() ([]process, status) {
	return g.processes("nvmlDeviceGetGraphicsRunningProcesses", g.device.GetGraphicsRunningProcesses)
}

// MPSProcesses implements gpu.
func (g *boundGPU) MPSProcesses() ([]process, status) {
	return g.processes("nvmlDeviceGetMPSComputeRunningProcesses", g.device.GetMPSComputeRunningProcesses)
}

// processes asks for a list. The binding takes the newest version of the
// symbol that there is.
func (g *boundGPU) processes(symbol string, list func() ([]nvml.ProcessInfo, nvml.Return)) ([]process, status) {
	if !g.has(symbol+"_v3") && !g.has(symbol+"_v2") && !g.has(symbol) {
		return nil, statusFunctionNotFound
	}
	infos, ret := list()
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	processes := make([]process, 0, len(infos))
	for _, info := range infos {
		processes = append(processes, process{pid: info.Pid, memory: info.UsedGpuMemory})
	}
	return processes, statusSuccess
}

// ProcessUtilization implements gpu. No samples, which the driver calls not
// found, mean that every process was idle.
func (g *boundGPU) ProcessUtilization(since uint64) ([]processSample, status) {
	if !g.has("nvmlDeviceGetProcessUtilization") {
		return nil, statusFunctionNotFound
	}
	values, ret := g.device.GetProcessUtilization(since)
	if ret == nvml.ERROR_NOT_FOUND {
		return nil, statusSuccess
	}
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	samples := make([]processSample, 0, len(values))
	for _, value := range values {
		if value.TimeStamp <= since {
			// An entry of the buffer that is not used.
			continue
		}
		samples = append(samples, processSample{
			pid: value.Pid, time: value.TimeStamp,
			general: value.SmUtil, encoder: value.EncUtil, decoder: value.DecUtil,
		})
	}
	return samples, statusSuccess
}

func percent(value uint32) float64 {
	return float64(value) / 100
}

// statusOf names a return code without asking the library for its text,
// because the function for that may be missing too.
func statusOf(ret nvml.Return) status {
	if name, known := statuses[ret]; known {
		return name
	}
	return status(fmt.Sprintf("CODE_%d", int32(ret)))
}

var statuses = map[nvml.Return]status{
	nvml.SUCCESS:                         statusSuccess,
	nvml.ERROR_UNINITIALIZED:             statusUninitialized,
	nvml.ERROR_INVALID_ARGUMENT:          "INVALID_ARGUMENT",
	nvml.ERROR_NOT_SUPPORTED:             statusNotSupported,
	nvml.ERROR_NO_PERMISSION:             statusNoPermission,
	nvml.ERROR_ALREADY_INITIALIZED:       "ALREADY_INITIALIZED",
	nvml.ERROR_NOT_FOUND:                 "NOT_FOUND",
	nvml.ERROR_INSUFFICIENT_SIZE:         "INSUFFICIENT_SIZE",
	nvml.ERROR_INSUFFICIENT_POWER:        "INSUFFICIENT_POWER",
	nvml.ERROR_DRIVER_NOT_LOADED:         statusDriverNotLoaded,
	nvml.ERROR_TIMEOUT:                   "TIMEOUT",
	nvml.ERROR_IRQ_ISSUE:                 "IRQ_ISSUE",
	nvml.ERROR_LIBRARY_NOT_FOUND:         statusLibraryNotFound,
	nvml.ERROR_FUNCTION_NOT_FOUND:        statusFunctionNotFound,
	nvml.ERROR_CORRUPTED_INFOROM:         "CORRUPTED_INFOROM",
	nvml.ERROR_GPU_IS_LOST:               statusGPUIsLost,
	nvml.ERROR_RESET_REQUIRED:            "RESET_REQUIRED",
	nvml.ERROR_OPERATING_SYSTEM:          "OPERATING_SYSTEM",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH:   statusLibRMVersionMismatch,
	nvml.ERROR_IN_USE:                    "IN_USE",
	nvml.ERROR_MEMORY:                    "MEMORY",
	nvml.ERROR_NO_DATA:                   "NO_DATA",
	nvml.ERROR_VGPU_ECC_NOT_SUPPORTED:    "VGPU_ECC_NOT_SUPPORTED",
	nvml.ERROR_INSUFFICIENT_RESOURCES:    "INSUFFICIENT_RESOURCES",
	nvml.ERROR_FREQ_NOT_SUPPORTED:        "FREQ_NOT_SUPPORTED",
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH: "ARGUMENT_VERSION_MISMATCH",
	nvml.ERROR_DEPRECATED:                "DEPRECATED",
	nvml.ERROR_NOT_READY:                 "NOT_READY",
	nvml.ERROR_GPU_NOT_FOUND:             "GPU_NOT_FOUND",
	nvml.ERROR_INVALID_STATE:             "INVALID_STATE",
	nvml.ERROR_UNKNOWN:                   statusUnknown,
}
