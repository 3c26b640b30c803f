package spanfact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// RunIDs are the ids of a run that the canonical attributes of a span or a resource state.
type RunIDs struct {
	run, training string
	inferred      bool
}

// ReadAttribute reads an attribute and reports whether it is one of those that state a run.
func (r *RunIDs) ReadAttribute(key string, v pcommon.Value) bool {
	switch key {
	case mlattr.RunID:
		r.run = idOf(v)
	case mlattr.TrainingRunID:
		r.training = idOf(v)
	case mlattr.RunInferred:
		r.inferred = v.Type() == pcommon.ValueTypeBool && v.Bool()
	default:
		return false
	}
	return true
}

// Named returns the id of the run, or "", and whether it was computed and nobody sent it. It
// is what Facts.NamedRun returns.
func (r *RunIDs) Named() (id string, inferred bool) {
	return vocabulary.NamedRun(r.run, true, r.inferred, r.training)
}

// idOf returns the id that a value has, or "".
func idOf(v pcommon.Value) string {
	id, ok := mlattr.ReadID(v)
	if !ok {
		return ""
	}
	return id
}
