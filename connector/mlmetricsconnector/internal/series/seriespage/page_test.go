// Package seriespage writes the documentation of the connector's series.
package seriespage

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

func TestPageIsGeneratedFromTheTable(t *testing.T) {
	golden.File(t, "../generated_ids.go", ids())
	golden.File(t, "../../../series.md", page(t))
	for _, s := range series.All {
		assert.Contains(t, page(t), "\n## "+s.Name+"\n")
		assert.Contains(t, kinds, s.Kind)
	}
}

// TestPrometheusNames pins the names that dashboards and alerts rely on.
func TestPrometheusNames(t *testing.T) {
	want := map[series.ID]string{
		series.Tokens:                  "ml_tokens_total",
		series.RequestTokenThroughput:  "ml_request_token_throughput_per_second",
		series.Cost:                    "ml_cost_USD_total",
		series.UserCost:                "ml_user_cost_USD_total",
		series.RequestsUnpriced:        "ml_requests_unpriced_total",
		series.RunGPUPrice:             "ml_run_gpu_price_USD_per_hour",
		series.GPUPrice:                "ml_gpu_price_USD_per_hour",
		series.Requests:                "ml_requests_total",
		series.Errors:                  "ml_errors_total",
		series.Steps:                   "ml_steps_total",
		series.Samples:                 "ml_samples_total",
		series.Batches:                 "ml_batches_total",
		series.Epoch:                   "ml_epoch",
		series.Loss:                    "ml_loss",
		series.ValidationMetric:        "ml_validation_metric",
		series.LearningRate:            "ml_learning_rate",
		series.GradientNorm:            "ml_gradient_norm",
		series.Nonfinite:               "ml_nonfinite_total",
		series.LastStepTimestamp:       "ml_run_last_step_timestamp_seconds",
		series.StepDuration:            "ml_step_duration_seconds",
		series.RunTime:                 "ml_run_time_seconds_total",
		series.RunState:                "ml_run_state",
		series.RunAttempts:             "ml_run_attempts_total",
		series.FLOPsPerToken:           "ml_flops_per_token",
		series.CallDuration:            "ml_call_duration_seconds",
		series.CallQueueTime:           "ml_call_queue_time_seconds",
		series.CallSerializeTime:       "ml_call_serialize_time_seconds",
		series.CallPythonTime:          "ml_call_python_time_seconds",
		series.CallTime:                "ml_call_time_seconds_total",
		series.CallsSlow:               "ml_calls_slow_total",
		series.PoolSize:                "ml_pool_size",
		series.PoolBusy:                "ml_pool_busy",
		series.PoolIdle:                "ml_pool_idle",
		series.WorkerCrashes:           "ml_worker_crashes_total",
		series.BreakerOpenings:         "ml_breaker_openings_total",
		series.HealthAlerts:            "ml_health_alerts_total",
		series.MemoryAllocated:         "ml_memory_allocated_bytes",
		series.GPUMemoryUsage:          "ml_gpu_memory_usage_bytes",
		series.GPUIdleTime:             "ml_gpu_idle_time_seconds",
		series.RequestErrorRatio:       "ml_request_error_ratio",
		series.ProblemOnset:            "ml_problem_onset_timestamp_seconds",
		series.ProblemVerdicts:         "ml_problem_verdicts",
		series.RunStepTime:             "ml_run_step_time_seconds",
		series.RunTokenThroughput:      "ml_run_token_throughput_per_second",
		series.RunTimeRatio:            "ml_run_time_ratio",
		series.RunGoodput:              "ml_run_goodput_ratio",
		series.RunBound:                "ml_run_bound",
		series.RunStateTimestamp:       "ml_run_state_timestamp_seconds",
		series.RunLastData:             "ml_run_last_data_timestamp_seconds",
		series.HostLastData:            "ml_host_last_data_timestamp_seconds",
		series.CollectorNotice:         "ml_collector_notice_timestamp_seconds",
		series.RunGPUs:                 "ml_run_gpus",
		series.RunGPUUtilization:       "ml_run_gpu_utilization_ratio",
		series.GenAITokenUsage:         "gen_ai_client_token_usage",
		series.GenAIOperationDuration:  "gen_ai_client_operation_duration_seconds",
		series.GenAIServerDuration:     "gen_ai_server_request_duration_seconds",
		series.GenAITimeToFirstToken:   "gen_ai_server_time_to_first_token_seconds",
		series.GenAITimePerOutputToken: "gen_ai_server_time_per_output_token_seconds",
		series.SpanCalls:               "traces_span_metrics_calls_total",
		series.SpanDuration:            "traces_span_metrics_duration_milliseconds",
	}
	require.Len(t, want, len(series.All))
	for id, name := range want {
		assert.Equal(t, name, prometheusName(t, series.All[id]))
	}
}

// ids returns the constants of the table's ids.
func ids() string {
	var b strings.Builder
	b.WriteString(`// Code generated from series.yaml by "go generate". DO NOT EDIT.

package series

// The series, in the order of the table.
const (
`)
	for i, s := range series.All {
		b.WriteString("\t" + s.ID)
		if i == 0 {
			b.WriteString(" ID = iota")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n\t// Count is the number of series.\n\tCount\n)\n")
	return b.String()
}

// kinds are the kinds as the page names them.
var kinds = map[series.Kind]string{
	series.Counter: "counter", series.Gauge: "gauge", series.Histogram: "histogram", series.Total: "counter",
	series.State: "up-down counter", series.Balance: "up-down counter",
}

// page returns the documentation of the table as Markdown.
func page(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`# Series of the ml_metrics connector

<!-- Generated from internal/series by "go generate". Do not edit. -->

Every series has ` + "`service.name`" + ` (and ` + "`service.namespace`" + `) on its resource. Its points
have its own labels and, where they are known, those of the run, which come last here: *all* is
` + codeList(series.RunLabels) + `;
*stated* is all of them without a run id that was computed for a single trace; *named* is
what the description names. Series with ` + "`ml.run.id`" + ` alone or *named* are computed for each
emission, and a stream without a value ends.

A stream with ` + "`" + series.Overflow + "`" + ` = true adds up the updates beyond a limit. Counters and
histograms are cumulative. A gauge has the value of the span that ended last, an up-down
counter the current value. The Prometheus names are the defaults of the prometheus exporter.

`)
	for _, s := range series.All {
		name := prometheusName(t, s)
		fmt.Fprintf(&b, "- [`%s`](#%s): `%s`, %s", s.Name, anchor(s.Name), name, kinds[s.Kind])
		if s.Unit != "" {
			b.WriteString(", `" + s.Unit + "`")
		}
		if len(s.Labels) > 0 {
			b.WriteString("; " + codeList(s.Labels))
		}
		b.WriteString("; " + runLabels(&s) + "\n")
	}
	var bounds []string
	named := make(map[string][]string)
	for _, s := range series.All {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.Name, s.Description)
		if s.OptIn != "" {
			fmt.Fprintf(&b, "\nOnly with `%s`.\n", s.OptIn)
		}
		if len(s.Buckets) == 0 {
			continue
		}
		list := numbers(s.Buckets)
		if s.WholeOnly != "" {
			list += fmt.Sprintf(" where `%s` is `%s`; other streams have only a count and a sum", s.Labels[0], s.WholeOnly)
		}
		if len(named[list]) == 0 {
			bounds = append(bounds, list)
		}
		named[list] = append(named[list], s.Name)
	}
	b.WriteString("\n## Buckets\n\nThe upper bounds of the histograms.\n\n")
	for _, list := range bounds {
		fmt.Fprintf(&b, "- %s: %s.\n", codeList(named[list]), list)
	}
	return b.String()
}

// runLabels returns which labels of a run a series has, as the page calls them.
func runLabels(s *series.Series) string {
	switch {
	case s.Momentary && s.NoRun:
		return "named"
	case s.Momentary:
		return "`ml.run.id`"
	case s.NoRun:
		return "`host.name`"
	case s.EveryRun:
		return "all"
	default:
		return "stated"
	}
}

// numbers lists the bounds of buckets, or says how they grow.
func numbers(bounds []float64) string {
	ratio := bounds[1] / bounds[0]
	grows := len(bounds) > 3
	for i := 1; i < len(bounds); i++ {
		grows = grows && math.Abs(bounds[i]/bounds[i-1]-ratio) < 1e-9
	}
	if grows {
		show := func(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }
		return fmt.Sprintf("%s to %s, each %s times the one before", show(bounds[0]), show(bounds[len(bounds)-1]), show(ratio))
	}
	list := make([]string, len(bounds))
	for i, bound := range bounds {
		list[i] = strconv.FormatFloat(bound, 'g', -1, 64)
	}
	return strings.Join(list, ", ")
}

// prometheusName returns the name that the prometheus exporter gives a series.
func prometheusName(t *testing.T, s series.Series) string {
	t.Helper()
	types := map[series.Kind]otlptranslator.MetricType{
		series.Counter:   otlptranslator.MetricTypeMonotonicCounter,
		series.Total:     otlptranslator.MetricTypeMonotonicCounter,
		series.State:     otlptranslator.MetricTypeNonMonotonicCounter,
		series.Balance:   otlptranslator.MetricTypeNonMonotonicCounter,
		series.Gauge:     otlptranslator.MetricTypeGauge,
		series.Histogram: otlptranslator.MetricTypeHistogram,
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(otlptranslator.Metric{Name: s.Name, Unit: s.Unit, Type: types[s.Kind]})
	require.NoError(t, err, s.Name)
	return name
}

// anchor returns the fragment that Markdown renderers give a heading.
func anchor(name string) string { return strings.ReplaceAll(name, ".", "") }

func codeList(names []string) string {
	return "`" + strings.Join(names, "`, `") + "`"
}
