package model_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// honest is the program that others must not take from the page.
const (
	honestSender = share.Sender(1)
	honestRun    = "honest"
	honestClass  = "HonestError"
	honestRanks  = 8
)

// train sends what a training program sends in a time.
func (w *world) train(d time.Duration, run string) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(10 * time.Second) {
		for rank := range honestRanks {
			w.span(func(in *input.Span) {
				in.Source.Sender, in.Source.Run, in.Source.Rank = honestSender, run, strconv.Itoa(rank)
			})
		}
	}
}

func (w *world) failure(run, class string) {
	w.span(func(in *input.Span) {
		in.Source.Sender, in.Source.Run, in.Source.Rank, in.Failed, in.Class = honestSender, run, "0", true, class
	})
}

// flood sends n failed spans, each of another run and class of error, in requests of
// 1000 spans.
func (w *world) flood(n int, sender share.Sender, service func(i int) string) {
	now := w.now
	for i := range n {
		w.span(func(in *input.Span) {
			in.Source.Sender, in.Source.Service, in.Source.Run, in.Source.Rank = sender, service(i), fmt.Sprint("x", i), "0"
			in.Failed, in.Class = i%2 == 1, fmt.Sprint("E", i)
		})
		if i%1000 == 999 {
			w.now = w.now.Add(time.Second)
		}
	}
	w.now = now.Add(time.Minute)
}

// TestQuietRunStaysOnThePage: a run that has trained for ten minutes and is quiet, and its
// failure, stay whatever comes once: 1,000 invented runs are 87 KB, 30,000 are 2.6 MB. (120,000, which
// are 10 MB, take a minute with the race detector.)
func TestQuietRunStaysOnThePage(t *testing.T) {
	invented := func(i int) string { return fmt.Sprint("s", i) }
	for name, tt := range map[string]struct {
		n       int
		sender  share.Sender
		service func(i int) string
	}{
		"87 KB of the same address":     {1_000, honestSender, invented},
		"2.6 MB of the same address":    {30_000, honestSender, invented},
		"400 KB from elsewhere":         {5_000, 2, invented},
		"400 KB under the same service": {5_000, honestSender, func(int) string { return "trainer" }},
		"400 KB under one other":        {5_000, honestSender, func(int) string { return "other" }},
	} {
		for state, after := range map[string]time.Duration{"ended": time.Minute, "silent": 20 * time.Minute, "": time.Hour} {
			t.Run(name+" "+state, func(t *testing.T) {
				if tt.n > 1_000 && state != "ended" {
					t.Skip("one state is enough")
				}
				w := newWorld(input.Settings{})
				w.train(10*time.Minute, honestRun)
				w.failure(honestRun, honestClass)
				if state != "" {
					w.point(series.RunState, honestRun, 1, state)
				}
				w.now = w.now.Add(after)
				w.flood(tt.n, tt.sender, tt.service)
				w.flood(tt.n/10, tt.sender, tt.service)
				w.train(20*time.Second, "new")
				w.failure("new", "NewError")

				shown := w.state()
				runs := make(map[string]int)
				for _, r := range shown.Runs {
					runs[r.ID] = r.Ranks
				}
				assert.Equal(t, honestRanks, runs[honestRun])
				assert.Equal(t, honestRanks, runs["new"], "a new one has room")
				classes := make(map[string]bool)
				for _, f := range shown.Failures {
					classes[f.Class] = true
				}
				assert.True(t, classes[honestClass])
				assert.True(t, classes["NewError"])
			})
		}
	}
}

// TestEstablishedServiceKeepsItsRuns: also names that are repeated for half an hour take
// nothing from a service that was there for an hour.
func TestEstablishedServiceKeepsItsRuns(t *testing.T) {
	w := newWorld(input.Settings{MaxRuns: 100})
	for i := range 30 {
		w.train(3*time.Minute, fmt.Sprint("old", i))
		w.failure(fmt.Sprint("old", i), fmt.Sprint("Old", i))
	}
	for range 30 {
		w.flood(600, honestSender, func(i int) string { return fmt.Sprint("s", i) })
	}
	kept := 0
	for _, r := range w.state().Runs {
		if r.Service == "trainer" {
			kept++
		}
	}
	assert.Equal(t, 30, kept)
	kept = 0
	for _, f := range w.State().Failures {
		if f.Service == "trainer" {
			kept++
		}
	}
	assert.Equal(t, 30, kept)
}

// TestNewServiceHasARow: invented services without series make room.
func TestNewServiceHasARow(t *testing.T) {
	w := newWorld(input.Settings{})
	w.train(10*time.Minute, honestRun)
	runless := func(in *input.Span) { in.Source.Run, in.Runless = "", true }
	w.span(runless)
	w.flood(5_000, honestSender, func(i int) string { return fmt.Sprint("s", i) })
	w.span(func(in *input.Span) {
		runless(in)
		in.Source.Service = "new"
	})
	for _, m := range w.state().Missing {
		if m.Kind == "run" {
			assert.Equal(t, "The run of spans of 2 services: new, trainer", m.What)
			return
		}
	}
	assert.Fail(t, "no service is without a run")
}
