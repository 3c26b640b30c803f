// Package pagetest has sources of data for the tests of the page: files of a
// folder, and a fleet of any size. No program of a user contains it.
package pagetest

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// Source is a source of fixed data. Set changes it. It implements page.Source.
type Source struct {
	mu   sync.Mutex
	data Data
}

// Data is what a Source has, and the content of a fixture's file. Details,
// traces and reports are found by their run's key, id and fingerprint.
type Data struct {
	State   *api.State                `json:"state"`
	Runs    map[string]*api.RunDetail `json:"runs,omitempty"`
	Traces  map[string]*api.Trace     `json:"traces,omitempty"`
	Reports map[string]string         `json:"reports,omitempty"`
	// Comparisons are found by the key of their first run.
	Comparisons map[string]*api.Comparison `json:"comparisons,omitempty"`
}

// Load reads a fixture.
func Load(file string) (*Source, error) {
	content, err := os.ReadFile(file) //nolint:gosec // the test says which file
	if err != nil {
		return nil, err
	}
	var d Data
	if err := json.Unmarshal(content, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if d.State == nil {
		return nil, fmt.Errorf("%s: no state", file)
	}
	return New(d), nil
}

// New returns a Source of the data.
func New(d Data) *Source {
	if d.State == nil {
		d.State = &api.State{Version: api.SchemaVersion}
	}
	return &Source{data: d}
}

// Set replaces the State.
func (s *Source) Set(state *api.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.State = state
}

// State returns the State.
func (s *Source) State() *api.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.State
}

// Run returns the details of a run. A run without any in the file has its row.
func (s *Source) Run(key string) (*api.RunDetail, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.data.Runs[key]; ok {
		return d, true
	}
	for _, run := range s.data.State.Runs {
		if run.Key == key {
			return &api.RunDetail{Run: run}, true
		}
	}
	return nil, false
}

// Compare returns the comparison of a run, whatever the other run is.
func (s *Source) Compare(key, _ string) (*api.Comparison, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.data.Comparisons[key]
	return c, ok
}

// Trace returns a trace.
func (s *Source) Trace(id string) (*api.Trace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.data.Traces[id]
	return t, ok
}

// Report returns a report.
func (s *Source) Report(fingerprint string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.data.Reports[fingerprint]
	return []byte(r), ok
}
