package device

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

// Quantity is one value that a GPU can report. A source reads it, and metrics
// are made of it.
type Quantity struct {
	// Name is the value's name in the receiver's own metrics. The members of a set
	// share it.
	Name string
	// Counter is true for a number that only rises until the driver is loaded again,
	// and Flag for a value that is 1 for true and 0 for false.
	Counter, Flag bool
	bounds        bounds
	// Key is the key in recordings with those above it, such as power.draw_watts.
	// The quantities of a list share it.
	Key string
	// Entry is the number of the entry of a list, -1 for what is none.
	Entry int
	// index is the quantity's place in Readings.
	index int
}

// Set is the quantities of one kind that differ by a name only, such as the
// clocks of several domains.
type Set struct {
	// Names are the names of the members, and Members the quantities in their order.
	Names   []string
	Members []*Quantity
}

// Engine is the quantities of one engine of a GPU.
type Engine struct {
	// Utilization is the fraction of the time since the last reading in which the
	// engine was busy, Peak the highest of the driver's samples since then, and
	// BusyTime the busy time since the first reading, in seconds.
	Utilization, Peak, BusyTime *Quantity
}

// The engines of a GPU.
var (
	GeneralEngine = &Engine{GeneralUtilization, GeneralPeak, GeneralBusyTime}
	EncoderEngine = &Engine{EncoderUtilization, EncoderPeak, EncoderBusyTime}
	DecoderEngine = &Engine{DecoderUtilization, DecoderPeak, DecoderBusyTime}
	// Engines are in the order of ProcessTasks.
	Engines = []*Engine{GeneralEngine, EncoderEngine, DecoderEngine}
)

// What a source can be asked for beside Readings.
var (
	ProcessList        = new(Quantity)
	ProcessUtilization = new(Quantity)
	Serial             = new(Quantity)
	VBIOS              = new(Quantity)
	Architecture       = new(Quantity)
	NUMANode           = new(Quantity)
	CUDAVersion        = new(Quantity)
)

// Of returns the quantity's reading.
func (q *Quantity) Of(r *Readings) Number {
	return Number{Value: r.values[q.index], Known: r.known[q.index]}
}

// Store makes value the quantity's reading.
func (q *Quantity) Store(r *Readings, value float64) {
	r.values[q.index], r.known[q.index] = value, true
}

// Member returns the quantity of a name, which must be one of Names.
func (s *Set) Member(name string) *Quantity { return s.Members[slices.Index(s.Names, name)] }

// EachCounter calls visit with each counter that is known and stores what it
// returns.
func (r *Readings) EachCounter(visit func(q *Quantity, value float64) float64) {
	for _, q := range Quantities {
		if q.Counter && r.known[q.index] {
			r.values[q.index] = visit(q, r.values[q.index])
		}
	}
}

// Take stores the readings that a recording has under a key, all for "". The
// error names the key and what is allowed.
func (r *Readings) Take(key string, value any) error {
	switch of := value.(type) {
	case map[string]any:
		for name, below := range of {
			if name == "" || strings.Contains(name, ".") {
				return fmt.Errorf("has %.64q, which is no key of a recording", name)
			}
			if err := r.Take(strings.TrimPrefix(key+"."+name, "."), below); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for i, entry := range of {
			if entry != nil {
				if err := r.Take(key+"."+strconv.Itoa(i), entry); err != nil {
					return err
				}
			}
		}
		return nil
	}
	q := byKey[key]
	if q == nil {
		return fmt.Errorf("has %.64q, which is no key of a recording", key)
	}
	number, allowed := math.NaN(), "a number from -1e30 to 1e30"
	switch of := value.(type) {
	case int:
		number = float64(of)
	case uint64:
		number = float64(of)
	case float64:
		number = of
	}
	ok := workload.IsReading(number)
	if q.Flag {
		allowed = "true or false"
		number, ok = map[any]float64{false: 0, true: 1}[value]
	}
	if !ok {
		return fmt.Errorf("has %q: %.64q; allowed is %s", key, fmt.Sprint(value), allowed)
	}
	q.Store(r, number)
	return nil
}

// Number is a reading that may be unavailable. Whole numbers are exact up to 2^53, which
// is more bytes than any memory has.
type Number = workload.Optional[float64]

// Read returns an available Number.
func Read(value float64) Number { return Number{Value: value, Known: true} }

// NUMANodeOf returns the node in the text of the kernel's file about a device, which is -1 if
// unknown.
func NUMANodeOf(text string) Number {
	node, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil {
		return Number{}
	}
	return Read(float64(node))
}

// Numbers are readings by name, such as a process's use of engines. A missing name
// means unavailable.
type Numbers map[string]float64

// Readings are the values of a GPU or MIG device at one time.
type Readings struct {
	values [quantityCount]float64
	known  [quantityCount]bool
}

// Monotonic turns a hardware counter, which restarts at zero whenever the driver
// is loaded, into a counter that never falls.
type Monotonic struct {
	base, last float64
}

// Add takes the hardware counter's value and returns the counter's.
func (m *Monotonic) Add(value float64) float64 {
	if value < m.last {
		m.base += m.last
	}
	m.last = value
	return m.Total()
}

// Total returns the counter's last value.
func (m *Monotonic) Total() float64 { return m.base + m.last }

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
			r.values[q.index], r.known[q.index] = 0, false
			dropped(q.Name)
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
