package model

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/failures"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// span adds a span to all that it concerns.
func (s *Store) span(in *input.Span, from share.Origin, now time.Time) {
	src := in.Source
	s.hosts.See(src.Host, now)
	of := s.services.Of(src.Namespace, src.Service, from, now)
	s.services.Span(in, of, now)
	var named failures.Run
	if src.Run != "" {
		if r := s.runs.Of(src.Namespace, src.Service, src.Run, from, now); r != nil {
			r.Span(in, now)
			named = failures.Run{Key: r.Key, ID: r.ID, Again: r.Again}
		}
	}
	s.traces.Add(in, named.Key)
	if in.Call != input.NoCall {
		s.calls.Add(in, named.Key)
	}
	if s.models.IsRequest(in) {
		s.models.Request(in, of, now)
	}
	if in.Failed && !in.FailureElsewhere && (in.ML || in.Class != "" || in.Fingerprint != "") && !s.failures.Covered(in) {
		s.failures.Span(in, named, from, now)
		if of != nil {
			s.services.SeeFailure(of, src.Version)
		}
	}
}

// event adds a log record.
func (s *Store) event(e *input.Event, now time.Time) {
	if e.XID != nil {
		s.hosts.See(e.Host, now)
		s.arrived = now
	}
	if e.XID != nil && e.GPU != "" {
		xid := *e.XID
		xid.Time = kept.Earlier(xid.Time, now)
		s.gpus.SeeXID(gpus.Ref{Host: e.Host, ID: e.GPU}, xid)
	}
	if e.Change != nil {
		run := ""
		if r := s.runs.Find(e.Namespace, e.Change.Service, e.Change.RunID, e.Change.Host); r != nil {
			run = r.Key
		}
		s.changes.Note(e.Change, run, now)
	}
	if e.Problem != nil {
		s.noteRecord(e.Problem, e.Namespace, now)
	}
	if e.Failure != nil {
		s.failures.Record(e.Failure, now)
	}
}
