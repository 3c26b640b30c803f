package gpustate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

var start = time.Unix(1_700_000_000, 0).UTC()

// batch is a batch of points of GPUs.
type batch struct{ pmetric.Metrics }

func newBatch() batch {
	b := batch{pmetric.NewMetrics()}
	b.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	return b
}

func (b batch) add(host, id string, at pcommon.Timestamp, name string, value int64, attributes ...string) batch {
	m := b.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName(name)
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(at)
	p.SetIntValue(value)
	all := append([]string{"host.name", host, "hw.id", id, "nvidia.gpu.index", "0"}, attributes...)
	for pair := range slices.Chunk(all, 2) {
		p.Attributes().PutStr(pair[0], pair[1])
	}
	return b
}

// reading is one of a GPU of the run r, whose only workload has some GiB.
func (b batch) reading(host, id string, at time.Duration, gibibytes int64, attributes ...string) batch {
	return b.add(host, id, pcommon.NewTimestampFromTime(start.Add(at)), "nvidia.gpu.workload.memory.usage", gibibytes<<30, append([]string{"ml.run.id", "r"}, attributes...)...)
}

// TestTheReadingBefore: of the last readings, the one before the failure says
// who had the memory then.
func TestTheReadingBefore(t *testing.T) {
	s := New()
	for i := range 10 {
		s.Add(newBatch().reading("h", "g", time.Duration(i)*time.Second*10, int64(i)).Metrics, start)
	}
	s.Add(newBatch().reading("h", "g", 30*time.Second, 99).Metrics, start) // came late
	for at, want := range map[time.Duration]int{
		95 * time.Second: 9, 75 * time.Second: 7, 69500 * time.Millisecond: 7, 60 * time.Second: 6,
		5 * time.Second: 4, // the first that is kept
	} {
		got := s.Own("r", "", start.Add(at))
		require.Len(t, got, 1)
		assert.Contains(t, got[0], fmt.Sprintf("run r has %d.0 GiB;", want), at)
	}
	assert.Empty(t, s.Own("r", "", start.Add(time.Hour)), "too long after")
	assert.Empty(t, s.Own("r", "", start.Add(-time.Hour)), "too long before")
}

// TestBounds: a sender that invents GPUs, workloads, reasons and texts takes
// no more than there is.
func TestBounds(t *testing.T) {
	s := New()
	long := strings.Repeat("x", 1<<12)
	for i := range 3 * maxGPUs {
		id, b := fmt.Sprintf("GPU-%d", i), newBatch()
		for j := range 40 {
			for _, at := range []pcommon.Timestamp{pcommon.Timestamp(j + 1), pcommon.Timestamp(j/20 + 100)} {
				b.add("h", id, at, "nvidia.gpu.workload.memory.usage", 1, "ml.run.id", long, "service.name", long, "k8s.pod.name", strconv.Itoa(j))
			}
			b.add("h", id, pcommon.Timestamp(j/20+100), "nvidia.gpu.throttle.active", 1, "nvidia.gpu.throttle.reason", strconv.Itoa(j))
		}
		s.Add(b.Metrics, start)
	}
	s.Add(newBatch().reading("h", long, 0, 1).reading(long, "g", 0, 1).reading("h", "", 0, 1).Metrics, start)
	assert.LessOrEqual(t, s.gpus.Len(), maxGPUs)
	assert.LessOrEqual(t, s.bytes, int64(maxBytes))
	sum := int64(0)
	for _, g := range s.gpus.Values() {
		sum += g.bytes
		assert.LessOrEqual(t, len(g.readings), maxReadings)
		for _, r := range g.readings {
			assert.LessOrEqual(t, len(r.uses), maxListed)
			assert.LessOrEqual(t, len(r.throttled), maxListed)
			for _, u := range r.uses {
				assert.LessOrEqual(t, len(u.Service), mlattr.MaxText)
			}
		}
	}
	assert.Equal(t, sum, s.bytes, "what is counted is what is there")
}

// TestTextsAreUTF8: what a sender names a state or a reason is written into files.
func TestTextsAreUTF8(t *testing.T) {
	s, at := New(), pcommon.NewTimestampFromTime(start)
	s.Add(newBatch().reading("h", "g", 0, 1).add("h", "g", at, "hw.status", 1, "hw.state", "bro\xffken").
		add("h", "g", at, "nvidia.gpu.throttle.active", 1, "nvidia.gpu.throttle.reason", "h\xffot").Metrics, start)
	lines := s.Own("r", "", start)
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], ", broken, clocks held down by hot;")
}

// TestAClockThatIsWrong: a reading from the future does not hide those that
// follow, nor does one without a time.
func TestAClockThatIsWrong(t *testing.T) {
	s := New()
	s.Add(newBatch().reading("h", "g", 300*24*time.Hour, 1).Metrics, start)
	b := newBatch().reading("h", "g", 0, 2)
	for _, at := range []pcommon.Timestamp{0, 1 << 63} {
		b.add("h", "g", at, "nvidia.gpu.workload.memory.usage", 3<<30, "ml.run.id", "r")
	}
	s.Add(b.Metrics, start)
	got := s.Own("r", "", start)
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "run r has 2.0 GiB;")
}

// TestAgain: a workload that is sent twice is one.
func TestAgain(t *testing.T) {
	s := New()
	for range 2 * maxListed {
		s.Add(newBatch().reading("h", "g", 0, 2).Metrics, start)
	}
	assert.Equal(t, []string{"GPU 0 of h (g), the process's own by its run; run r has 2.0 GiB; read at 2023-11-14T22:13:20Z"}, s.Own("r", "", start))
}

// TestWhoseGPU: the run that ml_enrich joined to a workload says whose GPU it is,
// and nothing else does.
func TestWhoseGPU(t *testing.T) {
	for name, tc := range map[string]struct {
		attributes []string
		run, rank  string
		own        string
	}{
		"joined":                {[]string{"ml.gpu.join", "container"}, "r", "", "container"},
		"named by the workload": {nil, "r", "", "run"},
		"a rank":                {[]string{"ml.gpu.join", "rank", "ml.rank.global", "1"}, "r", "1", "rank"},
		"another rank":          {[]string{"ml.gpu.join", "rank", "ml.rank.global", "0"}, "r", "1", ""},
		"an unknown rank":       {[]string{"ml.gpu.join", "slurm"}, "r", "1", ""},
		"another run":           {[]string{"ml.run.id", "q"}, "r", "", ""},
		"not joined":            {[]string{"ml.run.id", "", "ml.rank.global", "1"}, "r", "1", ""},
		"no run":                {[]string{"ml.run.id", "", "ml.rank.global", "1"}, "", "1", ""},
	} {
		s := New()
		s.Add(newBatch().reading("a", "g", 0, 1, tc.attributes...).Metrics, start)
		got := s.Own(tc.run, tc.rank, start)
		if tc.own == "" {
			assert.Empty(t, got, name)
			continue
		}
		require.Len(t, got, 1, name)
		assert.Contains(t, got[0], "the process's own by its "+tc.own, name)
	}
}
