package mlenrichprocessor

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// The metrics that are added to GPUs', the attribute of their own, and how long
// what they need holds.
const (
	runInfo         = "ml.run.info"
	memoryBreakdown = "ml.gpu.memory.breakdown"
	memoryKind      = "ml.gpu.memory.kind"
	liveAge         = 5 * time.Minute
	memoryAge       = 2 * time.Minute
)

// sentSpanID identifies a span that was sent.
type sentSpanID struct {
	trace [16]byte
	span  [8]byte
}

// keyNames are the attributes that spans share, by their names in
// ml.correlation.source.
var keyNames = map[string]string{
	"session":          mlattr.SessionID,
	"conversation":     mlattr.GenAIConversationID,
	"run":              mlattr.RunID,
	"training_run":     mlattr.TrainingRunID,
	"sampling_session": mlattr.SamplingSessionID,
	"request":          mlattr.RequestID,
}

// fromParents are the attributes that came from a parent, by what
// ml.correlation.source says.
func fromParents(source string) (names []string) {
	for part := range strings.SplitSeq(source, ",") {
		key, from, _ := strings.Cut(part, "=")
		if from != "parent" || keyNames[key] == "" {
			continue
		}
		names = append(names, keyNames[key])
		if key == "run" {
			names = append(names, mlattr.RunInferred)
		}
	}
	return names
}

func readID(attrs pcommon.Map, key string) string {
	v, ok := attrs.Get(key)
	if !ok {
		return ""
	}
	id, _ := mlattr.ReadID(v)
	return id
}

// eachPoint visits the attributes of a metric's points, whatever its type.
func eachPoint(m pmetric.Metric, visit func(pcommon.Map)) {
	for point := range mlattr.Points(m) {
		visit(point.Attributes)
	}
}
