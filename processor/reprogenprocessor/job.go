package reprogenprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// The lengths of an id that is used to join and of a rank, which is a number;
// a longer one is none.
const (
	maxID   = 256
	maxRank = 20
)

// jobOf returns the run that a failure is part of and its rank there, or "".
// Only ids that all ranks of a run have count: one that was inferred from a
// process, and the job 0 that TorchTel names outside Slurm, are none.
func jobOf(l *located) (run, rank string) {
	maps := [...]pcommon.Map{l.span.Attributes(), l.resource.Attributes()}
	inferred := false
	for _, m := range maps {
		if v, ok := m.Get(mlattr.RunInferred); ok && v.Type() == pcommon.ValueTypeBool && v.Bool() {
			inferred = true
		}
	}
	keys := []string{mlattr.TrainingRunID, mlattr.RunID, mlattr.JobID, "job_id"}
	if inferred {
		keys = []string{mlattr.TrainingRunID, mlattr.JobID, "job_id"}
	}
	run = idOf(maps[:], keys...)
	rank = idOf(maps[:], attrRank, mlattr.RankGlobal, "global_rank")
	return run, rank
}

// idOf returns the first of the keys that has a value which can be an id.
func idOf(maps []pcommon.Map, keys ...string) string {
	for _, k := range keys {
		for _, m := range maps {
			v, ok := m.Get(k)
			if !ok {
				continue
			}
			text, whole := mlattr.Text(v, maxID)
			if !whole {
				continue
			}
			isRank := k == attrRank || k == mlattr.RankGlobal || k == "global_rank"
			if isRank && len(text) > maxRank {
				continue
			}
			if text != "" && (isRank || text != "0" && text != "none" && text != "-") {
				return strings.Clone(text)
			}
		}
	}
	return ""
}

// correlationOf returns the id by which Snakepit ties the spans of two
// processes together that have no common trace, or "".
func correlationOf(attributes pcommon.Map) string {
	return idOf([]pcommon.Map{attributes}, attrSnakepitCorrelation, attrCorrelation)
}
