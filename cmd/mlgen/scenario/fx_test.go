package scenario

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

func TestFXVocabulary(t *testing.T) {
	out := send(t, "fx", 60)
	assert.Equal(t, []string{
		"batch_processing", "batch_{n}", "data_loading", "epoch_{n}", "feature_engineering",
		"training_epoch", "validation", "validation_{n}",
	}, names(out.spans))
	assert.Equal(t, []string{
		"batch_index", "batch_size", "epoch", "error.message", "error.type", "feature_count", "loss", "loss_at_step_{n}",
		"num_samples", "pair", "step", "task.direction", "task.volatility", "total_epochs", "train_loss",
		"val.direction", "val.loss", "val.mae", "val.volatility", "val_loss", "val_metric",
	}, keys(out.spans))
	assert.Empty(t, out.metrics)
	services := map[any]bool{}
	for _, span := range out.spans {
		services[span.Resource["service.name"]] = true
	}
	assert.Equal(t, map[any]bool{"fx-forecasting": true, "unknown_service": true}, services)
}

func TestFXEverySpanIsARoot(t *testing.T) {
	traces := map[string]bool{}
	for _, span := range send(t, "fx", 60).spans {
		assert.Empty(t, span.ParentSpanID)
		assert.False(t, traces[span.TraceID], "a trace with two spans")
		traces[span.TraceID] = true
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
	out := send(t, "fx", 40)
	wide := out.matching(func(s *sentlog.Span) bool { return template(s.Name) == "epoch_{n}" })
	require.NotEmpty(t, wide)
	for _, span := range wide {
		assert.Len(t, span.Attributes, 128)
		assert.NotContains(t, span.Attributes, "epoch")
		assert.Equal(t, uint32(13), span.DroppedAttributes)
		assert.Contains(t, span.Attributes, fmt.Sprintf("loss_at_step_%d", fxBatches*fxMicroSteps-1))
	}
	for _, span := range out.named("training_epoch") {
		assert.Contains(t, span.Attributes, "epoch")
	}
}

func TestFXValidationTakesNoTime(t *testing.T) {
	out := send(t, "fx", 40)
	validations := append(out.named("validation"), out.matching(func(s *sentlog.Span) bool { return template(s.Name) == "validation_{n}" })...)
	require.Len(t, validations, 8)
	for _, span := range validations {
		assert.Less(t, span.EndUnixNano-span.StartUnixNano, int64(50_000))
	}
}

func TestFXErrors(t *testing.T) {
	out := send(t, "fx", 200)
	failed := out.matching(func(s *sentlog.Span) bool { return s.Status.Code == "error" })
	require.NotEmpty(t, failed)
	assert.Equal(t, out.truth.FailureCount, int64(len(failed)))
	for _, span := range failed {
		assert.NotEmpty(t, span.Attributes["error.type"])
		assert.NotEmpty(t, span.Attributes["error.message"])
		assert.Empty(t, span.Events, "the toolkit records no event")
	}
}

// TestFXNaming shows the runs of the named service: the documented naming, then
// the multi-task loop's.
func TestFXNaming(t *testing.T) {
	out := send(t, "fx", 60)
	named := out.matching(func(s *sentlog.Span) bool { return s.Resource["service.name"] == "fx-forecasting" })
	assert.Contains(t, names(named), "training_epoch")
	assert.Contains(t, names(named), "epoch_{n}")
	unnamed := out.matching(func(s *sentlog.Span) bool { return s.Resource["service.name"] == "unknown_service" })
	assert.NotContains(t, names(unnamed), "training_epoch")
	assert.Equal(t, map[string]int64{"fx-forecasting": 60, "unknown_service": 60}, out.truth.Batches)
	assert.Equal(t, map[string]int64{"fx-forecasting": 6, "unknown_service": 6}, out.truth.Epochs)
}
