package incident

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
)

// MaxID is the length of an id that is used to join. A longer one is not an id.
const MaxID = 256

// MaxRank is the length of a rank, which is a number.
const MaxRank = 20

// Names of the attribute by which the spans of one call in several processes are
// joined.
const (
	attrSnakepitCorrelation = "snakepit.correlation_id"
	attrCorrelation         = "correlation_id"
)

// RunOf returns the run that a span is part of and its rank there, or "". Only
// ids that all ranks of a run have count: not one that was inferred from a
// process.
func RunOf(span, resource pcommon.Map) (run, rank string) {
	maps := [...]pcommon.Map{span, resource}
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
	isID := func(text string) bool { return text != "0" && text != "none" && text != "-" }
	run = firstID(maps[:], MaxID, isID, keys...)
	rank = firstID(maps[:], MaxRank, func(string) bool { return true }, attr.Rank, mlattr.RankGlobal, "global_rank")
	return run, rank
}

// CorrelationOf returns the id by which the spans of one call are joined that
// have no common trace, or "".
func CorrelationOf(span pcommon.Map) string {
	isID := func(text string) bool { return text != "0" && text != "none" && text != "-" }
	return firstID([]pcommon.Map{span}, MaxID, isID, attrSnakepitCorrelation, attrCorrelation)
}

// firstID returns a copy of the first value that is an id of at most limit bytes.
func firstID(maps []pcommon.Map, limit int, isID func(string) bool, keys ...string) string {
	for _, k := range keys {
		for _, m := range maps {
			v, ok := m.Get(k)
			if !ok {
				continue
			}
			if text, whole := mlattr.Text(v, limit); whole && text != "" && isID(text) {
				return strings.Clone(text)
			}
		}
	}
	return ""
}
