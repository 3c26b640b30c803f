package mllinesconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
)

// batchLines is the number of records of a request, as file_log sends them.
const batchLines = 100

func benchmark(b *testing.B, line func(n int) string) {
	b.Helper()
	c, err := newLines(connectortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), alone(), consumertest.NewNop())
	require.NoError(b, err)
	n, at := 0, time.Now().Add(-time.Hour)
	request := func() plog.Logs {
		ld := plog.NewLogs()
		records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for range batchLines {
			n++
			record := records.AppendEmpty()
			record.Body().SetStr(line(n))
			record.SetObservedTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(n) * time.Millisecond)))
			record.Attributes().PutStr("log.file.path", "/data/exp7/train.log")
		}
		return ld
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		ld := request()
		b.StartTimer()
		if err := c.ConsumeLogs(b.Context(), ld); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*batchLines)/b.Elapsed().Seconds(), "lines/s")
}

// BenchmarkOtherLines reads lines that say nothing of a training.
func BenchmarkOtherLines(b *testing.B) {
	benchmark(b, func(n int) string {
		return fmt.Sprintf(`10.0.%d.7 - - [28/Nov/2026:17:00:00 +0000] "GET /api/v1/items/%d?page=2 HTTP/1.1" 200 5123 "-" "Mozilla/5.0 (X11; Linux x86_64)"`, n%256, n)
	})
}

// BenchmarkStepLines reads lines of which each is a step.
func BenchmarkStepLines(b *testing.B) {
	benchmark(b, func(n int) string {
		return fmt.Sprintf(" [2026-03-01 12:00:00.000000] iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): 1147.6 | learning rate: 1.000000E-04 | global batch size:    16 | lm loss: 7.100000E+00 | loss scale: 1.0 | grad norm: 1.200 | number of skipped iterations:   0 | number of nan iterations:   0 |", n, 1<<30, n*16)
	})
}
