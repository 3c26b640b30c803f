package incident

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
)

const (
	// MaxID is the length of an id that is used to join. A longer one is not an id.
	MaxID = 256
	// MaxRank is the length of a rank, which is a number.
	MaxRank = 20
)

var (
	rankKeys        = []string{attr.Rank, mlattr.RankGlobal, "global_rank"}
	correlationKeys = vocabulary.Calls().Correlation
)

// RunOf returns the run that a span is part of and its rank there, or "".
func RunOf(span, resource pcommon.Map) (run, rank string) {
	return strings.Clone(vocabulary.RunOf(span, resource)), firstID(MaxRank, rankKeys, span, resource)
}

// CorrelationOf returns the id by which the spans of one call are joined that
// have no common trace, or "".
func CorrelationOf(span pcommon.Map) string {
	id := firstID(MaxID, correlationKeys, span)
	if mlattr.Sentinel(id) {
		return ""
	}
	return id
}

// firstID returns a copy of the first value that is an id of at most limit bytes.
func firstID(limit int, keys []string, maps ...pcommon.Map) string {
	for _, k := range keys {
		for _, m := range maps {
			v, ok := m.Get(k)
			if !ok {
				continue
			}
			if text, whole := mlattr.Text(v, limit); whole && text != "" {
				return strings.Clone(text)
			}
		}
	}
	return ""
}
