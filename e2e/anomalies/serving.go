package anomalies

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// serviceNames are the names of the systems' services, before their number.
var serviceNames = map[string]string{agent: "agent", taskWeaver: "taskweaver", snakepit: "snakepit", tuft: "tuft"}

// sentDurations are the durations that a system sends as attributes.
var sentDurations = []string{"duration", "queue_time", "serialize_time", "python_time", "deserialize_time", "snakepit.grpc.duration_ms"}

// service answers requests. Faults are planted in its fields.
type service struct {
	w      *world
	system string
	name   string
	host   string
	random *rand.Rand
	// rate is its greatest usual demand, in requests a second.
	rate                  float64
	burst                 float64
	burstUntil, blipUntil time.Time
	imitated              scenario.Scenario
	agent                 *fleet.Agent
	version               string
	// times are those of the traces that were seen last.
	times map[pcommon.TraceID]dilation

	// errors is the share of requests that fail, slower multiplies their time, and
	// alter changes spans, if it is set.
	errors, slower float64
	alter          func(ptrace.SpanSlice)
}

// dilation is by how much a trace is longer than its system makes it, and the time
// that stays.
type dilation struct {
	times float64
	end   pcommon.Timestamp
}

// serve adds a service.
func (w *world) serve(system string, number int) *service {
	s := &service{
		w: w, system: system, name: fmt.Sprintf("%s-%02d", serviceNames[system], number), host: fmt.Sprintf("svc-%02d", number),
		times: make(map[pcommon.TraceID]dilation), errors: usualErrors, slower: 1, version: "1.8.1",
	}
	s.random = w.stream(s.name)
	s.rate = 0.05 * math.Pow(10, s.random.Float64())
	w.hosts[s.host] = &host{}
	settings := scenario.Settings{Seed: s.random.Int64(), Rate: s.rate, MetricsInterval: time.Minute, ErrorRatio: func(time.Time) float64 { return s.ratio() }}
	if system == agent {
		site := fleet.NewSite("agents", settings)
		s.agent = site.Serve(fleet.Service{Name: s.name, Version: s.version, Host: s.host, Model: "llama-3.3-70b", Tool: "search", Requests: 1})
		s.imitated = site
	} else {
		var err error
		if s.imitated, err = scenario.New(serviceNames[system], settings); err != nil {
			panic(err) // the names are those of the scenarios
		}
	}
	w.in(spread(s.random, time.Minute), s.proceed)
	return s
}

// ratio returns the share of requests that fails now.
func (s *service) ratio() float64 {
	if time.Now().Before(s.blipUntil) {
		return max(s.errors, blipErrors)
	}
	return s.errors
}

// proceed answers a request and plans the next one, by a Poisson process with the
// rate of the demand.
func (s *service) proceed() {
	now := time.Now()
	rate := s.rate * demand(now)
	if now.Before(s.burstUntil) {
		rate *= s.burst
	}
	wait := exponential(s.random, time.Duration(float64(time.Second)/rate))
	if s.random.Float64() < wait.Hours()/burstEvery.Hours() {
		s.burst, s.burstUntil = 3+3*s.random.Float64(), now.Add(spread(s.random, burstMost))
	}
	if s.random.Float64() < wait.Hours()/blipEvery.Hours() {
		s.blipUntil = now.Add(wait + spread(s.random, blipMost))
	}
	s.w.in(wait, func() {
		if s.agent != nil {
			s.agent.Fail(0, "ConnectionError", "connection reset by peer")
			if s.random.Float64() < s.ratio() {
				s.agent.Fail(1, "ConnectionError", "connection reset by peer")
			}
		}
		for _, b := range s.imitated.Step(time.Now()) {
			s.send(b)
		}
		s.proceed()
	})
}

// send sends a request of the service's processes.
func (s *service) send(b scenario.Batch) {
	switch b.Signal {
	case sentlog.SignalTraces:
		for _, rs := range b.Traces.ResourceSpans().All() {
			s.label(rs.Resource().Attributes())
			for _, ss := range rs.ScopeSpans().All() {
				if s.agent != nil {
					s.usual(ss.Spans())
				}
				s.dilate(ss.Spans())
				if s.alter != nil {
					s.alter(ss.Spans())
				}
			}
		}
	case sentlog.SignalMetrics:
		for _, rm := range b.Metrics.ResourceMetrics().All() {
			s.label(rm.Resource().Attributes())
		}
	}
	s.w.send(s.host, b)
}

// label names the service: those of a system would have one name otherwise.
func (s *service) label(resource pcommon.Map) {
	if name, ok := resource.Get("service.name"); ok && s.agent == nil {
		name.SetStr(name.Str() + s.name[len(s.name)-3:])
	}
	resource.PutStr("host.name", s.host)
	resource.PutStr("service.version", s.version)
}

// dilate makes traces longer, so that requests take as long as they do under load.
func (s *service) dilate(spans ptrace.SpanSlice) {
	ends := make(map[pcommon.TraceID]pcommon.Timestamp)
	for _, span := range spans.All() {
		ends[span.TraceID()] = max(ends[span.TraceID()], span.EndTimestamp())
	}
	if len(s.times) > 10_000 {
		clear(s.times)
	}
	for _, span := range spans.All() {
		d, known := s.times[span.TraceID()]
		if !known {
			d = dilation{s.slower * math.Exp(requestSpread*s.random.NormFloat64()), ends[span.TraceID()]}
			if s.random.Float64() < slowShare {
				d.times *= 1 + 9*s.random.Float64()
			}
			s.times[span.TraceID()] = d
		}
		move := func(at pcommon.Timestamp) pcommon.Timestamp {
			return d.end - pcommon.Timestamp(float64(int64(d.end-at))*d.times)
		}
		span.SetStartTimestamp(move(span.StartTimestamp()))
		span.SetEndTimestamp(move(span.EndTimestamp()))
		multiply(span.Attributes(), d.times, sentDurations...)
		for _, e := range span.Events().All() {
			e.SetTimestamp(move(e.Timestamp()))
			multiply(e.Attributes(), d.times, sentDurations...)
		}
	}
}

// usual varies what the models of an agent do: the tokens of a call, which of them
// are cached, why an answer ends, and tools that fail.
func (s *service) usual(spans ptrace.SpanSlice) {
	for _, span := range spans.All() {
		attrs := span.Attributes()
		switch {
		case isChat(span):
			times := math.Exp(tokenSpread * s.random.NormFloat64())
			multiply(attrs, times, "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens")
			if s.random.Float64() < uncached {
				multiply(attrs, 0, "gen_ai.usage.cache_read.input_tokens")
			}
			reason := "stop"
			switch draw := s.random.Float64(); {
			case draw < usualTruncated:
				reason = "length"
			case draw < 0.4:
				reason = "tool_calls"
			}
			finish(span, reason)
		case isTool(span) && s.random.Float64() < usualToolErrors:
			failWith(span, "NotFound")
		}
	}
}
