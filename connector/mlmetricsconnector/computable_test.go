package mlmetricsconnector

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestWhatIsComputable holds what docs/evidence/vocabulary-notes.md says of each system against what
// its spans become: these series and states, and no others.
func TestWhatIsComputable(t *testing.T) {
	training := []string{"ml.run.attempts", "ml.run.last_step.timestamp", "ml.run.state", "ml.run.state.timestamp", "ml.run.last_data.timestamp", "ml.steps"}
	timed := append(slices.Clone(training), "ml.run.time", "ml.step.duration", "ml.run.step.time", "ml.run.time.ratio", "ml.run.goodput", "ml.run.bound")
	for system, tt := range map[string]struct{ series, states, losses []string }{
		"torchtel": {timed, []string{"productive", "data_load", "other", "unknown"}, nil},
		"tuft": {
			append(slices.Clone(timed), "ml.samples", "ml.learning_rate", "ml.requests", "ml.request.error.ratio"),
			[]string{"productive", "checkpoint", "checkpoint_restore", "queue", "idle", "unknown"}, nil,
		},
		"taskweaver": {[]string{"ml.tokens", "ml.requests", "ml.request.error.ratio"}, nil, nil},
		"snakepit": {
			append(slices.Clone(training), "ml.samples", "ml.loss", "ml.epoch", "ml.learning_rate", "ml.nonfinite", "ml.requests", "ml.request.error.ratio", "ml.request.token.throughput"),
			nil, []string{"batch"},
		},
		"fx": {
			append(slices.Clone(timed), "ml.samples", "ml.batches", "ml.loss", "ml.epoch", "ml.validation.metric", "ml.nonfinite"),
			[]string{"productive", "validation", "data_load", "idle", "unknown"}, []string{"batch", "epoch", "validation"},
		},
	} {
		t.Run(system, func(t *testing.T) {
			folder := filepath.Join("testdata", "computable_"+system)
			md := metricsFrom(t, folder, golden.ReadTraces(t, filepath.Join(folder, "input.txt")))
			var found []string
			for m := range metricsOf(md) {
				if !strings.HasPrefix(m.Name(), "ml.call") && !strings.HasPrefix(m.Name(), "ml.host") { // those are of any client
					found = append(found, m.Name())
				}
			}
			assert.ElementsMatch(t, tt.series, found)
			assert.ElementsMatch(t, tt.states, valuesOf(md, "ml.run.time", "ml.run.state"))
			assert.ElementsMatch(t, tt.losses, valuesOf(md, "ml.loss", "ml.loss.scope"))
		})
	}
}

// valuesOf is the distinct values of a label of a metric.
func valuesOf(md pmetric.Metrics, name, label string) (values []string) {
	add := func(points pmetric.NumberDataPointSlice) {
		for _, p := range points.All() {
			if v, ok := p.Attributes().Get(label); ok && !slices.Contains(values, v.Str()) {
				values = append(values, v.Str())
			}
		}
	}
	for m := range metricsOf(md) {
		switch {
		case m.Name() != name:
		case m.Type() == pmetric.MetricTypeSum:
			add(m.Sum().DataPoints())
		case m.Type() == pmetric.MetricTypeGauge:
			add(m.Gauge().DataPoints())
		}
	}
	return values
}
