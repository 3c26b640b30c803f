package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

func TestFXVocabulary(t *testing.T) {
	out := send(t, "fx", 100)
	assert.Equal(t, []string{
		"batch_processing", "batch_{n}", "data_loading", "epoch_{n}", "feature_engineering",
		"training_epoch", "validation", "validation_{n}",
	}, names(out.spans))
	assert.Equal(t, []string{
		"batch_index", "batch_size", "epoch", "error.message", "error.type", "feature_count", "loss", "loss_at_step_{n}",
		"num_samples", "pair", "step", "task.direction", "task.return", "task.volatility", "total_epochs", "train_loss",
		"val.dir_acc", "val.loss", "val.ret_rmse", "val.vol_acc", "val_loss", "val_metric",
	}, keys(out.spans))
	assert.Empty(t, out.metrics)
	assert.Empty(t, out.logs, "the toolkit's log records stay in the process")
	services := map[any]bool{}
	for _, span := range out.spans {
		services[span.Resource["service.name"]] = true
		assert.Equal(t, "train.core.agent_train_multitask", span.Scope.Name)
	}
	assert.Equal(t, map[any]bool{"fx-forecasting": true, "unknown_service:python": true}, services)
}

// fxRuns returns the spans of the named service's first run in each way: the
// documented names, the multi-task loop, and nested spans.
func fxRuns(out sent) (documented, multiTask, nested []*sentlog.Span) {
	named := out.matching(func(s *sentlog.Span) bool { return s.Resource["service.name"] == "fx-forecasting" })
	loads := 0
	for _, span := range named {
		if span.Name == "data_loading" {
			loads++
		}
		switch {
		case loads > 2*len(fxPairs):
			// The next run in the first way.
			return documented, multiTask, nested
		case strings.ContainsAny(template(span.Name), "{"):
			multiTask = append(multiTask, span)
		case len(multiTask) == 0:
			documented = append(documented, span)
		default:
			nested = append(nested, span)
		}
	}
	return documented, multiTask, nested
}

func TestFXRootsAndChildren(t *testing.T) {
	documented, multiTask, nested := fxRuns(send(t, "fx", 85))
	traces := map[string]bool{}
	for _, span := range append(documented, multiTask...) {
		assert.Empty(t, span.ParentSpanID, span.Name)
		assert.False(t, traces[span.TraceID], "a trace with two spans")
		traces[span.TraceID] = true
	}
	require.NotEmpty(t, nested)
	order := map[string]int{}
	for i, span := range nested {
		order[span.SpanID] = i
	}
	for i, span := range nested {
		switch span.Name {
		case "batch_processing", "validation":
			require.Contains(t, order, span.ParentSpanID)
			parent := nested[order[span.ParentSpanID]]
			assert.Equal(t, "training_epoch", parent.Name)
			assert.Greater(t, order[parent.SpanID], i, "an epoch is sent after its parts")
		default:
			assert.Empty(t, span.ParentSpanID, span.Name)
		}
	}
}

// TestFXLossesFall compares the epochs of a run.
func TestFXLossesFall(t *testing.T) {
	var losses []float64
	for _, span := range send(t, "fx", 30).named("training_epoch") {
		losses = append(losses, span.Attributes["train_loss"].(float64))
		assert.Greater(t, span.Attributes["val_loss"], span.Attributes["train_loss"])
	}
	require.Len(t, losses, 3)
	assert.Greater(t, losses[0], losses[1])
	assert.Greater(t, losses[1], losses[2])
}

// TestFXAttributeLimit shows the wide epochs that lose their number.
func TestFXAttributeLimit(t *testing.T) {
	out := send(t, "fx", 60)
	wide := out.matching(func(s *sentlog.Span) bool {
		return template(s.Name) == "epoch_{n}" && s.Attributes["train_loss"] != nil
	})
	require.NotEmpty(t, wide)
	for _, span := range wide {
		assert.Len(t, span.Attributes, 128)
		assert.NotContains(t, span.Attributes, "epoch")
		// The number, 140 losses, two results and four metrics.
		assert.Equal(t, uint32(147-128), span.DroppedAttributes)
		assert.Contains(t, span.Attributes, fmt.Sprintf("loss_at_step_%d", fxBatches*fxMicroSteps))
		assert.Equal(t, span.Attributes["val_loss"], span.Attributes["val.loss"])
	}
	for _, span := range out.named("training_epoch") {
		assert.Contains(t, span.Attributes, "epoch")
	}
}

func TestFXValidationTakesNoTime(t *testing.T) {
	out := send(t, "fx", 60)
	validations := append(out.named("validation"), out.matching(func(s *sentlog.Span) bool { return template(s.Name) == "validation_{n}" })...)
	require.Greater(t, len(validations), 6)
	for _, span := range validations {
		assert.Less(t, span.EndUnixNano-span.StartUnixNano, int64(50_000))
	}
}

// TestFXErrors shows a failed batch in each way: two attributes and a status, an
// event as well where the span is current, and nothing at all in the multi-task
// loop.
func TestFXErrors(t *testing.T) {
	out := send(t, "fx", 400)
	failed := out.matching(func(s *sentlog.Span) bool { return s.Status.Code == "error" })
	assert.Equal(t, out.truth.FailureCount, int64(len(failed)))
	events := map[int]int{}
	for _, span := range failed {
		assert.Equal(t, "batch_processing", span.Name)
		assert.NotEmpty(t, span.Attributes["error.type"])
		assert.NotEmpty(t, span.Attributes["error.message"])
		assert.NotContains(t, span.Attributes, "loss")
		events[len(span.Events)]++
		assert.Equal(t, span.ParentSpanID != "", len(span.Events) == 1)
	}
	assert.NotZero(t, events[0])
	assert.NotZero(t, events[1])

	silent := out.matching(func(s *sentlog.Span) bool { return template(s.Name) == "batch_{n}" && s.Attributes["loss"] == nil })
	require.NotEmpty(t, silent)
	for _, span := range silent {
		assert.Equal(t, "unset", span.Status.Code)
		assert.Empty(t, span.Events)
		assert.Contains(t, span.Attributes, "step")
	}
	early := out.matching(func(s *sentlog.Span) bool {
		return template(s.Name) == "epoch_{n}" && s.Attributes["train_loss"] == nil
	})
	assert.Len(t, early, len(silent), "the program ends with the batch, and so does its epoch")
}

// TestFXSteps shows that the multi-task loop counts from 1 in each epoch.
func TestFXSteps(t *testing.T) {
	_, multiTask, _ := fxRuns(send(t, "fx", 85))
	epoch, last := 0, int64(0)
	for _, span := range multiTask {
		step, ok := span.Attributes["step"].(int64)
		if !ok {
			continue
		}
		assert.Equal(t, fmt.Sprintf("batch_%d", step), span.Name)
		if step == 1 {
			epoch++
			last = 0
		}
		assert.Equal(t, last+1, step)
		last = step
	}
	assert.Greater(t, epoch, 1)
}

func TestFXTruth(t *testing.T) {
	out := send(t, "fx", 85)
	assert.Equal(t, map[string]int64{"fx-forecasting": 85, "unknown_service:python": 85}, out.truth.Batches)
	epochs, validations := map[string]int64{}, map[string]int64{}
	for _, span := range out.spans {
		service := span.Resource["service.name"].(string)
		switch template(span.Name) {
		case "epoch_{n}", "training_epoch":
			epochs[service]++
		case "validation_{n}", "validation":
			validations[service]++
		}
	}
	assert.Equal(t, epochs, out.truth.Epochs)
	assert.Equal(t, validations, out.truth.Validations)
}
