//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor"
)

// onCores measures how many spans a second pass through the components of whole with one
// core and with all that this process may use, and prints the ratio of the times, which
// other load on the machine falsifies. The components run in this
// process and not in a collector, because a sender and a sink would need cores of their
// own; requests are decoded and encoded as a collector does.
func onCores(ctx context.Context, o options, out io.Writer) error {
	all := runtime.GOMAXPROCS(0)
	if all < 2 {
		return errors.New("-cores needs two cores; there is one")
	}
	directory, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	components, first, err := whole(ctx, directory)
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range components {
			_ = c.Shutdown(context.Background())
		}
	}()
	counts := []int{1, all}
	took := make(map[int][]time.Duration)
	seed := uint64(0)
	for round := -1; round < o.rounds; round++ {
		for _, cores := range counts {
			seed++
			requests, err := encode(loads["traces"], seed, o.requests)
			if err != nil {
				return err
			}
			time, err := pass(ctx, requests, cores, first)
			if err != nil {
				return err
			}
			if round >= 0 {
				took[cores] = append(took[cores], time)
			}
		}
		slices.Reverse(counts)
	}
	var ratios []float64
	for round, time := range took[all] {
		ratios = append(ratios, took[1][round].Seconds()/time.Seconds())
	}
	slices.Sort(ratios)
	_, err = fmt.Fprintf(out, "%d cores pass on %.2f times as many spans as one (%.2f to %.2f)\n",
		all, ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
	return err
}

// whole starts the components of the variant whole with their default configuration, and
// returns the first consumer.
func whole(ctx context.Context, directory string) (components []component.Component, first consumer.Traces, err error) {
	counts := mlmetricsconnector.NewFactory()
	telemetry, build := componenttest.NewNopTelemetrySettings(), component.NewDefaultBuildInfo()
	metrics, err := counts.CreateTracesToMetrics(ctx, connector.Settings{
		ID: component.NewID(counts.Type()), TelemetrySettings: telemetry, BuildInfo: build,
	}, counts.CreateDefaultConfig(), consumertest.NewNop())
	if err != nil {
		return nil, nil, err
	}
	components, first = append(components, metrics), encoder{metrics}
	of := func(factory processor.Factory, cfg component.Config) error {
		p, err := factory.CreateTraces(ctx, processor.Settings{
			ID: component.NewID(factory.Type()), TelemetrySettings: telemetry, BuildInfo: build,
		}, cfg, first)
		components, first = append(components, p), p
		return err
	}
	reproduces := reprogenprocessor.NewFactory()
	cfg := reproduces.CreateDefaultConfig()
	cfg.(*reprogenprocessor.Config).Directory = directory
	if err := of(reproduces, cfg); err != nil {
		return nil, nil, err
	}
	enriches := mlenrichprocessor.NewFactory()
	if err := of(enriches, enriches.CreateDefaultConfig()); err != nil {
		return nil, nil, err
	}
	for _, c := range components {
		if err := c.Start(ctx, componenttest.NewNopHost()); err != nil {
			return nil, nil, err
		}
	}
	return components, first, nil
}

// encoder encodes what it passes on, as an exporter does.
type encoder struct{ consumer.Traces }

func (e encoder) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	_, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	return errors.Join(err, e.Traces.ConsumeTraces(ctx, td))
}

// pass passes the requests on with so many cores, and returns how long that took.
func pass(ctx context.Context, requests [][]byte, cores int, first consumer.Traces) (time.Duration, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	work := make(chan []byte, len(requests))
	for _, request := range requests {
		work <- request
	}
	close(work)
	errs := make([]error, cores)
	began := time.Now()
	var group sync.WaitGroup
	for i := range cores {
		group.Go(func() {
			for raw := range work {
				request := ptraceotlp.NewExportRequest()
				if errs[i] = request.UnmarshalProto(raw); errs[i] != nil {
					return
				}
				if errs[i] = first.ConsumeTraces(ctx, request.Traces()); errs[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return time.Since(began), errors.Join(errs...)
}
