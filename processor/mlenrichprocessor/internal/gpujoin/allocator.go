package gpujoin

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// memoryAge is how long a client's sizes are valid. Clients report them once a
// minute.
const memoryAge = 2 * time.Minute

// allocatorSizes are what a client reports of its GPU memory allocator, in
// bytes.
type allocatorSizes struct {
	// reserved is missing if the client reports only what was allocated.
	reserved  count
	allocated int64
	at        time.Time
	ok        bool
}

// Allocator collects what the metrics of a resource report about its GPU memory
// allocator. The zero value is ready for use.
type Allocator struct {
	// reserved and allocated are usable if they are of one point: several
	// points are of several GPUs.
	reserved, allocated pointSize
}

type pointSize struct {
	size   int64
	points int
	broken bool
}

// Read takes in a metric of a client's GPU memory. The metric's meaning says
// whether it is about reserved or allocated memory, or else the attribute kind
// of its points.
func (a *Allocator) Read(m pmetric.Metric, meaning *vocabulary.Meaning) {
	for _, p := range mlattr.NumberPoints(m).All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		part := meaning.Part
		if kind, ok := p.Attributes().Get("kind"); ok && part == "" && kind.Type() == pcommon.ValueTypeStr {
			part = kind.Str()
		}
		switch part {
		case mlattr.PartReserved:
			a.reserved.read(p, meaning.Factor)
		case mlattr.PartAllocated:
			a.allocated.read(p, meaning.Factor)
		}
	}
}

func (s *pointSize) read(p pmetric.NumberDataPoint, factor float64) {
	size := bytesOf(p, factor)
	s.points++
	s.size, s.broken = size.n, s.broken || !size.ok
}

// sizes returns what was read, if it is complete.
func (a *Allocator) sizes(now time.Time) allocatorSizes {
	if a.reserved.points > 1 || a.allocated.points != 1 || a.reserved.broken || a.allocated.broken {
		return allocatorSizes{}
	}
	return allocatorSizes{reserved: count{a.reserved.size, a.reserved.points == 1}, allocated: a.allocated.size, at: now, ok: true}
}

// bytesOf returns a point's value, times factor, as a size.
func bytesOf(p pmetric.NumberDataPoint, factor float64) count {
	var size float64
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		if factor == 1 {
			return count{n: p.IntValue(), ok: p.IntValue() >= 0}
		}
		size = float64(p.IntValue()) * factor
	case pmetric.NumberDataPointValueTypeDouble:
		size = p.DoubleValue() * factor
	default:
		return count{}
	}
	if !(size >= 0) || size >= math.MaxInt64 {
		return count{}
	}
	return count{n: int64(math.Round(size)), ok: true}
}
