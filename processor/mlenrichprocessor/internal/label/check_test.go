package label

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// BenchmarkCheck checks a point of six attributes of which nothing is wrong.
func BenchmarkCheck(b *testing.B) {
	problems, now := make(Problems), time.Now()
	attrs := pcommon.NewMap()
	for _, key := range []string{"gen_ai.request.model", "ml.run.id", "ml.rank.global", "host.name", "kind", "ml.job.id"} {
		attrs.PutStr(key, "value of it")
	}
	b.ReportAllocs()
	for b.Loop() {
		problems.Check(&mlattr.Point{Attributes: attrs, At: pcommon.NewTimestampFromTime(now)}, true, now)
	}
}
