package points

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// What NCCL said about a run is forgotten, whether the others wait for a rank or not.
func TestWhatNCCLSaidIsForgotten(t *testing.T) {
	s, now := NewSeen(nil), time.Unix(1_800_000_000, 0)
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(mlattr.NCCLCommunicatorSize)
	point := m.SetEmptySum().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(now))
	point.Attributes().PutStr(mlattr.RunID, "r")
	s.Read(md, nil, now)
	s.Settle(nil, now.Add(gpus.GoneAfter))
	assert.Len(t, s.nccl, 1)
	s.Settle(nil, now.Add(gpus.GoneAfter+time.Second))
	assert.Empty(t, s.nccl)
}
