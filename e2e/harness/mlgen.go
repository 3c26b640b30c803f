package harness

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// Workload says what the workload generator shall send.
type Workload struct {
	// Seed decides the data, ids included.
	Seed int64
	// Scenarios is a list with commas, or "all".
	Scenarios string
	// Duration is how long it sends.
	Duration time.Duration
	// Rate is the number of steps a second of each scenario.
	Rate float64
	// Ranks is the number of training processes of the TorchTel scenario.
	Ranks int
}

// Generate runs the workload generator to its end and returns its log of what
// the collector has accepted. Each scenario uses the transport that its system
// uses, so the collector needs OTLP receivers for both. The test fails if
// anything was refused.
func Generate(tb testing.TB, collector *Collector, workload Workload) *sentlog.Log {
	tb.Helper()
	sent := filepath.Join(tb.TempDir(), "sent.jsonl")
	code, output := Run(tb, Command{
		Name: "mlgen",
		Path: Binary(tb, "build", "bin", "mlgen"),
		Args: []string{
			"--scenario", workload.Scenarios,
			"--seed", strconv.FormatInt(workload.Seed, 10),
			"--duration", workload.Duration.String(),
			"--rate", fmt.Sprint(workload.Rate),
			"--ranks", strconv.Itoa(workload.Ranks),
			"--endpoint", collector.Address(tb, "receivers::otlp::protocols::grpc"),
			"--http-endpoint", "http://" + collector.Address(tb, "receivers::otlp::protocols::http"),
			"--sent", sent,
		},
	}, workload.Duration+StartTimeout)
	if code != 0 {
		tb.Fatalf("mlgen ended with %d:\n%s", code, output)
	}
	log, err := sentlog.ReadFile(sent)
	if err != nil {
		tb.Fatalf("the log of what mlgen sent: %v", err)
	}
	if log.Summary == nil || len(log.Rejected) > 0 {
		tb.Fatalf("mlgen did not send all it had: summary %v, %d requests rejected:\n%s", log.Summary, len(log.Rejected), output)
	}
	return log
}
