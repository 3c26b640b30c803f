//go:build linux

package main

import (
	"math/rand/v2"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// meter is a program that sends metrics: its resource, and the attributes of its points. A
// value that is nil differs from point to point.
type meter struct {
	resource, attributes map[string]any
	histogram, gauge     string
}

// meters send half histograms, half gauges, of 4 to 9 attributes.
var meters = []meter{
	{
		resource: map[string]any{
			"service.name": "torchtel", "job_id": 4711, "job_name": "llama", "user": "ada", "cluster": "c1",
			"local_rank": 1, "global_rank": 3, "world_size": 8, "host": "gpu-node-1",
		},
		attributes: map[string]any{"module": nil, "phase": "forward", "dtype": "bfloat16", "device": "cuda:1"},
		histogram:  "train.module.duration", gauge: "train.module.memory",
	},
	{
		resource: map[string]any{"service.name": "chat", "service.instance.id": "c-1", "deployment.environment.name": "prod"},
		attributes: map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "p", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1",
			"server.address": nil, "server.port": 443,
		},
		histogram: "gen_ai.client.operation.duration", gauge: "chat.sessions",
	},
	{
		resource: map[string]any{"service.name": "shop", "service.instance.id": "s-1", "service.version": "1"},
		attributes: map[string]any{
			"http.request.method": "GET", "http.route": nil, "http.response.status_code": 200, "url.scheme": "https",
			"network.protocol.version": "1.1", "network.protocol.name": "http", "server.address": "shop", "server.port": 443, "user_agent.synthetic.type": "none",
		},
		histogram: "http.server.request.duration", gauge: "http.server.open_connections",
	},
}

// began is the start time of the load's histograms.
var began = time.Now()

// pointsRequest has each program's points in turn. All requests have the same series.
func pointsRequest(random *rand.Rand) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range meters {
		m := &meters[i]
		n := itemsOfRequest / len(meters)
		if i == 0 {
			n += itemsOfRequest % len(meters)
		}
		rm := md.ResourceMetrics().AppendEmpty()
		put(rm.Resource().Attributes(), m.resource, "")
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		m.putHistogram(metrics.AppendEmpty(), n/2, random)
		m.putGauge(metrics.AppendEmpty(), n-n/2, random)
	}
	return md
}

func (m *meter) putHistogram(to pmetric.Metric, points int, random *rand.Rand) {
	to.SetName(m.histogram)
	to.SetUnit("s")
	h := to.SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for i := range points {
		point := h.DataPoints().AppendEmpty()
		put(point.Attributes(), m.attributes, strconv.Itoa(i))
		point.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.ExplicitBounds().FromRaw([]float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92})
		counts := make([]uint64, point.ExplicitBounds().Len()+1)
		for at := range counts {
			counts[at] = random.Uint64N(100)
			point.SetCount(point.Count() + counts[at])
		}
		point.BucketCounts().FromRaw(counts)
		point.SetSum(random.Float64() * 100)
	}
}

func (m *meter) putGauge(to pmetric.Metric, points int, random *rand.Rand) {
	to.SetName(m.gauge)
	g := to.SetEmptyGauge()
	for i := range points {
		point := g.DataPoints().AppendEmpty()
		put(point.Attributes(), m.attributes, strconv.Itoa(i))
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.SetDoubleValue(random.Float64())
	}
}

func countPoints(encoded []byte) (items, attributes int, err error) {
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalProto(encoded); err != nil {
		return 0, 0, err
	}
	for _, rm := range request.Metrics().ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeHistogram:
					for _, point := range m.Histogram().DataPoints().All() {
						items++
						attributes += point.Attributes().Len()
					}
				case pmetric.MetricTypeGauge:
					for _, point := range m.Gauge().DataPoints().All() {
						items++
						attributes += point.Attributes().Len()
					}
				default: // not of the load
				}
			}
		}
	}
	return items, attributes, nil
}
