package criticalpath_test

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/criticalpath"
)

const (
	none = criticalpath.None
	off  = criticalpath.Off
)

// span is a span with a parent.
func span(parent int32, start, end int64) criticalpath.Span {
	return criticalpath.Span{Parent: parent, Start: start, End: end}
}

func server(parent int32, start, end int64) criticalpath.Span {
	s := span(parent, start, end)
	s.Server = true
	return s
}

func TestFind(t *testing.T) {
	for name, tt := range map[string]struct {
		spans []criticalpath.Span
		want  []int64
	}{
		"nothing":  {nil, []int64{}},
		"one span": {[]criticalpath.Span{span(none, 10, 15)}, []int64{5}},
		"one after the other": {
			[]criticalpath.Span{span(none, 0, 100), span(0, 10, 40), span(0, 50, 90)},
			[]int64{30, 30, 40},
		},
		"the last of two at the same time": {
			[]criticalpath.Span{span(none, 0, 100), span(0, 10, 60), span(0, 10, 90), span(2, 20, 80)},
			[]int64{20, off, 20, 60},
		},
		"a child that covers its parent": {
			[]criticalpath.Span{span(none, 0, 100), span(0, 0, 100)},
			[]int64{0, 100},
		},
		"work that goes on after the root": {
			[]criticalpath.Span{span(none, 0, 100), span(0, 10, 40), span(0, 50, 900)},
			[]int64{70, 30, off},
		},
		"a task that its grandparent waits for": {
			// 1 begins 2 and ends; 0 waits for 2.
			[]criticalpath.Span{span(none, 0, 100), span(0, 10, 20), span(1, 15, 90)},
			[]int64{20, 5, 75},
		},
		"a task that waits for a worker": {
			[]criticalpath.Span{span(none, 0, 100), span(0, 10, 20), span(1, 50, 90)},
			[]int64{50, 10, 40},
		},
		"a task of a task, of which each outlasts the one that began it": {
			[]criticalpath.Span{span(none, 0, 100), span(0, 5, 30), span(1, 10, 12), span(2, 20, 25), span(3, 21, 90)},
			[]int64{15, 13, 2, 1, 69},
		},
		"a server whose clock is ahead": {
			[]criticalpath.Span{span(none, 0, 100), span(0, 10, 60), server(1, 1015, 1055), span(2, 1020, 1050)},
			[]int64{50, 10, 10, 30},
		},
		"a server whose clock is behind": {
			[]criticalpath.Span{span(none, 1000, 1100), server(0, 15, 55), span(1, 20, 50)},
			[]int64{60, 10, 30},
		},
		"a server that goes on after its client has left": {
			[]criticalpath.Span{span(none, 0, 100), span(0, 10, 20), server(1, 10, 60)},
			[]int64{50, 0, 50},
		},
		"a child before its parent": {
			[]criticalpath.Span{span(none, 50, 100), span(0, 0, 60)},
			[]int64{40, 10},
		},
		"several roots": {
			[]criticalpath.Span{span(none, 0, 30), span(none, 10, 60), span(none, 70, 90), span(2, 71, 80)},
			[]int64{off, 50, 11, 9},
		},
		"an end before its start": {
			[]criticalpath.Span{span(none, 10, 0), span(0, math.MaxInt64, math.MinInt64)},
			[]int64{0, off},
		},
		"its own parent": {[]criticalpath.Span{span(0, 0, 10)}, []int64{10}},
		"a cycle":        {[]criticalpath.Span{span(1, 0, 10), span(2, 2, 9), span(1, 3, 8)}, []int64{off, 2, 5}},
		"a parent that does not exist": {
			[]criticalpath.Span{span(7, 0, 10), span(-7, 10, 12)},
			[]int64{10, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			times, _ := criticalpath.Find(tt.spans)
			assert.Equal(t, tt.want, times)
		})
	}
}

// recursive is the definition for spans that lie within their parents.
func recursive(spans []criticalpath.Span, at int32, times []int64) {
	times[at] = 0
	var children []int32
	for i := range spans {
		if spans[i].Parent == at {
			children = append(children, int32(i))
		}
	}
	slices.SortFunc(children, func(a, b int32) int {
		return cmp.Or(cmp.Compare(spans[b].End, spans[a].End), cmp.Compare(spans[b].Start, spans[a].Start), cmp.Compare(a, b))
	})
	until := spans[at].End
	for _, child := range children {
		if spans[child].End <= until {
			times[at] += until - spans[child].End
			recursive(spans, child, times)
			until = spans[child].Start
		}
	}
	times[at] += until - spans[at].Start
}

func TestNestedSpansHaveThePathOfTheDefinition(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		spans := []criticalpath.Span{span(none, 0, 1000)}
		for range random.IntN(40) {
			parent := int32(random.IntN(len(spans)))
			above := spans[parent]
			start := above.Start + random.Int64N(above.End-above.Start+1)
			spans = append(spans, span(parent, start, start+random.Int64N(above.End-start+1)))
		}
		want := slices.Repeat([]int64{off}, len(spans))
		recursive(spans, 0, want)
		times, _ := criticalpath.Find(spans)
		assert.Equal(t, want, times, "seed %d: %v", seed, spans)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, true)
	f.Add([]byte{0, 0, 0, 255, 0, 1, 0, 10, 1, 2, 5, 80, 2, 1, 0, 0}, false)
	f.Fuzz(func(t *testing.T, data []byte, one bool) {
		spans := spansOf(data, one)
		times, parents := criticalpath.Find(spans)
		assert.Len(t, parents, len(spans))
		assert.Len(t, times, len(spans))
		var sum int64
		for i, own := range times {
			assert.GreaterOrEqual(t, own, off)
			sum += max(own, 0)
			if own != off && spans[i].Parent >= 0 && one {
				assert.NotEqual(t, off, times[spans[i].Parent], "the parent of a span on the path is on it")
			}
		}
		if one && len(spans) > 0 {
			assert.Equal(t, spans[0].End-spans[0].Start, sum, "the times add up to the root's duration")
		}
	})
}

// spansOf makes spans of bytes. If one is true they are a tree, and else anything.
func spansOf(data []byte, one bool) (spans []criticalpath.Span) {
	for i := int32(0); len(data) >= 4; i, data = i+1, data[4:] {
		s := criticalpath.Span{
			Parent: int32(int8(data[0])), Start: int64(data[2]), End: int64(data[3]), Server: data[1]&4 != 0,
		}
		switch {
		case !one && data[1] == 7:
			s.Start, s.End = int64(binary.BigEndian.Uint32(data))<<32, math.MinInt64
		case one && i == 0:
			s = span(none, s.Start, s.Start+int64(data[3]))
		case one:
			s.Parent = int32(data[0]) % i
		}
		spans = append(spans, s)
	}
	return spans
}

func BenchmarkFind(b *testing.B) {
	for name, count := range map[string]int{"4": 4, "1000": 1000} {
		b.Run(name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 1))
			spans := []criticalpath.Span{span(none, 0, math.MaxInt32)}
			for i := range int32(count - 1) {
				start := random.Int64N(math.MaxInt32)
				spans = append(spans, span(random.Int32N(i+1), start, start+random.Int64N(math.MaxInt32-start)))
			}
			b.ReportAllocs()
			for b.Loop() {
				criticalpath.Find(spans)
			}
		})
	}
}
