package model

import "time"

// Settings are the settings of a Store.
type Settings struct {
	Interval, History                          time.Duration
	MaxRuns, MaxGPUs, MaxTraces, SpansPerTrace int
	TraceBytes                                 int64
	Content                                    bool
	Owners                                     map[string]string
	JaegerURL, Version                         string
	Now                                        func() time.Time
}

// Store is the model of the page.
type Store struct{ settings Settings }

// NewStore returns an empty Store.
func NewStore(s Settings) *Store { return &Store{settings: s} }

// State returns the state.
func (s *Store) State() *State {
	return &State{Version: SchemaVersion, Time: s.settings.Now(), Collector: Collector{Version: s.settings.Version}}
}

// Run returns a run.
func (*Store) Run(string) (*RunDetail, bool) { return nil, false }

// Trace returns a trace.
func (*Store) Trace(string) (*Trace, bool) { return nil, false }

// SetFailures sets the failures of repro_gen's directory.
func (*Store) SetFailures([]Failure) {}

// SetMissing sets what a component says is missing.
func (*Store) SetMissing(string, []Missing) {}

// Export returns what outlives a restart.
func (*Store) Export() ([]byte, error) { return []byte("{}"), nil }

// Import reads what Export returned.
func (*Store) Import([]byte) error { return nil }
