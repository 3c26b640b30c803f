package device

import "math"

// bounds are the range in which a quantity can be true. Drivers return
// impossible values now and then, such as a utilization of 808334905 %.
type bounds struct {
	low, high float64
}

var (
	ratio = bounds{0, 1}
	// The largest boards draw less than 3 kW.
	watts = bounds{0, 10_000}
	// Degrees Celsius: GPUs switch themselves off well below 150 °C.
	celsius = bounds{-60, 200}
	// Bytes of memory: up to 1 PiB.
	memoryBytes = bounds{0, 1 << 50}
	// An empty memory is refused: utilization is a part of it.
	memoryTotal = bounds{1, memoryBytes.high}
	// 10 kW for more than 100 years.
	joules = bounds{0, 4e13}
	// 100 years.
	seconds = bounds{0, 100 * 365 * 86400}
	// The fastest clocks are below 20 GHz.
	hertz = bounds{0, 100e9}
	// Bytes per second of a PCIe link: 16 lanes of generation 7 carry 256 GB/s.
	pcieRate = bounds{0, 1e12}
	// Bytes over a link, and numbers of events, since the driver was loaded.
	trafficBytes = bounds{0, 1e20}
	events       = bounds{0, 1e18}
	// Generations, lanes, links and codes.
	small = bounds{0, 64}
	// Performance states.
	pstates = bounds{0, 15}
	flag    = bounds{0, 1}
	// A fan may be asked for more than its full speed.
	fanRatio = bounds{0, 2}
)

// DropImplausible makes impossible readings unavailable, and calls dropped with
// the quantity's name for each.
func (g *GPU) DropImplausible(dropped func(value string)) {
	r, limit := &g.Readings, memoryBytes
	for _, q := range Quantities {
		within, number := q.bounds, q.Of(r)
		if q == MemoryUsed || q == MemoryReserved {
			// The total is before them in the table.
			if total := MemoryTotal.Of(r); total.Known {
				limit.high = total.Value
			}
			within = limit
		}
		if number.Known && !within.contains(number.Value) {
			q.drop(r)
			dropped(q.name)
		}
	}
	for i := range g.Processes {
		p := &g.Processes[i]
		if p.Memory.Known && !limit.contains(p.Memory.Value) {
			p.Memory = Number{}
			dropped("process.memory")
		}
		for name, value := range p.Utilization {
			if !ratio.contains(value) {
				delete(p.Utilization, name)
				dropped("process.utilization")
			}
		}
	}
}

// contains reports whether a value is within the bounds. NaN is not.
func (b bounds) contains(value float64) bool {
	return value >= b.low && value <= b.high && !math.IsInf(value, 0)
}
