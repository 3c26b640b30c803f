package scenario

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// source is a deterministic stream of random values. They must not be used as
// secrets.
type source struct {
	*rand.Rand
}

// newSource returns a stream for a name, so that one process does not influence
// the values of another.
func newSource(seed int64, name string) source {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return source{rand.New(rand.NewPCG(uint64(seed), hash.Sum64()))} //nolint:gosec // Simulated data must repeat for a seed.
}

func (s source) traceID() pcommon.TraceID {
	var id pcommon.TraceID
	// A zero id is invalid, however unlikely.
	binary.BigEndian.PutUint64(id[:8], s.Uint64()|1)
	binary.BigEndian.PutUint64(id[8:], s.Uint64())
	return id
}

func (s source) spanID() pcommon.SpanID {
	var id pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], s.Uint64()|1)
	return id
}

// hex returns n random bytes as 2n lower-case hexadecimal digits.
func (s source) hex(n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(s.Uint32())
	}
	return hex.EncodeToString(out)
}

// uuid returns a version 4 UUID.
func (s source) uuid() string {
	h := s.hex(16)
	return fmt.Sprintf("%s-%s-4%s-a%s-%s", h[:8], h[8:12], h[13:16], h[17:20], h[20:])
}

// stamp returns a moment of 2026 as digits, for ids. It comes from the seed and
// not from a clock.
func (s source) stamp() string {
	const newYear, year = 1_767_225_600, 365 * 24 * 3600
	return time.Unix(newYear+s.Int64N(year), 0).UTC().Format("20060102-150405")
}

// between returns a value in [low, high).
func (s source) between(low, high float64) float64 {
	return low + (high-low)*s.Float64()
}

// count returns an integer in [low, high].
func (s source) count(low, high int) int64 {
	return int64(low + s.IntN(high-low+1))
}

// near varies a value by up to the given share.
func (s source) near(value, share float64) float64 {
	return value * s.between(1-share, 1+share)
}

// duration returns a time between low and high seconds.
func (s source) duration(low, high float64) time.Duration {
	return seconds(s.between(low, high))
}

func seconds(v float64) time.Duration {
	return time.Duration(v * float64(time.Second))
}

// round keeps the given number of decimals, as a client's round() does.
func round(v float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(v*scale) / scale
}

// pick returns one of the items.
func pick[T any](s source, items []T) T {
	return items[s.IntN(len(items))]
}
