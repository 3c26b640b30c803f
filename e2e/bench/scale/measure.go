package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/bench/growth"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// times measures the processor time of a span and a point on an agent and on a
// gateway, and their bytes on the wire. What the agent sends is kept and sent to the
// gateway, once as it is and once in requests as small as those of a machine that
// takes a step a second.
func times(tb testing.TB, rounds int, costs *growth.Costs) {
	tb.Helper()
	between, behind := startSink(tb, true), startSink(tb, false)
	a, g := agent(tb, between.address, nil), gateway(tb, behind.address, admitting(nil))
	var agentSpan, agentPoint, wirePoint, gatewaySpan, gatewayRequest, gatewayPoint []float64
	for round := -1; round < rounds; round++ {
		spans, points := newSite(int64(round+2), 20).next(2 * time.Minute)
		half := len(spans) / 2
		large := a.throughAgent(between, byProcess(spans[:half]))
		small := a.throughAgent(between, byProcess(spans[half:]))
		readings := a.pointsThroughAgent(between, points)
		split := bySecond(small.traces)
		c := [2]float64{g.throughGateway(behind, large.traces), g.throughGateway(behind, split)}
		pointCost := g.pointsThroughGateway(readings.metrics)
		if round < 0 {
			// The first one warms up.
			continue
		}
		agentSpan = append(agentSpan, (large.microseconds+small.microseconds)/float64(spanCount(large.traces)+spanCount(small.traces)))
		agentPoint = append(agentPoint, readings.microseconds/float64(pointCount(points)))
		wirePoint = append(wirePoint, readings.wire/float64(pointCount(points)))
		perSpan, perRequest := solve(spanCount(large.traces), len(large.traces), c[0], spanCount(split), len(split), c[1])
		gatewaySpan, gatewayRequest = append(gatewaySpan, perSpan), append(gatewayRequest, perRequest)
		gatewayPoint = append(gatewayPoint, pointCost/float64(pointCount(readings.metrics)))
		fmt.Fprintf(os.Stderr, "round %d: agent %.3g µs a span, %.3g a point; gateway %.3g µs a span, %.3g a request, %.3g a point; requests of %.0f and %.0f spans\n",
			round, last(agentSpan), last(agentPoint), perSpan, perRequest, last(gatewayPoint),
			float64(spanCount(large.traces))/float64(len(large.traces)), float64(spanCount(split))/float64(len(split)))
	}
	costs.AgentSpan, costs.AgentPoint = median(agentSpan), median(agentPoint)
	costs.WireSpan, costs.WirePoint = a.paced(between), median(wirePoint)
	costs.GatewaySpan, costs.GatewayRequest, costs.GatewayPoint = median(gatewaySpan), max(0, median(gatewayRequest)), median(gatewayPoint)
}

// pacedFor is how long spans are sent as they end.
const pacedFor = 20 * time.Second

// paced returns the bytes of a span on the wire if spans are sent as they end: each
// request of an agent, of a second, is compressed by itself.
func (c *collector) paced(to *sink) (bytes float64) {
	c.Helper()
	s, sent := newSite(200, 20), 0
	before, wire := to.spans.Load(), to.wire.Load()
	for range pacedFor / time.Second {
		spans, _ := s.next(time.Second)
		sent += spanCount(spans)
		c.send(byProcess(spans), nil)
		pass(c, time.Second)
	}
	c.await("the spans arrive", func() bool { return to.spans.Load() >= before+int64(sent) })
	return float64(to.wire.Load()-wire) / float64(sent)
}

func last(values []float64) float64 { return values[len(values)-1] }

// solve returns the cost of a span and of a request from the costs of two loads.
func solve(spans1, requests1 int, cost1 float64, spans2, requests2 int, cost2 float64) (perSpan, perRequest float64) {
	s1, r1, s2, r2 := float64(spans1), float64(requests1), float64(spans2), float64(requests2)
	determinant := s1*r2 - s2*r1
	return (cost1*r2 - cost2*r1) / determinant, (s1*cost2 - s2*cost1) / determinant
}

// passed is what an agent has sent on.
type passed struct {
	traces             []ptrace.Traces
	metrics            []pmetric.Metrics
	microseconds, wire float64
}

func (c *collector) throughAgent(to *sink, requests []ptrace.Traces) (p passed) {
	c.Helper()
	want, wire := to.spans.Load()+int64(spanCount(requests)), to.wire.Load()
	p.microseconds = c.spent(func() { c.send(requests, nil) }, func() bool { return to.spans.Load() >= want })
	p.wire = float64(to.wire.Load() - wire)
	p.traces, _ = to.take()
	return p
}

func (c *collector) pointsThroughAgent(to *sink, requests []pmetric.Metrics) (p passed) {
	c.Helper()
	want, wire := to.points.Load()+int64(pointCount(requests)), to.wire.Load()
	p.microseconds = c.spent(func() { c.send(nil, requests) }, func() bool { return to.points.Load() >= want })
	p.wire = float64(to.wire.Load() - wire)
	_, p.metrics = to.take()
	return p
}

func (c *collector) throughGateway(to *sink, requests []ptrace.Traces) (microseconds float64) {
	c.Helper()
	want := to.spans.Load() + int64(spanCount(requests))
	return c.spent(func() { c.send(requests, nil) }, func() bool { return to.spans.Load() >= want })
}

// pointsThroughGateway is over with the answers: the exporter to Prometheus has the
// points then.
func (c *collector) pointsThroughGateway(requests []pmetric.Metrics) (microseconds float64) {
	c.Helper()
	return c.spent(func() { c.send(nil, requests) }, func() bool { return true })
}

// queue measures the queue of an agent whose gateways are away.
func queue(tb testing.TB, costs *growth.Costs) {
	tb.Helper()
	a := agent(tb, fmt.Sprintf("127.0.0.1:%d", harness.FreePort(tb)), nil)
	spans, points := newSite(100, 20).next(3 * time.Minute)
	requests := byProcess(spans)
	a.send(requests, nil)
	costs.QueueSpan = a.onDisk("traces") / float64(spanCount(requests))
	a.send(nil, points)
	costs.QueuePoint = a.onDisk("metrics") / float64(pointCount(points))
}

// onDisk returns the bytes of the queue's file of a signal.
func (c *collector) onDisk(signal string) float64 {
	c.Helper()
	files, err := filepath.Glob(filepath.Join(c.folder, "exporter_*"+signal+"*"))
	if err != nil || len(files) != 1 {
		c.Fatalf("queue files of %s: %q, %v", signal, files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil {
		c.Fatal(err)
	}
	return float64(info.Size())
}

// readings measures what the receiver reads of a GPU that a run holds, and how many
// series that is. The recording has two.
func readings(tb testing.TB, costs *growth.Costs) {
	tb.Helper()
	const gpus = 2
	between := startSink(tb, true)
	agent(tb, between.address, map[string]any{
		"receivers::gpu::source": "replay", "receivers::gpu::collection_interval": "1s",
		"receivers::gpu::replay::path": harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
	})
	g := gateway(tb, startSink(tb, false).address, admitting(nil))
	var all []pmetric.Metrics
	var points, readings int
	g.await("readings", func() bool {
		_, metrics := between.take()
		for _, md := range metrics {
			all = append(all, md)
			of, full := ofGPUs(md)
			points, readings = points+of, readings+full
		}
		// Some values are read at every third reading only.
		return readings >= 12*gpus
	})
	g.send(nil, all)
	series := 0
	for _, line := range g.series() {
		if strings.Contains(line, "hw_id=") {
			series++
		}
	}
	costs.PointsGPU, costs.SeriesGPU = float64(points)/float64(readings), float64(series)/gpus
}

// ofGPUs returns the number of points that are about a GPU, and of how many readings
// of one they are: each has one point of the limit of its memory.
func ofGPUs(md pmetric.Metrics) (points, readings int) {
	for _, rm := range md.ResourceMetrics().All() {
		if _, ok := rm.Resource().Attributes().Get("hw.id"); !ok {
			continue
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				one := pmetric.NewMetrics()
				m.CopyTo(one.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty())
				points += one.DataPointCount()
				if m.Name() == "hw.gpu.memory.limit" {
					readings += one.DataPointCount()
				}
			}
		}
	}
	return points, readings
}

// series returns the lines of a scrape that have a value.
func (c *collector) series() (lines []string) {
	c.Helper()
	text, err := harness.Get(c.Context(), "http://"+c.Address(c, "exporters::prometheus")+"/metrics")
	if err != nil {
		c.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
