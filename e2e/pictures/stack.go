package main

import (
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// startStack starts what `make e2e` starts, has mlgen send for a while, and
// returns the address of Prometheus.
func startStack(suite *harness.Suite, during time.Duration) string {
	jaeger := harness.StartJaeger(suite)
	collector := harness.StartCollector(suite, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Env: []string{
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
			"TRACES_EXPORTER=otlp_grpc/jaeger",
			"JAEGER_ENDPOINT=" + jaeger.OTLPEndpoint(),
			"OTELCOL_ML_REPRO_DIR=" + suite.TempDir(),
		},
		Overrides: map[string]any{
			// TorchTel does not say how many tokens its steps have: these are of
			// a small model on two GPUs.
			"processors::ml_enrich::training": []any{map[string]any{
				"service": "torchtel", "per": "job", "tokens_per_step": 8192, "flops_per_token": 4.2e10,
			}},
			"processors::ml_enrich::hash_key": "pictures",
		},
	})
	collector.AwaitHealthy(suite)
	prometheus := harness.StartPrometheus(suite, map[string]string{
		"otelcol-ml:8889": collector.Address(suite, "exporters::prometheus"),
		"otelcol-ml:8888": collector.Address(suite, harness.TelemetryPath),
	})
	// TuFT's clients begin a training run every few requests, so that it gets
	// fewer of them.
	var sending []*harness.Process
	for i, part := range []struct{ scenarios, rate string }{
		{"torchtel,snakepit,fx,taskweaver", "2"}, {"tuft", "0.4"},
	} {
		sending = append(sending, harness.Start(suite, harness.Command{
			Name: "mlgen",
			Path: harness.Binary(suite, "build", "bin", "mlgen"),
			Args: []string{
				"--scenario", part.scenarios, "--rate", part.rate, "--seed", strconv.Itoa(i + 1),
				"--duration", (during + time.Minute).String(), "--ranks", "2",
				"--endpoint", collector.Address(suite, "receivers::otlp::protocols::grpc"),
				"--http-endpoint", "http://" + collector.Address(suite, "receivers::otlp::protocols::http"),
			},
		}))
	}
	suite.Logf("pictures: mlgen sends for %s", during)
	timer := time.NewTimer(during)
	defer timer.Stop()
	<-timer.C
	for _, process := range sending {
		if !process.Running() {
			suite.Fatalf("mlgen ended early:\n%s", process.Output())
		}
	}
	return prometheus.URL()
}
