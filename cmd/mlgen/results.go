package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/send"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// results counts what was sent and writes the sent log. It is safe for
// concurrent use.
type results struct {
	mu        sync.Mutex
	scenarios map[string]*sentlog.ScenarioSummary
	lastError map[string]string
	// log is nil without --sent.
	log    *sentlog.Writer
	logErr error
}

func newResults(names []string, log *sentlog.Writer) *results {
	l := &results{
		scenarios: make(map[string]*sentlog.ScenarioSummary),
		lastError: make(map[string]string),
		log:       log,
	}
	for _, name := range names {
		l.scenarios[name] = &sentlog.ScenarioSummary{
			Requests: make(map[string]int64),
			Items:    make(map[string]int64),
			Refused:  make(map[string]int64),
		}
	}
	return l
}

// step counts a step of a scenario.
func (l *results) step(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scenarios[name].Steps++
}

// settle records the server's answer to a request. Only a fully accepted
// request is logged item by item and adds to the truth.
func (l *results) settle(b scenario.Batch, partial send.Partial, err error) {
	var entries []sentlog.Entry
	refused, reason := partial.Refused, partial.Message
	if err != nil {
		refused, reason = b.Items(), err.Error()
	}
	switch {
	case refused > 0:
		entries = []sentlog.Entry{{Type: sentlog.TypeRejected, Rejected: &sentlog.Rejected{
			Scenario: b.Scenario, Signal: b.Signal, Items: b.Items(), Refused: refused, Reason: reason,
		}}}
	case l.log != nil:
		entries = b.Entries()
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.scenarios[b.Scenario]
	s.Requests[b.Signal]++
	if refused > 0 {
		s.Refused[b.Signal] += refused
		s.Items[b.Signal] += max(0, b.Items()-refused)
		l.lastError[b.Scenario] = reason
	} else {
		s.Items[b.Signal] += b.Items()
		s.Truth.Merge(b.Truth)
	}
	l.write(entries...)
}

// write appends to the sent log and keeps the first error. The lock is held.
func (l *results) write(entries ...sentlog.Entry) {
	if l.log == nil || l.logErr != nil {
		return
	}
	if err := l.log.Write(entries...); err != nil {
		l.logErr = fmt.Errorf("sent log: %w", err)
	}
}

// header writes the log's first line.
func (l *results) header(h sentlog.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(sentlog.Entry{Type: sentlog.TypeHeader, Header: &h})
}

// close writes the log's last line and returns the first error of the log.
func (l *results) close(end time.Time, interrupted bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(sentlog.Entry{Type: sentlog.TypeSummary, Summary: &sentlog.Summary{
		EndUnixNano: end.UnixNano(), Interrupted: interrupted, Scenarios: l.scenarios,
	}})
	return l.logErr
}

// totals are the counts of a scenario that are shown to the user.
type totals struct {
	steps, items, refused int64
	lastError             string
}

func (l *results) totals(name string) totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.scenarios[name]
	t := totals{steps: s.Steps, lastError: l.lastError[name]}
	for _, n := range s.Items {
		t.items += n
	}
	for _, n := range s.Refused {
		t.refused += n
	}
	return t
}
