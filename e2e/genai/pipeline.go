package genai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor"
)

// Recording is what a client sent, beside what the model server served it.
type Recording struct {
	// Client is the name of its program in the folder clients.
	Client string
	// Versions has the versions of its packages.
	Versions map[string]string `json:"versions"`
	// Served are the requests in the order in which the server received them.
	Served []Served `json:"served"`
	// Traces, Metrics and Logs are the OTLP requests in the order of arrival, as OTLP/JSON.
	Traces  []json.RawMessage `json:"traces"`
	Metrics []json.RawMessage `json:"metrics"`
	Logs    []json.RawMessage `json:"logs"`
}

// Served is a request in the server's log.
type Served struct {
	Model  string `json:"model"`
	Status int    `json:"status"`
	Stream bool   `json:"stream"`
	// At is when the server was asked, in seconds since 1970.
	At     float64 `json:"at"`
	ID     string  `json:"id"`
	Input  int64   `json:"input"`
	Output int64   `json:"output"`
}

// ReadRecordings reads the recordings of a folder, in the order of their names.
func ReadRecordings(folder string) (all []Recording, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a recording
		if err != nil {
			return nil, err
		}
		r := Recording{Client: filepath.Base(file[:len(file)-len(".json")])}
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// Requests decodes the recorded requests with spans.
func (r *Recording) Requests() (all []ptrace.Traces, err error) {
	for _, request := range r.Traces {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(request)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Client, err)
		}
		all = append(all, td)
	}
	return all, nil
}

// Records decodes the recorded requests with log records.
func (r *Recording) Records() (all []plog.Logs, err error) {
	for _, request := range r.Logs {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(request)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Client, err)
		}
		all = append(all, ld)
	}
	return all, nil
}

// Result is what the components made of spans.
type Result struct {
	// Spans are the requests as ml_enrich handed them on.
	Spans []ptrace.Traces
	// Series are those of ml_metrics, which it sends once, when it ends.
	Series pmetric.Metrics
}

// Process sends requests through an ml_enrich, a repro_gen that writes into a
// folder, and an ml_metrics, with their default configurations, as a collector
// has them. Of the clients ml_enrich knows those of the vocabularies, or all.
func Process(ctx context.Context, requests []ptrace.Traces, reproductions string, vocabularies ...string) (Result, error) {
	return ProcessBeside(ctx, requests, nil, reproductions, func(ptrace.Traces) {}, vocabularies...)
}

// ProcessBeside is Process with another processor behind ml_enrich, and with log records,
// which repro_gen reads before the spans.
func ProcessBeside(
	ctx context.Context, requests []ptrace.Traces, records []plog.Logs, reproductions string, behind func(ptrace.Traces), vocabularies ...string,
) (result Result, err error) {
	series := new(consumertest.MetricsSink)
	metrics := mlmetricsconnector.NewFactory()
	cfg := metrics.CreateDefaultConfig().(*mlmetricsconnector.Config)
	cfg.FlushInterval = time.Hour // it flushes when it ends
	count, err := metrics.CreateTracesToMetrics(ctx, connector.Settings{
		ID: component.NewID(metrics.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, cfg, series)
	if err != nil {
		return result, err
	}
	enriched := new(consumertest.TracesSink)
	factory := mlenrichprocessor.NewFactory()
	knowing := factory.CreateDefaultConfig().(*mlenrichprocessor.Config)
	if len(vocabularies) > 0 {
		knowing.Vocabularies = vocabularies
	}
	enrich, err := factory.CreateTraces(ctx, processor.Settings{
		ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, knowing, enriched)
	if err != nil {
		return result, err
	}
	failures := reprogenprocessor.NewFactory()
	writes := failures.CreateDefaultConfig().(*reprogenprocessor.Config)
	writes.Directory = reproductions
	reproduced := new(consumertest.TracesSink)
	settings := processor.Settings{ID: component.NewID(failures.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	reproduce, err := failures.CreateTraces(ctx, settings, writes, reproduced)
	if err != nil {
		return result, err
	}
	read, err := failures.CreateLogs(ctx, settings, writes, new(consumertest.LogsSink))
	if err != nil {
		return result, err
	}
	parts := []component.Component{count, reproduce, read, enrich}
	for _, part := range parts {
		if err := part.Start(ctx, componenttest.NewNopHost()); err != nil {
			return result, err
		}
	}
	for _, td := range requests {
		err = errors.Join(err, enrich.ConsumeTraces(ctx, td))
	}
	for _, ld := range records {
		err = errors.Join(err, read.ConsumeLogs(ctx, ld))
	}
	// What ml_enrich has read nobody reads again.
	ctx, end := vocabulary.WithEnriched(ctx)
	defer end()
	for _, td := range enriched.AllTraces() {
		behind(td)
		err = errors.Join(err, reproduce.ConsumeTraces(ctx, td))
	}
	for _, td := range reproduced.AllTraces() {
		err = errors.Join(err, count.ConsumeTraces(ctx, td))
	}
	for i := range parts {
		err = errors.Join(err, parts[len(parts)-1-i].Shutdown(ctx))
	}
	result.Spans, result.Series = reproduced.AllTraces(), pmetric.NewMetrics()
	// They come in parts.
	for _, part := range series.AllMetrics() {
		part.ResourceMetrics().MoveAndAppendTo(result.Series.ResourceMetrics())
	}
	return result, err
}
