package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// The services of the example, one for each way of tracing. The first is what
// the SDK calls a process that has no name.
const (
	fxNumbered   = "unknown_service:python"
	fxDocumented = "fx-forecasting"
	fxNested     = "fx-nested"
)

// TestFX trains a forecaster with the ways of tracing of the forecasting
// toolkit. Spans go to "/", as there. An epoch has more batches than a span may
// have attributes.
func TestFX(t *testing.T) {
	did := harness.RunExample(t, harness.Example{
		Name:     "fx",
		Args:     []string{"--steps", "130", "--url-as-given"},
		Endpoint: rootURL,
	})
	require.Equal(t, []string{fxNumbered, fxDocumented, fxNested}, did.Services)
	spans := jaeger.AwaitSpanCounts(t, did.Services, did.Spans)
	of := map[string][]harness.StoredSpan{}
	for _, span := range spans {
		service := fmt.Sprint(span.Resource["service.name"])
		of[service] = append(of[service], span)
	}

	t.Run("phases", func(t *testing.T) {
		for _, span := range spans {
			checkFXPhase(t, span)
		}
	})

	t.Run("spans of one trace", func(t *testing.T) {
		for _, span := range named(of[fxNested], "batch_processing") {
			assert.False(t, span.Span.ParentSpanID().IsEmpty())
		}
		for _, span := range named(of[fxNested], "validation") {
			assert.False(t, span.Span.ParentSpanID().IsEmpty())
		}
	})

	t.Run("numbered spans are named by their template and number", func(t *testing.T) {
		for _, span := range of[fxNumbered] {
			require.True(t, span.Span.ParentSpanID().IsEmpty(), "%s is no root", span.Span.Name())
			kind, number, _ := strings.Cut(span.Span.Name(), "_")
			assert.Equal(t, kind+"_{n}", span.Attributes["ml.operation"])
			switch kind {
			case "epoch", "validation":
				assert.Equal(t, number, fmt.Sprint(span.Attributes["ml.epoch"]), span.Span.Name())
			case "batch":
				assert.Equal(t, number, fmt.Sprint(span.Attributes["ml.step"]), span.Span.Name())
			}
		}
		epoch := named(spans, "epoch_1")[0]
		assert.NotContains(t, epoch.Attributes, "epoch", "the SDK has kept what it did not: the example is too small")
		assert.Positive(t, epoch.Span.DroppedAttributesCount())
	})

	t.Run("one run a process", func(t *testing.T) {
		runs := map[string]bool{}
		for service, spans := range of {
			ids := values(spans, "ml.run.id")
			assert.Len(t, ids, 1, service)
			assert.NotContains(t, ids, "")
			for id := range ids {
				runs[id] = true
			}
		}
		assert.Len(t, runs, 3)
	})

	t.Run("batches and losses", func(t *testing.T) {
		services := floats(did.Steps)
		require.Len(t, services, 3)
		jobs := `job=~"unknown_service:python|fx-forecasting|fx-nested"`
		prometheus.AwaitValues(t, `sum by (job) (ml_batches_total{`+jobs+`})`, "job", services)
		for _, loss := range did.Losses {
			prometheus.AwaitValues(t,
				fmt.Sprintf(`ml_loss{job=%q, ml_loss_scope=%q, ml_task=%q}`, loss.Service, loss.Scope, loss.Task),
				"ml_task", map[string]float64{loss.Task: loss.Value})
		}
		for service, metrics := range map[string][]string{fxNumbered: {"dir_acc", "ret_rmse"}, fxDocumented: {"ret_rmse"}, fxNested: {"ret_rmse"}} {
			series := prometheus.AwaitSeries(t, fmt.Sprintf(`ml_validation_metric{job=%q}`, service))
			assert.Subset(t, harness.Distinct(series, "ml_metric"), metrics, service)
		}
		prometheus.AwaitValues(t, `ml_epoch{`+jobs+`}`, "job", map[string]float64{fxNumbered: 2, fxDocumented: 2, fxNested: 2})
	})

	t.Run("the failed batch", func(t *testing.T) {
		require.Len(t, did.Errors, 1)
		span, artifact := awaitFailure(t, spans, did.Errors[0])
		assert.Equal(t, did.Errors[0].Type, span.Attributes["error.type"])
		assert.Equal(t, did.Errors[0].Message, span.Attributes["error.message"])
		// Nobody sent the call, so there is something to read and nothing to run.
		verdict, output := harness.Reproduce(t, artifact.Script(), "")
		assert.Equal(t, harness.CannotRun, verdict, output)
		assert.Contains(t, output, did.Errors[0].Message)
	})

	t.Run("log records", func(t *testing.T) {
		byService := map[string][]plog.LogRecord{}
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			clear(byService)
			for _, record := range logs.LogRecords() {
				if name, ok := record.Attributes().Get("otelServiceName"); ok {
					byService[name.Str()] = append(byService[name.Str()], record)
				}
			}
			for _, service := range did.Services {
				assert.Len(c, byService[service], int(did.Numbers["logs "+service]), service)
			}
		}, harness.ArrivalTimeout, harness.ArrivalPoll)

		for _, record := range slices.Concat(byService[fxNumbered], byService[fxDocumented]) {
			id, _ := record.Attributes().Get("otelTraceID")
			assert.Equal(t, "0", id.Str(), "no span was current")
			assert.True(t, record.TraceID().IsEmpty())
		}
		traces := map[string]bool{}
		for _, span := range of[fxNested] {
			traces[span.Span.TraceID().String()] = true
		}
		for _, record := range byService[fxNested] {
			id, _ := record.Attributes().Get("otelTraceID")
			assert.Equal(t, record.TraceID().String(), id.Str())
			assert.True(t, traces[id.Str()], "no span is of trace %s", id.Str())
		}
	})

	t.Run("the live page", func(t *testing.T) { view.AwaitParity(t, collector) })
}

// checkFXPhase expects a span to have the phase of its name.
func checkFXPhase(t *testing.T, span harness.StoredSpan) {
	t.Helper()
	phase := map[string]any{
		"epoch_": "epoch", "batch_": "batch", "validation_": "validation",
		"training_epoch": "epoch", "batch_processing": "batch", "validation": "validation",
		"data_loading": "data_load",
	}[strings.TrimRight(span.Span.Name(), "0123456789")]
	got, _ := span.Attribute("ml.phase")
	assert.Equal(t, phase, got, span.Span.Name())
}
