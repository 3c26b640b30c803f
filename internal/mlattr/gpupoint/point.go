// Package gpupoint reads the metrics of GPUs, as the gpu receiver writes them and
// ml_enrich joins them to runs, so that all components read the same.
package gpupoint

import (
	"iter"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Quantity is what a metric measures of a GPU.
type Quantity uint8

// The quantities. Sizes of memory are in bytes, powers in watts.
const (
	None           Quantity = iota // of a metric that is not about a GPU, or that nobody reads
	MemoryUsed                     // of the whole GPU
	MemoryLimit                    // of the whole GPU
	MemoryReserved                 // by the driver
	Power
	PowerLimit          // the one that holds now
	Utilization         // a fraction of time, of all tasks
	SMUtilization       // a fraction of the SMs
	BusyTime            // counts seconds, of all tasks
	Status              // 1 for the state that holds, which Point.Name names
	Throttle            // 1 for a reason that holds, which Point.Name names
	WorkloadMemory      // of a workload
	WorkloadUtilization // of a workload
	ProcessMemory       // of a process
	Recovery            // an mlattr.GPURecoveryAction
	Fabric              // an mlattr.GPUFabricState
)

// metric is what a metric has: its quantity, the attribute that Point.Name is from, and
// its only value that is read, or "".
type metric struct {
	Quantity
	name, only string
}

var metrics = map[string]metric{
	mlattr.GPUMemoryUsage:         {Quantity: MemoryUsed},
	mlattr.GPUMemoryLimit:         {Quantity: MemoryLimit},
	mlattr.GPUMemoryReserved:      {Quantity: MemoryReserved},
	mlattr.GPUPower:               {Quantity: Power},
	mlattr.GPUPowerLimit:          {PowerLimit, mlattr.GPUPowerLimitType, mlattr.GPUPowerLimitEnforced},
	mlattr.GPUUtilization:         {Utilization, mlattr.GPUTask, mlattr.GPUTaskGeneral},
	mlattr.GPUSMUtilization:       {Quantity: SMUtilization},
	mlattr.GPUBusyTime:            {BusyTime, mlattr.GPUTask, mlattr.GPUTaskGeneral},
	mlattr.GPUStatus:              {Quantity: Status, name: mlattr.HardwareState},
	mlattr.GPUThrottleActive:      {Quantity: Throttle, name: mlattr.GPUThrottleReason},
	mlattr.GPUWorkloadMemory:      {Quantity: WorkloadMemory},
	mlattr.GPUWorkloadUtilization: {Quantity: WorkloadUtilization},
	mlattr.GPUProcessMemory:       {Quantity: ProcessMemory},
	mlattr.GPURecoveryAction:      {Quantity: Recovery},
	mlattr.GPUFabricState:         {Quantity: Fabric},
}

// QuantityOf returns the quantity of a metric by its name.
func QuantityOf(name string) Quantity { return metricOf(name).Quantity }

func metricOf(name string) metric {
	if !strings.HasPrefix(name, "hw.") && !strings.HasPrefix(name, "nvidia.") {
		return metric{} // most metrics
	}
	return metrics[name]
}

// Device says which GPU something is about, "" where that is unknown. Its texts may share
// memory with the attributes.
type Device struct {
	Host, ID string
	// Index is the driver's index, Name the model, Parent the GPU that a MIG device is
	// part of, and Source where the numbers come from.
	Index, Name, Parent, Source string
	// Other is true for what is no GPU, such as a fan.
	Other bool
}

// DeviceOf reads the attributes of a resource.
func DeviceOf(attrs pcommon.Map) (d Device) {
	for key, v := range attrs.All() {
		d.Read(key, v)
	}
	return d
}

// Read reads an attribute and reports whether it is about the device.
func (d *Device) Read(key string, v pcommon.Value) bool {
	switch key {
	case mlattr.HostName:
		setText(&d.Host, v)
	case mlattr.HardwareID:
		setText(&d.ID, v)
	case mlattr.NVIDIAIndex:
		d.Index, _ = mlattr.ReadText(v)
	case mlattr.HardwareName:
		d.Name, _ = mlattr.ReadText(v)
	case mlattr.HardwareParent:
		d.Parent, _ = mlattr.ReadText(v)
	case mlattr.GPUSource:
		d.Source, _ = mlattr.ReadText(v)
	case mlattr.HardwareType:
		kind, _ := mlattr.ReadText(v)
		d.Other = kind != "" && kind != mlattr.HardwareTypeGPU
	default:
		return false
	}
	return true
}

// Replayed reports whether the numbers are of a recording.
func (d *Device) Replayed() bool { return d.Source == mlattr.GPUSourceReplay }

// setText sets a text that a value has, and keeps what was there if it has none.
func setText(text *string, v pcommon.Value) {
	if read, ok := mlattr.ReadText(v); ok {
		*text = read
	}
}

// Point is one value of one GPU.
type Point struct {
	Device
	Quantity Quantity
	// Name is the state of Status, and the reason of Throttle.
	Name  string
	Value float64
	// At is when it was read, by the clock of the GPU's host, or 0.
	At pcommon.Timestamp
}

// Points iterates over the points of a metric that say something of a GPU, with their
// attributes. What they do not say of the device, the resource says.
func Points(m pmetric.Metric, resource *Device) iter.Seq2[*Point, pcommon.Map] {
	return func(yield func(*Point, pcommon.Map) bool) {
		of := metricOf(m.Name())
		if of.Quantity == None {
			return
		}
		var p Point
		for _, point := range mlattr.NumberPoints(m).All() {
			value, ok := mlattr.Number(point)
			if !ok {
				continue
			}
			p = Point{Device: *resource, Quantity: of.Quantity, Value: value, At: point.Timestamp()}
			attrs := point.Attributes()
			for key, v := range attrs.All() {
				if !p.Read(key, v) && key == of.name && v.Type() == pcommon.ValueTypeStr {
					p.Name = v.Str()
				}
			}
			if p.Other || of.only != "" && p.Name != of.only {
				continue
			}
			if !yield(&p, attrs) {
				return
			}
		}
	}
}
