package e2e

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// callBuckets are the upper bounds of the histograms of calls.
func callBuckets() []float64 {
	var bounds []float64
	for b := math.Exp2(-12); b <= 1024; b *= 4 {
		bounds = append(bounds, b)
	}
	return append(bounds, math.Inf(1))
}

func formatBound(bound float64) string { return strconv.FormatFloat(bound, 'g', -1, 64) }

// observed is what a histogram must hold, by the values of its labels joined
// by a bar.
type observed map[string][]float64

func (o observed) add(seconds float64, labels ...string) {
	key := strings.Join(labels, "|")
	o[key] = append(o[key], seconds)
}

func (o observed) counts() map[string]float64 {
	counts := map[string]float64{}
	for key, values := range o {
		counts[key] = float64(len(values))
	}
	return counts
}

func (o observed) sums() map[string]float64 {
	sums := map[string]float64{}
	for key, values := range o {
		for _, v := range values {
			sums[key] += v
		}
	}
	return sums
}

// buckets counts all values up to each bound.
func (o observed) buckets() map[string]float64 {
	counts := map[string]float64{}
	for _, bound := range callBuckets() {
		key := formatBound(bound)
		counts[key] = 0
		for _, values := range o {
			for _, v := range values {
				if v <= bound {
					counts[key]++
				}
			}
		}
	}
	return counts
}

// awaitSums waits until the sums of a metric's series by labels are the wanted
// ones: whole numbers exactly, others within 1e-9.
func awaitSums(t *testing.T, j *job, selector string, labels []string, wanted map[string]float64) {
	t.Helper()
	require.NotEmpty(t, wanted, "nothing to expect of %s", selector)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := j.prometheus.Query(t.Context(), "sum by ("+strings.Join(labels, ", ")+") ("+selector+")")
		if !assert.NoError(c, err) {
			return
		}
		got := map[string]float64{}
		for _, sample := range samples {
			var key []string
			for _, label := range labels {
				value := sample.Labels[label]
				if bound, err := strconv.ParseFloat(value, 64); label == "le" && err == nil {
					value = formatBound(bound)
				}
				key = append(key, value)
			}
			got[strings.Join(key, "|")] = sample.Value
		}
		assert.InDeltaMapValues(c, wanted, got, 1e-9, "%s: want %v, have %v", selector, wanted, got)
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
}

func (o observed) await(t *testing.T, j *job, metric, matchers string, labels ...string) {
	t.Helper()
	awaitSums(t, j, metric+"_count"+matchers, labels, o.counts())
	awaitSums(t, j, metric+"_sum"+matchers, labels, o.sums())
	awaitSums(t, j, metric+"_bucket"+matchers, []string{"le"}, o.buckets())
}

// jobOf is the label that Prometheus' exporter makes of a resource.
func jobOf(span *sentlog.Span) string {
	name, _ := span.Resource["service.name"].(string)
	if namespace, ok := span.Resource["service.namespace"].(string); ok {
		return namespace + "/" + name
	}
	return name
}

func secondsOf(span *sentlog.Span) float64 {
	return float64(span.EndUnixNano-span.StartUnixNano) / 1e9
}

func resultOf(failed bool) string {
	if failed {
		return "error"
	}
	return "ok"
}

// snakepitCalls is what the events of Snakepit's documents say, told from the
// sent log by rules of this test's own.
type snakepitCalls struct {
	duration, queue, serialize, python observed
	slow, crashes, openings, alerts    map[string]float64
	size, busy, idle, memory           map[string]float64
	gpu                                map[string]float64
}

const slowCall = 1.0 // in seconds

func snakepitTold(spans []*sentlog.Span) *snakepitCalls {
	s := &snakepitCalls{
		duration: observed{}, queue: observed{}, serialize: observed{}, python: observed{},
		slow: map[string]float64{}, crashes: map[string]float64{}, openings: map[string]float64{}, alerts: map[string]float64{},
		size: map[string]float64{}, busy: map[string]float64{}, idle: map[string]float64{}, memory: map[string]float64{},
		gpu: map[string]float64{},
	}
	newest := map[string]int64{}
	for _, span := range spans {
		service := jobOf(span)
		if strings.HasPrefix(span.Name, "BridgeService/Execute") {
			result := ""
			if span.Status.Code == "error" {
				result = "error"
			}
			s.python.add(secondsOf(span), service, "", span.Attributes["snakepit.tool"].(string), "", result)
		}
		s.add(span, service, newest)
	}
	return s
}

func (s *snakepitCalls) add(span *sentlog.Span, service string, newest map[string]int64) {
	instance, _ := span.Resource["service.instance.id"].(string)
	var begun, wait, encoding *sentlog.Event
	ended := false
	for i := range span.Events {
		e := &span.Events[i]
		text := func(key string) string { v, _ := e.Attributes[key].(string); return v }
		number := func(key string) float64 {
			if n, ok := e.Attributes[key].(int64); ok {
				return float64(n)
			}
			n, _ := e.Attributes[key].(float64)
			return n
		}
		device := strings.NewReplacer("{:cuda, ", "cuda:", "}", "").Replace(text("device"))
		call := []string{service, text("library"), text("function"), device, resultOf(e.Name == "snakepit.call.exception")}
		isNewest := func(of string) bool {
			if e.TimeUnixNano < newest[of] {
				return false
			}
			newest[of] = e.TimeUnixNano
			return true
		}
		switch e.Name {
		case "snakepit.call.start":
			begun = e
		case "snakepit.pool.checkout":
			wait = e
		case "snakepit.serialize.stop":
			encoding = e
		case "snakepit.call.stop", "snakepit.call.exception":
			ended = true
			seconds := number("duration") / 1e9
			s.duration.add(seconds, call...)
			if seconds > slowCall {
				s.slow[strings.Join(call, "|")]++
			}
			if e.Name == "snakepit.call.stop" {
				s.queue.add(number("queue_time")/1e9, call...)
				s.serialize.add(number("serialize_time")/1e9, call...)
				s.python.add(number("python_time")/1e9, call...)
				continue
			}
			s.queue.add(float64(wait.Attributes["queue_time"].(int64))/1e9, call...)
			s.serialize.add(float64(encoding.Attributes["duration"].(int64))/1e9, call...)
		case "snakepit.pool.size":
			key := service + "|" + text("pool") + "|" + instance
			if isNewest("pool " + key) {
				s.size[key], s.busy[key], s.idle[key] = number("size"), number("busy"), number("idle")
			}
		case "snakepit.memory.allocate":
			s.memory[strings.Join([]string{service, text("type"), device, instance}, "|")] += number("bytes")
		case "snakepit.memory.release":
			s.memory[strings.Join([]string{service, text("type"), device, instance}, "|")] -= number("bytes")
		case "snakepit.memory.gpu":
			if key := service + "|" + device + "|" + instance; isNewest("gpu " + key) {
				s.gpu["allocated|"+key] = math.Round(number("allocated_mb") * (1 << 20))
				s.gpu["reserved|"+key] = math.Round(number("reserved_mb") * (1 << 20))
			}
		case "snakepit.worker.crash":
			s.crashes[strings.Join([]string{service, text("pool"), text("type"), device}, "|")]++
		case "snakepit.circuit_breaker.open":
			s.openings[service+"|"+text("pool")]++
		case "snakepit.health.alert":
			s.alerts[strings.Join([]string{service, text("pool"), text("alert_type")}, "|")]++
		}
	}
	if begun != nil && !ended {
		// Its worker died. The span above it tells of the same call.
		call := []string{service, begun.Attributes["library"].(string), begun.Attributes["function"].(string), "", "error"}
		s.duration.add(secondsOf(span), call...)
		s.queue.add(float64(wait.Attributes["queue_time"].(int64))/1e9, call...)
		s.serialize.add(float64(encoding.Attributes["duration"].(int64))/1e9, call...)
	}
}

// testCalls compares the series of calls, pools, workers and their memory with
// what was sent.
func testCalls(t *testing.T, j *job) {
	labels := []string{"job", "ml_library", "ml_function", "device", "result"}

	t.Run("snakepit", func(t *testing.T) {
		const jobs = `{job=~"snakepit/.*|unknown_service:erl"}`
		told := snakepitTold(ofScenario(j.sent.Spans, "snakepit"))
		told.duration.await(t, j, "ml_call_duration_seconds", jobs, labels...)
		told.queue.await(t, j, "ml_call_queue_time_seconds", jobs, labels...)
		told.serialize.await(t, j, "ml_call_serialize_time_seconds", jobs, labels...)
		told.python.await(t, j, "ml_call_python_time_seconds", jobs, labels...)
		awaitSums(t, j, "ml_calls_slow_total"+jobs, labels, told.slow)
		pool := []string{"job", "pool", "service_instance_id"}
		awaitSums(t, j, "ml_pool_size", pool, told.size)
		awaitSums(t, j, "ml_pool_busy", pool, told.busy)
		awaitSums(t, j, "ml_pool_idle", pool, told.idle)
		awaitSums(t, j, "ml_memory_allocated_bytes", []string{"job", "type", "device", "service_instance_id"}, told.memory)
		awaitSums(t, j, "ml_gpu_memory_usage_bytes", []string{"kind", "job", "device", "service_instance_id"}, told.gpu)
		awaitSums(t, j, "ml_worker_crashes_total", []string{"job", "pool", "type", "device"}, told.crashes)
		awaitSums(t, j, "ml_breaker_openings_total", []string{"job", "pool"}, told.openings)
		awaitSums(t, j, "ml_health_alerts_total", []string{"job", "pool", "type"}, told.alerts)
	})

	t.Run("tuft", func(t *testing.T) {
		want := observed{}
		for _, span := range ofScenario(j.sent.Spans, "tuft") {
			operation, _ := span.Attributes["tuft.operation_type"].(string)
			failed := span.Status.Code == "error"
			switch span.Name {
			case "future_store.execute_operation":
				// It ends with its status unset, whatever happened.
				failed = len(span.Events) > 0
			case "training_controller.create_model":
				operation = "create_model"
			case "sampling_controller.create_sampling_session":
				operation = "create_sampling_session"
			case "oai.proxy_inference":
				operation = "proxy_inference"
			default:
				continue
			}
			want.add(secondsOf(span), operation, resultOf(failed))
		}
		want.await(t, j, "ml_call_duration_seconds", `{job="tuft"}`, "ml_function", "result")
	})

	t.Run("taskweaver", func(t *testing.T) {
		calls, python, wait := observed{}, observed{}, observed{}
		for _, span := range ofScenario(j.sent.Spans, "taskweaver") {
			switch span.Name {
			case "CodeExecutor.execute_code":
				calls.add(secondsOf(span), "execute_code", resultOf(span.Status.Code == "error"))
			case "load_plugin":
				calls.add(secondsOf(span), "load_plugin", resultOf(span.Status.Code == "error"))
			case "run_code":
				python.add(secondsOf(span), "execute_code")
			case "start":
				wait.add(secondsOf(span), "execute_code")
			}
		}
		const service = `{job="taskweaver.otlp.tracer"}`
		calls.await(t, j, "ml_call_duration_seconds", service, "ml_function", "result")
		python.await(t, j, "ml_call_python_time_seconds", service, "ml_function")
		wait.await(t, j, "ml_call_queue_time_seconds", service, "ml_function")
	})

	t.Run("alerts", func(t *testing.T) {
		for _, alert := range []string{"WorkerCrashed", "BreakerOpened", "WorkerHealthAlert"} {
			series := j.prometheus.AwaitSeries(t, `ALERTS{alertstate="firing", alertname="`+alert+`"}`)
			assert.Equal(t, []string{"default"}, harness.Distinct(series, "pool"), alert)
		}
	})
}
