package main

import (
	"context"
	"errors"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/send"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// driver runs one scenario: it tells it the time and delivers its requests.
type driver struct {
	name     string
	scenario scenario.Scenario
	sender   send.Sender
	ledger   *ledger
	rate     float64
	// steps is how many steps to take; 0 means no end.
	steps int64
	// deadline ends the run on the wall clock too; zero means never.
	deadline time.Time
	// start is the time of the first step on the simulated clock; zero means
	// the wall clock.
	start time.Time
}

// run takes steps until they are done, the deadline has passed or stop is
// cancelled, and ends the scenario cleanly in each case. Requests are sent under
// sending, so that an interruption does not cut one short.
func (d *driver) run(stop, sending context.Context) {
	interval := time.Duration(float64(time.Second) / d.rate)
	begun := time.Now()
	due := begun
	at := d.clock(begun, 0)
	for n := int64(0); d.steps == 0 || n < d.steps; n++ {
		if !wait(stop, due) || d.late() {
			break
		}
		// The simulated clock knows no delay, so that a seed repeats everything.
		if now := d.clock(time.Now(), n); now.After(at) || n == 0 {
			at = now
		}
		d.deliver(sending, d.scenario.Step(at))
		d.ledger.step(d.name)
		due = due.Add(interval)
		if now := time.Now(); now.After(due.Add(interval)) {
			// A slow server: steps that were missed are not made up for.
			due = now
		}
	}
	d.deliver(sending, d.scenario.Finish(at))
}

// clock is the time of a step: the wall clock's, or the simulated one's.
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
		d.ledger.settle(b, partial, err)
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

// wait sleeps until due and reports false where stop was cancelled first.
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
