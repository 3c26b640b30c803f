package harness

import (
	"fmt"
	"math"
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
	// Scenarios is a list with commas, or "all"; none where it is empty and there
	// are incidents or a fleet.
	Scenarios string
	// Incidents is a list with commas, or "all"; none where it is empty.
	Incidents string
	// Fleet is the size of a healthy fleet, as in "runs=5,ranks=8,gpus=40"; there
	// is none where it is empty.
	Fleet string
	// Duration is how long it sends where the machine keeps up. What it sends is
	// the same where that takes longer.
	Duration time.Duration
	// Rate is the number of steps a second of each scenario.
	Rate float64
	// JobID is the job id, and so the run, of the TorchTel scenario; none where it is
	// empty, and all seeds then have one run.
	JobID string
	// Ranks is the number of training processes of the TorchTel scenario.
	Ranks int
	// MetricsInterval is the time between two exports of a process's metrics;
	// the generator's own default where it is zero.
	MetricsInterval time.Duration
}

// Endpoints are where the workload generator sends to. A transport that the
// scenarios do not use may be left empty.
type Endpoints struct {
	// GRPC is a host:port.
	GRPC string
	// HTTP is the URL that /v1/traces and the like are added to.
	HTTP string
	// FX is the URL that the FX scenario posts its spans to as it is; with
	// none they go where all others' do.
	FX string
}

// Generate runs the workload generator to its end and returns its log of what
// the collector has accepted. Each scenario uses the transport that its system
// uses, so the collector needs OTLP receivers for both. The test fails if
// anything was refused.
func Generate(tb testing.TB, collector *Collector, workload Workload) *sentlog.Log {
	tb.Helper()
	return GenerateTo(tb, Endpoints{
		GRPC: collector.Address(tb, "receivers::otlp::protocols::grpc"),
		HTTP: "http://" + collector.Address(tb, "receivers::otlp::protocols::http"),
	}, workload)
}

// GenerateTo is Generate for any endpoints.
func GenerateTo(tb testing.TB, endpoints Endpoints, workload Workload) *sentlog.Log {
	tb.Helper()
	generator := StartGenerator(tb, endpoints, workload)
	return generator.log(tb, generator.wait(tb, 5*workload.Duration+StartTimeout))
}

// Generator is a workload generator that is running.
type Generator struct {
	*Process
	sent string
}

// StartGenerator runs the workload generator. With a duration of zero it sends
// until it is stopped.
func StartGenerator(tb testing.TB, endpoints Endpoints, workload Workload) *Generator {
	tb.Helper()
	sent := filepath.Join(tb.TempDir(), "sent.jsonl")
	arguments := []string{
		"--seed", strconv.FormatInt(workload.Seed, 10),
		"--steps", strconv.FormatInt(int64(math.Round(workload.Duration.Seconds()*workload.Rate)), 10),
		"--rate", fmt.Sprint(workload.Rate),
		"--ranks", strconv.Itoa(workload.Ranks),
		"--sent", sent,
	}
	for flag, value := range map[string]string{
		"--scenario": workload.Scenarios, "--incident": workload.Incidents, "--fleet": workload.Fleet,
		"--job-id": workload.JobID, "--endpoint": endpoints.GRPC, "--http-endpoint": endpoints.HTTP, "--fx-endpoint": endpoints.FX,
	} {
		if value != "" {
			arguments = append(arguments, flag, value)
		}
	}
	if workload.MetricsInterval != 0 {
		arguments = append(arguments, "--metrics-interval", workload.MetricsInterval.String())
	}
	return &Generator{
		Process: Start(tb, Command{Name: "mlgen", Path: Binary(tb, "build", "bin", "mlgen"), Args: arguments}),
		sent:    sent,
	}
}

// Stop has the generator send what it has begun and end, and returns its log.
func (g *Generator) Stop(tb testing.TB) *sentlog.Log {
	tb.Helper()
	return g.log(tb, g.Process.Stop(tb))
}

func (g *Generator) log(tb testing.TB, code int) *sentlog.Log {
	tb.Helper()
	if code != 0 {
		tb.Fatalf("mlgen ended with %d:\n%s", code, g.Output())
	}
	log, err := sentlog.ReadFile(g.sent)
	if err != nil {
		tb.Fatalf("the log of what mlgen sent: %v", err)
	}
	if log.Summary == nil || len(log.Rejected) > 0 {
		tb.Fatalf("mlgen did not send all it had: summary %v, %d requests rejected:\n%s", log.Summary, len(log.Rejected), g.Output())
	}
	return log
}
