package model

import "time"

type curves struct{}

func (*curves) rows(time.Time) []Curve { return []Curve{} }

type dueRuns struct{}

func (*dueRuns) record(*Store, time.Time) {}
func (*dueRuns) due(*run, time.Time)      {}
func (*dueRuns) forget(*run)              {}

type traces struct{}

func (*traces) init(Settings)                            {}
func (*traces) add(*Store, *SpanInput, *run)             {}
func (*traces) evict()                                   {}
func (*traces) ofRun(*Store, string) []Trace             { return []Trace{} }
func (s *Store) Trace(string) (*Trace, bool)             { return nil, false }
func (r *run) phases(time.Time) []Phase                  { return []Phase{} }
func (s *Store) Export() ([]byte, error)                 { return []byte("{}"), nil }
func (s *Store) Import([]byte) error                     { return nil }
func (s *Store) needRows(*State, time.Time) []Need       { return []Need{} }
func (s *Store) prune(time.Time)                         {}
func (s *Store) countGPUs(*State)                        {}
func (s *Store) missingRows(*State, time.Time) []Missing { return []Missing{} }

const fixStepTokens = "x"
