package main

import (
	"context"
	"errors"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/send"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// driver runs one scenario in time and sends its requests.
type driver struct {
	name     string
	scenario scenario.Scenario
	sender   send.Sender
	results  *results
	rate     float64
	// steps is the number of steps; 0 means no limit.
	steps int64
	// deadline ends the run by the wall clock; zero means never.
	deadline time.Time
	// start is the time of the first step on the simulated clock; zero selects
	// the wall clock.
	start time.Time
}

// run takes steps until they are done, the deadline has passed or stop is
// canceled. In each case it ends the scenario cleanly. Requests use the context
// sending, so that an interruption does not cut one off.
func (d *driver) run(stop, sending context.Context) {
	interval := time.Duration(float64(time.Second) / d.rate)
	begun := time.Now()
	due := begun
	at := d.clock(begun, 0)
	for n := int64(0); d.steps == 0 || n < d.steps; n++ {
		if !wait(stop, due) || d.late() {
			break
		}
		// The simulated clock has no delays, so that a seed repeats everything.
		if now := d.clock(time.Now(), n); now.After(at) || n == 0 {
			at = now
		}
		d.deliver(sending, d.scenario.Step(at))
		d.results.step(d.name)
		due = due.Add(interval)
		if now := time.Now(); now.After(due.Add(interval)) {
			// After a slow server, missed steps are not repeated.
			due = now
		}
	}
	d.deliver(sending, d.scenario.Finish(at))
}

// clock returns the time of a step, on the wall clock or the simulated clock.
func (d *driver) clock(now time.Time, step int64) time.Time {
	if d.start.IsZero() {
		return now
	}
	return d.start.Add(time.Duration(float64(step) / d.rate * float64(time.Second)))
}

func (d *driver) late() bool {
	return !d.deadline.IsZero() && time.Now().After(d.deadline)
}

func (d *driver) deliver(ctx context.Context, batches []scenario.Batch) {
	for _, b := range batches {
		partial, err := d.send(ctx, b)
		d.results.settle(b, partial, err)
	}
}

func (d *driver) send(ctx context.Context, b scenario.Batch) (send.Partial, error) {
	switch b.Signal {
	case sentlog.SignalTraces:
		return d.sender.Traces(ctx, b.Traces)
	case sentlog.SignalMetrics:
		return d.sender.Metrics(ctx, b.Metrics)
	case sentlog.SignalLogs:
		return d.sender.Logs(ctx, b.Logs)
	default:
		return send.Partial{}, errors.New("batch without a signal")
	}
}

// wait sleeps until due. It returns false if stop is canceled first.
func wait(stop context.Context, due time.Time) bool {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-stop.Done():
		return false
	case <-timer.C:
		return stop.Err() == nil
	}
}
