package anomalies

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// always is the share of everything.
const always = 1.0

// hang has the run take no more steps. Its processes hold their GPUs, which wait for
// a collective.
func (r *run) hang() {
	r.stuck = true
	r.work(waitingUse, waitingPower)
}

// hangAtStart replaces the run by one that takes no first step. Its processes hold
// GPUs and send metrics of their own.
func hangAtStart(r *run) {
	r.end(nil)
	r.number += 10_000
	site := fleet.NewSite("loop", scenario.Settings{Seed: r.random.Int64(), Rate: 1 / time.Minute.Seconds(), MetricsInterval: time.Minute})
	r.id = site.Train(fleet.Training{Service: "trainer", Job: r.number, User: 1001, Places: r.places, Stuck: true}).ID()
	r.work(waitingUse, waitingPower)
	r.w.every(time.Minute, func() { r.send(site.Step(time.Now())) })
}

// failGPU has the first GPU of the run fail, and the run stop.
func failGPU(r *run) {
	r.places[0].GPU.Failed = true
	r.hang()
}

// mute has the telemetry of the last rank missing, which trains on.
func mute(r *run) { r.muted = len(r.places) - 1 }

// kill ends the process of the last rank. The others train on.
func kill(r *run) {
	mute(r)
	r.places[r.muted].GPU.Release()
}

// cutOff has nothing of the run's host arrive any more.
func cutOff(r *run) { r.w.hosts[r.host].cutUntil = time.Now().Add(48 * time.Hour) }

// crash has the run's newest work fail, and its processes end.
func crash(r *run) {
	batches := r.program.step(time.Now())
	for _, b := range batches {
		if b.Signal != sentlog.SignalTraces {
			continue
		}
		for _, rs := range b.Traces.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					failWith(span, "torch.OutOfMemoryError")
				}
			}
		}
	}
	r.send(batches)
	r.end(nil)
}

func restartEach(d time.Duration) func(*run) {
	return func(r *run) {
		var again func()
		again = func() {
			r.end(nil)
			r.w.in(30*time.Second, r.begin)
			r.w.in(d, again)
		}
		again()
	}
}

func slower(times float64) func(*run) { return func(r *run) { r.slower = times } }

// slowInput has the loading of data take the additional time.
func slowInput(times float64) func(*run) {
	return func(r *run) {
		r.slower = times
		r.program.(*loop).run.SlowInput(times)
	}
}

// slowHost has the ranks on the run's first host load data for times as long, for
// which the others wait.
func slowHost(times float64) func(*run) {
	return func(r *run) {
		r.slower = 1 + loadShare*(times-1)
		r.program.(*loop).run.SlowHost(r.places[0].Host, times)
	}
}

// otherDriver has every other host have another driver, with which the steps of its runs, which
// are new ones, take times as long.
func otherDriver(times float64) func(*run) {
	return func(r *run) {
		if last := r.host[len(r.host)-1] - '0'; last%2 == 1 {
			r.w.drivers[r.host].Driver, r.slower = nextDriver, times
			r.end(r.fresh)
		}
	}
}

// nextDriver is the version of the driver after that of all hosts.
const nextDriver = "580.65.06"

// loadShare is the usual share of a step of a loop in which it loads data.
const loadShare = 0.08

// idle has the run's processes stay and do nothing.
func idle(r *run) {
	r.stuck = true
	r.work(0, 110)
}

// throttle has heat slow down a GPU of the run for half of the time, and so its steps.
func throttle(times float64) func(*run) {
	return func(r *run) {
		r.slower = times
		r.places[0].GPU.Throttled = 0.5
	}
}

// notFinite makes a share of the losses NaN.
func notFinite(share float64) func(*run) {
	return func(r *run) {
		r.lossOf = func(loss float64) float64 {
			if r.random.Float64() < share {
				return math.NaN()
			}
			return loss
		}
	}
}

// spike multiplies the losses of some steps.
func spike(times float64, steps int) func(*run) {
	return func(r *run) {
		left := steps
		r.lossOf = func(loss float64) float64 {
			if left--; left < 0 {
				return loss
			}
			return times * loss
		}
	}
}

// diverge multiplies the losses by ever more.
func diverge(each float64) func(*run) {
	return func(r *run) {
		times := 1.0
		r.lossOf = func(loss float64) float64 {
			times *= each
			return times * loss
		}
	}
}

// grow has each rank hold ever more memory.
func grow(anHour int64) func(*run) {
	return func(r *run) { r.w.every(time.Minute, func() { r.memory += anHour / 60 }) }
}

func fail(ratio float64) func(*service) { return func(s *service) { s.errors = ratio } }

func slowRequests(times float64) func(*service) { return func(s *service) { s.slower = times } }

// inShare has spans altered, each with a probability.
func inShare(share float64, isOf func(ptrace.Span) bool, alter func(*service, ptrace.SpanSlice, ptrace.Span)) func(*service) {
	return func(s *service) {
		s.alter = func(spans ptrace.SpanSlice) {
			for i := range spans.Len() {
				if isOf(spans.At(i)) && s.random.Float64() < share {
					alter(s, spans, spans.At(i))
				}
			}
		}
	}
}

func isChat(span ptrace.Span) bool { return strings.HasPrefix(span.Name(), "chat ") }
func isTool(span ptrace.Span) bool { return strings.HasPrefix(span.Name(), "execute_tool ") }

// isCall reports whether a span has tokens.
func isCall(span ptrace.Span) bool {
	_, prompt := span.Attributes().Get("prompt_size")
	return prompt || isChat(span)
}

// again appends a copy of a span with an id of its own, and returns it.
func (s *service) again(spans ptrace.SpanSlice, span ptrace.Span) ptrace.Span {
	var id pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], s.random.Uint64()|1)
	other := spans.AppendEmpty()
	span.CopyTo(other)
	other.SetSpanID(id)
	return other
}

// retry has the model refuse some tries before it answers.
func retry(tries int, share float64) func(*service) {
	return inShare(share, isChat, func(s *service, spans ptrace.SpanSlice, span ptrace.Span) {
		for range tries {
			other := s.again(spans, span)
			other.SetEndTimestamp(span.StartTimestamp() + pcommon.Timestamp(50*time.Millisecond))
			other.Attributes().RemoveIf(func(key string, _ pcommon.Value) bool {
				return strings.HasPrefix(key, "gen_ai.usage.") || strings.HasPrefix(key, "gen_ai.response.")
			})
			failWith(other, "RateLimitError")
		}
	})
}

func failWith(span ptrace.Span, class string) {
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Attributes().PutStr("error.type", class)
}

// toolErrors has calls of the tool fail, which the agent survives.
func toolErrors(share float64) func(*service) {
	return inShare(share, isTool, func(_ *service, _ ptrace.SpanSlice, span ptrace.Span) { failWith(span, "ToolTimeout") })
}

func truncate(share float64) func(*service) {
	return inShare(share, isChat, func(_ *service, _ ptrace.SpanSlice, span ptrace.Span) { finish(span, "length") })
}

// finish sets why an answer ended.
func finish(span ptrace.Span, reason string) {
	span.Attributes().PutEmptySlice("gen_ai.response.finish_reasons").AppendEmpty().SetStr(reason)
}

// substitute has another model answer.
func substitute(share float64) func(*service) {
	return inShare(share, isChat, func(_ *service, _ ptrace.SpanSlice, span ptrace.Span) {
		span.Attributes().PutStr("gen_ai.response.model", "llama-3.1-8b-instruct")
	})
}

// uncache leaves a share of the cached tokens.
func uncache(left float64) func(*service) {
	return inShare(always, isChat, func(_ *service, _ ptrace.SpanSlice, span ptrace.Span) {
		multiply(span.Attributes(), left, "gen_ai.usage.cache_read.input_tokens")
	})
}

// tokens multiplies the tokens of each call.
func tokens(input, output float64) func(*service) {
	return inShare(always, isCall, func(_ *service, _ ptrace.SpanSlice, span ptrace.Span) {
		multiply(span.Attributes(), input, "gen_ai.usage.input_tokens", "gen_ai.usage.cache_read.input_tokens", "prompt_size")
		multiply(span.Attributes(), output, "gen_ai.usage.output_tokens", "output_size")
	})
}

// slowTokens has the model take longer for each token.
func slowTokens(times int) func(*service) {
	return inShare(always, isChat, func(_ *service, _ ptrace.SpanSlice, span ptrace.Span) {
		length := span.EndTimestamp() - span.StartTimestamp()
		span.SetStartTimestamp(span.EndTimestamp() - pcommon.Timestamp(times)*length)
	})
}

// slowNowAndThen has a share of the requests take times as long.
func slowNowAndThen(times int, share float64) func(*service) {
	return inShare(share, isChat, func(_ *service, _ ptrace.SpanSlice, span ptrace.Span) {
		length := span.EndTimestamp() - span.StartTimestamp()
		span.SetStartTimestamp(span.EndTimestamp() - pcommon.Timestamp(times)*length)
	})
}

// repeat has an agent call its tool again and again.
func repeat(calls int, share float64) func(*service) {
	return inShare(share, isTool, func(s *service, spans ptrace.SpanSlice, span ptrace.Span) {
		for range calls {
			s.again(spans, span)
		}
	})
}

// multiply multiplies integers.
func multiply(attrs pcommon.Map, times float64, keys ...string) {
	for _, key := range keys {
		if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeInt {
			v.SetInt(int64(math.Round(float64(v.Int()) * times)))
		}
	}
}
