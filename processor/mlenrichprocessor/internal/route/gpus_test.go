package route_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/route"
)

// gpuRig divides the metrics and logs of GPUs.
type gpuRig struct {
	t       testing.TB
	now     time.Time
	metrics consumer.Metrics
	logs    consumer.Logs
	// points has "route: metric GPU run" of each point that came out, in alphabetical
	// order, resources their attributes besides the host and the route.
	points    []string
	resources []map[string]any
}

func newGPURig(t testing.TB) *gpuRig {
	r := &gpuRig{t: t, now: time.Unix(1_700_000_000, 0)}
	gpus := route.NewGPUs(func() time.Time { return r.now })
	known := func() *route.GPUs { return gpus }
	metrics, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		for _, rm := range md.ResourceMetrics().All() {
			at := r.see(ctx, rm.Resource())
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for _, point := range m.Gauge().DataPoints().All() {
						r.points = append(r.points, at+": "+m.Name()+" "+textOf(point.Attributes(), "hw.id")+" "+textOf(point.Attributes(), "ml.run.id"))
					}
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	logs, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		for _, rl := range ld.ResourceLogs().All() {
			at := r.see(ctx, rl.Resource())
			for _, log := range rl.ScopeLogs().At(0).LogRecords().All() {
				r.points = append(r.points, at+": "+log.EventName()+" "+textOf(log.Attributes(), "hw.id")+" "+textOf(log.Attributes(), "ml.run.id"))
			}
		}
		return nil
	})
	require.NoError(t, err)
	r.metrics = route.Metrics(metrics, known)
	r.logs = route.Logs(logs, known)
	return r
}

// see notes a resource and returns its route, which is that of the call.
func (r *gpuRig) see(ctx context.Context, resource pcommon.Resource) string {
	at := textOf(resource.Attributes(), "ml.route")
	assert.Equal(r.t, []string{at}, client.FromContext(ctx).Metadata.Get(mlattr.RouteMetadata))
	rest := resource.Attributes().AsRaw()
	delete(rest, "ml.route")
	delete(rest, "host.name")
	r.resources = append(r.resources, rest)
	return at
}

func textOf(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok {
		return v.Str()
	}
	return ""
}

// reading sends one request of a host, with a resource for each list of points. A point
// is "metric GPU run"; memory is short for the metric of a workload's memory, and a
// metric that ends in =0 has that value.
func (r *gpuRig) reading(resources ...[]string) []string {
	md := pmetric.NewMetrics()
	for _, points := range resources {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("host.name", "n1")
		sm := rm.ScopeMetrics().AppendEmpty()
		for _, text := range points {
			words := strings.Split(text+"  ", " ")
			name, empty := strings.CutSuffix(words[0], "=0")
			m := sm.Metrics().AppendEmpty()
			m.SetName(strings.Replace(name, "memory", "nvidia.gpu.workload.memory.usage", 1))
			point := m.SetEmptyGauge().DataPoints().AppendEmpty()
			if !empty {
				point.SetIntValue(1)
			}
			label(point.Attributes(), words[1], words[2])
		}
	}
	r.points, r.resources = nil, nil
	require.NoError(r.t, r.metrics.ConsumeMetrics(r.t.Context(), md))
	slices.Sort(r.points)
	return r.points
}

func label(attrs pcommon.Map, gpu, run string) {
	if gpu != "" {
		attrs.PutStr("hw.id", gpu)
	}
	if run != "" {
		attrs.PutStr("ml.run.id", run)
	}
}

// record sends a log record of the host about a GPU.
func (r *gpuRig) record(event, gpu, run string) []string {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("host.name", "n1")
	log := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	log.SetEventName(event)
	label(log.Attributes(), gpu, run)
	r.points, r.resources = nil, nil
	require.NoError(r.t, r.logs.ConsumeLogs(r.t.Context(), ld))
	return r.points
}

const memory = "nvidia.gpu.workload.memory.usage"

// All of a GPU goes where its run goes, until another run holds it.
func TestGPUsFollowTheirRun(t *testing.T) {
	r := newGPURig(t)
	idle := []string{"hw.gpu.utilization g", "hw.status g", "memory g"}
	assert.Equal(t, []string{"n1: hw.gpu.utilization g ", "n1: hw.status g ", "n1: " + memory + " g "}, r.reading(idle), "no run")
	assert.Equal(t, []string{"a: hw.status g ", "a: " + memory + " g a", "n1: hw.status h ", "n1: nvidia.gpu.driver.state  "},
		r.reading([]string{"hw.status g", "memory g a"}, []string{"hw.status h"}, []string{"nvidia.gpu.driver.state"}))
	for _, attrs := range r.resources {
		assert.Empty(t, attrs, "a GPU is not its run")
	}
	assert.Equal(t, []string{"a: nvidia.gpu.xid g "}, r.record("nvidia.gpu.xid", "g", ""))
	assert.Equal(t, []string{"n1: nvidia.gpu.xid h "}, r.record("nvidia.gpu.xid", "h", ""))
	assert.Equal(t, []string{"b: nvidia.gpu.xid g b"}, r.record("nvidia.gpu.xid", "g", "b"))
	assert.Equal(t, []string{"n1: other g "}, r.record("other", "g", ""))
	assert.Equal(t, []string{"a: hw.status g "}, r.reading([]string{"hw.status g"}), "a part of a reading")
	assert.Equal(t, []string{"a: hw.gpu.utilization g ", "a: hw.status g ", "a: " + memory + " g "}, r.reading(idle), "released")
	assert.Equal(t, []string{"b: hw.status g ", "b: " + memory + " g b"}, r.reading([]string{"hw.status g", "memory g b"}), "the next run")
	assert.Equal(t, []string{"b: hw.status g ", "c: " + memory + " g c"}, r.reading([]string{"hw.status g", "memory=0 g c"}), "holds nothing")
}

// Each run that shares a GPU has its own memory, and one of them the rest.
func TestSharedGPUsStayWithOneRun(t *testing.T) {
	r := newGPURig(t)
	shared := []string{"memory g c", "hw.status g", "memory g b", "memory g"}
	want := []string{"b: hw.status g ", "b: " + memory + " g ", "b: " + memory + " g b", "c: " + memory + " g c"}
	assert.Equal(t, want, r.reading(shared), "the first in alphabetical order")
	assert.Equal(t, append([]string{"a: " + memory + " g a"}, want...), r.reading(append(shared, "memory g a")), "no move while it is held")
	assert.Equal(t, []string{"a: hw.status g ", "a: " + memory + " g a", "c: " + memory + " g c"}, r.reading([]string{"memory g a", "hw.status g", "memory g c"}))
	one, other := []string{"hw.status g", "memory g a"}, []string{"memory g c"}
	assert.Equal(t, []string{"a: hw.status g ", "a: " + memory + " g a", "c: " + memory + " g c"}, r.reading(one, other), "of two resources")
}

func TestOtherMetricsOfGPUsAreNotMoved(t *testing.T) {
	r := newGPURig(t)
	assert.Equal(t, []string{"a: " + memory + " g a", "n1: acme.gpu g "}, r.reading([]string{"memory g a", "acme.gpu g"}))
}

// A GPU that is not read is forgotten, and so is the least recently read one of many.
func TestGPUsAreForgotten(t *testing.T) {
	r := newGPURig(t)
	r.reading([]string{"memory g a"})
	for range 3 {
		r.now = r.now.Add(14 * time.Minute)
		assert.Equal(t, []string{"a: hw.status g "}, r.reading([]string{"hw.status g"}))
	}
	r.now = r.now.Add(16 * time.Minute)
	assert.Equal(t, []string{"n1: hw.status g "}, r.reading([]string{"hw.status g"}))

	r.reading([]string{"memory g a"})
	for i := range 5000 {
		r.reading([]string{"memory " + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + strings.Repeat("y", i/50) + " a"})
	}
	assert.Equal(t, []string{"n1: hw.status g "}, r.reading([]string{"hw.status g"}))
}

// Requests without GPUs are divided as before, at no cost: nothing is allocated for them.
func TestRequestsWithoutGPUsCostNothing(t *testing.T) {
	gpus := route.NewGPUs(time.Now)
	sink, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
	require.NoError(t, err)
	next := route.Metrics(sink, func() *route.GPUs { return gpus })
	allocations := func(name string, runs ...string) float64 {
		md := pmetric.NewMetrics()
		points := func() pmetric.NumberDataPointSlice {
			m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName(name)
			return m.SetEmptyGauge().DataPoints()
		}()
		for _, run := range runs {
			label(points.AppendEmpty().Attributes(), "g", run)
		}
		resource := md.ResourceMetrics().At(0).Resource().Attributes()
		return testing.AllocsPerRun(100, func() {
			resource.Remove("ml.route")
			assert.NoError(t, next.ConsumeMetrics(t.Context(), md))
		})
	}
	assert.Equal(t, allocations("acme", ""), allocations("acme", slices.Repeat([]string{""}, 100)...)) //nolint:testifylint // whole numbers
}

// FuzzGPUs divides readings of any shape: each point stays once, one that names a run
// goes there, and all points of a GPU that name none go one way.
func FuzzGPUs(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 255, 9, 10, 11, 12})
	f.Add([]byte{0x11, 0x22, 0xff, 0x11, 0x35, 0x80, 0x12})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newGPURig(t)
		names := []string{"memory", "memory=0", "hw.status", "acme"}
		request, resource := [][]string{}, []string{}
		var want []string
		send := func() {
			request = append(request, resource)
			got := r.reading(request...)
			routes := make(map[string]string)
			var points []string
			for _, text := range got {
				at, point, _ := strings.Cut(text, ": ")
				points = append(points, point)
				words := strings.Split(point, " ")
				switch known, seen := routes[words[1]]; {
				case words[2] != "":
					assert.Equal(t, words[2], at)
				case words[0] == "acme" || words[1] == "":
					assert.Equal(t, "n1", at)
				case seen:
					assert.Equal(t, known, at)
				default:
					routes[words[1]] = at
				}
			}
			slices.Sort(points)
			slices.Sort(want)
			assert.Equal(t, want, points)
			request, resource, want = nil, nil, nil
		}
		for _, b := range data {
			switch {
			case b == 0xff:
				send()
			case b&0x80 != 0:
				request, resource = append(request, resource), nil
			default:
				name, gpu, run := names[b&3], []string{"", "g", "h", "i"}[b>>2&3], []string{"", "a", "b", "c"}[b>>4&3]
				resource = append(resource, name+" "+gpu+" "+run)
				want = append(want, strings.TrimSuffix(strings.Replace(name, "memory", memory, 1), "=0")+" "+gpu+" "+run)
			}
		}
		send()
	})
}
