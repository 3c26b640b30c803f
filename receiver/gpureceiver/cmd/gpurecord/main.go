// Command gpurecord reads the GPUs of this host through NVML and writes a recording
// that the gpu receiver can play. The file does not identify the GPUs, their owners
// or their work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/cmd/recorder"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/attribution"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/nvmlsource"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gpurecord:", err)
		os.Exit(1)
	}
}

// callTimeout is the limit for the calls about one GPU.
const callTimeout = 5 * time.Second

// run records until the recording is complete, or until ctx ends.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("gpurecord", flag.ContinueOnError)
	duration := flags.Duration("duration", 5*time.Minute, "length of the recording, at most 1h")
	interval := flags.Duration("interval", 10*time.Second, "time between two readings")
	library := flags.String("library", "", "the NVML library; by default that of the dynamic linker")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *duration <= 0 || *duration > time.Hour || *interval <= 0 {
		return errors.New("usage: gpurecord [-duration 5m] [-interval 10s] [-library PATH] FILE")
	}
	logger, err := zap.NewDevelopment()
	if err != nil {
		return err
	}
	out, err := recorder.New(recorder.Options{Path: flags.Arg(0), Duration: *duration, Program: "gpurecord", Logger: logger, Now: time.Now})
	if err != nil {
		return err
	}
	// A recording has no names of users.
	processes := attribution.New(attribution.Options{Interval: 3 * *interval, Logger: logger, Now: time.Now})
	source := nvmlsource.New(nvmlsource.Options{
		Attribution: processes,
		LibraryPath: *library, CallTimeout: callTimeout, RequireBuild: true, SlowInterval: 3 * *interval,
		Wants:  func(*device.Quantity) bool { return true },
		Logger: logger, Now: time.Now, Telemetry: uncounted{},
	})
	if err := source.Start(ctx, func(event device.Event) { out.Event(&event) }); err != nil {
		return errors.Join(err, out.Shutdown(context.WithoutCancel(ctx)))
	}
	ticker := time.NewTicker(*interval)
	defer ticker.Stop()
	for open := true; open; {
		snapshot := source.Snapshot(ctx)
		out.Add(&snapshot)
		select {
		case <-ticker.C:
		case <-out.Done():
			open = false
		case <-ctx.Done():
			open = false
		}
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(source.Shutdown(ctx), out.Shutdown(ctx))
}

// uncounted is the Telemetry of a program without metrics.
type uncounted struct{}

func (uncounted) Attempted()                           {}
func (uncounted) Opened()                              {}
func (uncounted) Called(string, string, time.Duration) {}
func (uncounted) Failed(string, string)                {}
func (uncounted) Dropped(string, int64)                {}
func (uncounted) Abandoned()                           {}
