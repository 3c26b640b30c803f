package gpustate

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

var start = time.Unix(1_700_000_000, 0).UTC()

func of(host, id string, at pcommon.Timestamp, quantity gpupoint.Quantity, value float64) Point {
	return Point{Point: gpupoint.Point{Device: gpupoint.Device{Host: host, ID: id}, At: at, Quantity: quantity, Value: value}}
}

func used(host, id string, at time.Duration, bytes float64) Point {
	return of(host, id, pcommon.NewTimestampFromTime(start.Add(at)), gpupoint.MemoryUsed, bytes)
}

// TestTheReadingBefore: of the last readings, the one before the failure says
// who had the memory then.
func TestTheReadingBefore(t *testing.T) {
	s := New()
	for i := range 10 {
		s.Apply([]Point{used("h", "g", time.Duration(i)*time.Second*10, float64(i))}, start)
	}
	s.Apply([]Point{used("h", "g", 30*time.Second, 99)}, start) // came late
	for at, want := range map[time.Duration]jsontree.Known{
		95 * time.Second: 9, 75 * time.Second: 7, 69500 * time.Millisecond: 7, 60 * time.Second: 6,
		5 * time.Second: 4, // the first that is kept
	} {
		got := s.At(Query{Host: "h", At: start.Add(at), Limit: 4})
		require.Len(t, got, 1)
		assert.Equal(t, want, got[0].Used, at)
	}
	assert.Empty(t, s.At(Query{Host: "h", At: start.Add(time.Hour), Limit: 4}), "too long after")
	assert.Empty(t, s.At(Query{Host: "h", At: start.Add(-time.Hour), Limit: 4}), "too long before")
}

// TestBounds: a sender that invents GPUs, workloads, reasons and texts takes
// no more than there is.
func TestBounds(t *testing.T) {
	s := New()
	long := strings.Repeat("x", 1<<16)
	for i := range 3 * maxGPUs {
		id := fmt.Sprintf("GPU-%d", i)
		var points []Point
		for j := range 40 {
			before := of("h", id, pcommon.Timestamp(j+1), gpupoint.WorkloadMemory, 1)
			before.Workload = Workload{Rank: strconv.Itoa(j), Service: long, Run: long, Job: long}
			after := before
			after.At = pcommon.Timestamp(j/20 + 100)
			throttled := of("h", id, after.At, gpupoint.Throttle, 1)
			throttled.Name = strconv.Itoa(j)
			points = append(points, before, after, throttled)
		}
		s.Apply(points, start)
		s.AddXID("h", id, XID{At: start, Code: int64(i), Text: long})
	}
	s.Apply([]Point{used("h", long, 0, 1), used(long, "g", 0, 1), used("h", "", 0, 1)}, start)
	assert.LessOrEqual(t, s.gpus.Len(), maxGPUs)
	assert.LessOrEqual(t, s.bytes, int64(maxBytes))
	sum := int64(0)
	for _, g := range s.gpus.Values() {
		sum += g.bytes
		assert.LessOrEqual(t, len(g.readings), maxReadings)
		for _, r := range g.readings {
			assert.LessOrEqual(t, len(r.Uses), maxWorkloads)
			assert.LessOrEqual(t, len(r.Throttled), maxReasons)
			for _, u := range r.Uses {
				assert.LessOrEqual(t, len(u.Service), maxText)
			}
		}
	}
	assert.Equal(t, sum, s.bytes, "what is counted is what is there")
}

// TestAClockThatIsWrong: a reading from the future does not hide those that
// follow, nor does one without a time.
func TestAClockThatIsWrong(t *testing.T) {
	s := New()
	s.Apply([]Point{used("h", "g", 300*24*time.Hour, 1)}, start)
	s.Apply([]Point{used("h", "g", 0, 2), of("h", "g", 0, gpupoint.MemoryUsed, 3), of("h", "g", 1<<63, gpupoint.MemoryUsed, 4)}, start)
	got := s.At(Query{Host: "h", At: start, Limit: 4})
	require.Len(t, got, 1)
	assert.EqualValues(t, 2, got[0].Used)
}

// TestWhoseGPU: the run that ml_enrich joined to a workload says whose GPU it is,
// and nothing else does.
func TestWhoseGPU(t *testing.T) {
	for name, tc := range map[string]struct {
		uses  Workload
		query Query
		own   string
	}{
		"joined":                {Workload{Run: "r", Join: "container"}, Query{Run: "r"}, "container"},
		"named by the workload": {Workload{Run: "r"}, Query{Run: "r"}, "run"},
		"a rank":                {Workload{Run: "r", Join: "rank", Rank: "1"}, Query{Run: "r", Rank: "1"}, "rank"},
		"another rank":          {Workload{Run: "r", Join: "rank", Rank: "0"}, Query{Run: "r", Rank: "1"}, ""},
		"an unknown rank":       {Workload{Run: "r", Join: "slurm"}, Query{Run: "r", Rank: "1"}, ""},
		"another run":           {Workload{Run: "q", Join: "process"}, Query{Run: "r"}, ""},
		"not joined":            {Workload{Rank: "1", PID: 7, Service: "s"}, Query{Run: "r", Rank: "1"}, ""},
		"no run":                {Workload{Rank: "1"}, Query{Rank: "1"}, ""},
	} {
		s := New()
		p := used("a", "g", 0, 1)
		p.Quantity, p.Workload = gpupoint.WorkloadMemory, tc.uses
		s.Apply([]Point{p}, start)
		tc.query.Host, tc.query.At, tc.query.Limit = "a", start, 4
		got := s.At(tc.query)
		require.Len(t, got, 1, name)
		assert.Equal(t, tc.own, got[0].Own, name)
		tc.query.Host = "b"
		assert.Equal(t, tc.own != "", len(s.At(tc.query)) == 1, "%s, on another host", name)
	}
}
