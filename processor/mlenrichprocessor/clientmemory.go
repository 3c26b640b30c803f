package mlenrichprocessor

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// memoryAge is how long a client's sizes hold. TorchTel reports once a minute.
const memoryAge = 2 * time.Minute

// clientMemory is what a client reports of its allocator, in bytes.
type clientMemory struct {
	// reserved is missing where the client reports only what was allocated.
	reserved  count
	allocated int64
	at        time.Time
	ok        bool
}

// memoryReading collects what a resource says about its allocator.
type memoryReading struct {
	// reserved and allocated have a size for each point; one alone is usable:
	// several are of several GPUs.
	reserved, allocated sizeReading
}

type sizeReading struct {
	size   int64
	points int
	broken bool
}

// read takes a metric in that is about a client's GPU memory. It says itself
// which of the two it is, as Snakepit's do, or its points by their kind, as
// TorchTel's.
func (r *memoryReading) read(m pmetric.Metric, meaning *mlattr.Meaning) {
	for _, p := range numberPoints(m).All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		part := meaning.Part
		if kind, ok := p.Attributes().Get("kind"); ok && part == "" && kind.Type() == pcommon.ValueTypeStr {
			part = kind.Str()
		}
		switch part {
		case mlattr.PartReserved:
			r.reserved.read(p, meaning.Factor)
		case mlattr.PartAllocated:
			r.allocated.read(p, meaning.Factor)
		}
	}
}

func (s *sizeReading) read(p pmetric.NumberDataPoint, factor float64) {
	size := bytesOf(p, factor)
	s.points++
	s.size, s.broken = size.n, s.broken || !size.ok
}

// client is what was read, where it is whole.
func (r *memoryReading) client(now time.Time) clientMemory {
	if r.reserved.points > 1 || r.allocated.points != 1 || r.reserved.broken || r.allocated.broken {
		return clientMemory{}
	}
	return clientMemory{reserved: count{r.reserved.size, r.reserved.points == 1}, allocated: r.allocated.size, at: now, ok: true}
}

// bytesOf is a point's value as a size; factor converts it.
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
