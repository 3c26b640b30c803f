package device

import (
	"maps"
	"slices"
)

// bounds are the range in which a quantity can be true. Drivers are known to
// give garbage now and then, such as a utilization of 808334905 %.
type bounds struct {
	low, high float64
}

var (
	ratio = bounds{0, 1}
	// Watts: the largest boards draw less than 3 kW.
	watts = bounds{0, 10_000}
	// Degrees Celsius: GPUs switch themselves off well below 150 °C.
	celsius = bounds{-60, 200}
	// Bytes of memory: up to 1 PiB.
	memoryBytes = bounds{0, 1 << 50}
	// Joules: 10 kW for more than 100 years.
	joules = bounds{0, 4e13}
	// Seconds: 100 years.
	seconds = bounds{0, 100 * 365 * 86400}
	// Hertz: the fastest clocks are below 20 GHz.
	hertz = bounds{0, 100e9}
	// Bytes per second of a PCIe link: 16 lanes of generation 7 make 256 GB/s.
	pcieRate = bounds{0, 1e12}
	// Bytes that went over a link, and events.
	trafficBytes = bounds{0, 1e20}
	events       = bounds{0, 1e18}
	small        = bounds{0, 64}
	flag         = bounds{0, 1}
	// A fan may be asked for more than its full speed.
	fanRatio = bounds{0, 2}
)

// quantity is one number of Readings.
type quantity struct {
	name string
	bounds
	// counter is true for what only rises until the driver is loaded again.
	counter bool
	of      func(*Readings) *Number
}

// quantities are all numbers that stand alone.
var quantities = []quantity{
	{"activity.general.utilization", ratio, false, func(r *Readings) *Number { return &r.Activity.General.Utilization }},
	{"activity.general.peak", ratio, false, func(r *Readings) *Number { return &r.Activity.General.Peak }},
	{"activity.general.busy_seconds", seconds, true, func(r *Readings) *Number { return &r.Activity.General.BusySeconds }},
	{"activity.encoder.utilization", ratio, false, func(r *Readings) *Number { return &r.Activity.Encoder.Utilization }},
	{"activity.encoder.peak", ratio, false, func(r *Readings) *Number { return &r.Activity.Encoder.Peak }},
	{"activity.encoder.busy_seconds", seconds, true, func(r *Readings) *Number { return &r.Activity.Encoder.BusySeconds }},
	{"activity.decoder.utilization", ratio, false, func(r *Readings) *Number { return &r.Activity.Decoder.Utilization }},
	{"activity.decoder.peak", ratio, false, func(r *Readings) *Number { return &r.Activity.Decoder.Peak }},
	{"activity.decoder.busy_seconds", seconds, true, func(r *Readings) *Number { return &r.Activity.Decoder.BusySeconds }},
	{"activity.jpeg.utilization", ratio, false, func(r *Readings) *Number { return &r.Activity.JPEG.Utilization }},
	{"activity.jpeg.peak", ratio, false, func(r *Readings) *Number { return &r.Activity.JPEG.Peak }},
	{"activity.jpeg.busy_seconds", seconds, true, func(r *Readings) *Number { return &r.Activity.JPEG.BusySeconds }},
	{"activity.ofa.utilization", ratio, false, func(r *Readings) *Number { return &r.Activity.OFA.Utilization }},
	{"activity.ofa.peak", ratio, false, func(r *Readings) *Number { return &r.Activity.OFA.Peak }},
	{"activity.ofa.busy_seconds", seconds, true, func(r *Readings) *Number { return &r.Activity.OFA.BusySeconds }},

	{"pipes.sm_utilization", ratio, false, func(r *Readings) *Number { return &r.Pipes.SMUtilization }},
	{"pipes.sm_occupancy", ratio, false, func(r *Readings) *Number { return &r.Pipes.SMOccupancy }},
	{"pipes.dram_utilization", ratio, false, func(r *Readings) *Number { return &r.Pipes.DRAMUtilization }},

	{"memory.total", bounds{1, memoryBytes.high}, false, func(r *Readings) *Number { return &r.Memory.Total }},
	{"memory.used", memoryBytes, false, func(r *Readings) *Number { return &r.Memory.Used }},
	{"memory.reserved", memoryBytes, false, func(r *Readings) *Number { return &r.Memory.Reserved }},
	{"memory.bar1_used", memoryBytes, false, func(r *Readings) *Number { return &r.Memory.BAR1Used }},
	{"memory.controller_utilization", ratio, false, func(r *Readings) *Number { return &r.Memory.ControllerUtilization }},

	{"power.draw", watts, false, func(r *Readings) *Number { return &r.Power.Draw }},
	{"power.peak", watts, false, func(r *Readings) *Number { return &r.Power.Peak }},
	{"power.instant_gpu", watts, false, func(r *Readings) *Number { return &r.Power.InstantGPU }},
	{"power.instant_module", watts, false, func(r *Readings) *Number { return &r.Power.InstantModule }},
	{"power.energy", joules, true, func(r *Readings) *Number { return &r.Power.Energy }},

	{"thermal.gpu", celsius, false, func(r *Readings) *Number { return &r.Thermal.GPU }},
	{"thermal.memory", celsius, false, func(r *Readings) *Number { return &r.Thermal.Memory }},
	{"thermal.slowdown", celsius, false, func(r *Readings) *Number { return &r.Thermal.Slowdown }},
	{"thermal.shutdown", celsius, false, func(r *Readings) *Number { return &r.Thermal.Shutdown }},

	{"clocks.performance_state", bounds{0, 15}, false, func(r *Readings) *Number { return &r.Clocks.PerformanceState }},

	{"pcie.received", trafficBytes, true, func(r *Readings) *Number { return &r.PCIe.Received }},
	{"pcie.transmitted", trafficBytes, true, func(r *Readings) *Number { return &r.PCIe.Transmitted }},
	{"pcie.receive_rate", pcieRate, false, func(r *Readings) *Number { return &r.PCIe.ReceiveRate }},
	{"pcie.transmit_rate", pcieRate, false, func(r *Readings) *Number { return &r.PCIe.TransmitRate }},
	{"pcie.replays", events, true, func(r *Readings) *Number { return &r.PCIe.Replays }},
	{"pcie.generation", small, false, func(r *Readings) *Number { return &r.PCIe.Generation }},
	{"pcie.max_generation", small, false, func(r *Readings) *Number { return &r.PCIe.MaxGeneration }},
	{"pcie.width", small, false, func(r *Readings) *Number { return &r.PCIe.Width }},
	{"pcie.max_width", small, false, func(r *Readings) *Number { return &r.PCIe.MaxWidth }},

	{"nvlink.received", trafficBytes, true, func(r *Readings) *Number { return &r.NVLink.Received }},
	{"nvlink.transmitted", trafficBytes, true, func(r *Readings) *Number { return &r.NVLink.Transmitted }},
	{"nvlink.active_links", small, false, func(r *Readings) *Number { return &r.NVLink.ActiveLinks }},
	{"nvlink.inactive_links", small, false, func(r *Readings) *Number { return &r.NVLink.InactiveLinks }},

	{"ecc.corrected", events, true, func(r *Readings) *Number { return &r.ECC.Corrected }},
	{"ecc.uncorrected", events, true, func(r *Readings) *Number { return &r.ECC.Uncorrected }},

	{"repair.remapped_rows_correctable", events, true, func(r *Readings) *Number { return &r.Repair.RemappedCorrectable }},
	{"repair.remapped_rows_uncorrectable", events, true, func(r *Readings) *Number { return &r.Repair.RemappedUncorrectable }},
	{"repair.retired_pages_multiple_single_bit", events, true, func(r *Readings) *Number { return &r.Repair.RetiredSingleBit }},
	{"repair.retired_pages_double_bit", events, true, func(r *Readings) *Number { return &r.Repair.RetiredDoubleBit }},
	{"recovery_action", small, false, func(r *Readings) *Number { return &r.RecoveryAction }},
}

// quantitySet is Numbers of Readings.
type quantitySet struct {
	name string
	bounds
	counter bool
	// names are those that there are.
	names []string
	of    func(*Readings) Numbers
}

// quantitySets are all numbers that stand in Numbers.
var quantitySets = []quantitySet{
	{"pipes.pipe", ratio, false, PipeNames, func(r *Readings) Numbers { return r.Pipes.Pipe }},
	{"power.limit", watts, false, PowerLimitNames, func(r *Readings) Numbers { return r.Power.Limits }},
	{"clocks.hertz", hertz, false, ClockNames, func(r *Readings) Numbers { return r.Clocks.Frequencies }},
	{"clocks.limit_hertz", hertz, false, ClockNames, func(r *Readings) Numbers { return r.Clocks.Limits }},
	{"clocks.throttle", flag, false, ThrottleReasons, func(r *Readings) Numbers { return r.Clocks.Throttle }},
	{"clocks.throttle_seconds", seconds, true, ThrottleReasons, func(r *Readings) Numbers { return r.Clocks.ThrottleSeconds }},
	{"nvlink.errors", events, true, NVLinkErrorTypes, func(r *Readings) Numbers { return r.NVLink.Errors }},
	{"ecc.lifetime_corrected", events, true, MemoryLocations, func(r *Readings) Numbers { return r.ECC.LifetimeCorrected }},
	{"ecc.lifetime_uncorrected", events, true, MemoryLocations, func(r *Readings) Numbers { return r.ECC.LifetimeUncorrected }},
}

// EachCounter calls visit with each counter that is known, by a name that is
// unique among them, and stores what it returns.
func (r *Readings) EachCounter(visit func(set, name string, value float64) float64) {
	for i := range quantities {
		q := &quantities[i]
		if !q.counter {
			continue
		}
		if number := q.of(r); number.Known {
			number.Value = visit(q.name, "", number.Value)
		}
	}
	for i := range quantitySets {
		set := &quantitySets[i]
		if !set.counter {
			continue
		}
		numbers := set.of(r)
		for name, value := range numbers {
			numbers[name] = visit(set.name, name, value)
		}
	}
}

// Clone returns readings that share nothing with the original.
func (r *Readings) Clone() Readings {
	clone := *r
	for _, numbers := range []*Numbers{
		&clone.Pipes.Pipe, &clone.Power.Limits, &clone.Clocks.Frequencies, &clone.Clocks.Limits,
		&clone.Clocks.Throttle, &clone.Clocks.ThrottleSeconds, &clone.NVLink.Errors,
		&clone.ECC.LifetimeCorrected, &clone.ECC.LifetimeUncorrected,
	} {
		*numbers = maps.Clone(*numbers)
	}
	clone.Thermal.Fans = slices.Clone(clone.Thermal.Fans)
	return clone
}
