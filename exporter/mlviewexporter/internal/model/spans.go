package model

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// span adds a span to all that it concerns.
func (s *Store) span(in *SpanInput, from share.Origin, now time.Time) {
	src := in.Source
	s.hosts.see(src.Host, now)
	of := s.services.of(src.Namespace, src.Service, from, now)
	s.services.span(in, of, now)
	var named failedRun
	if src.Run != "" {
		if r := s.runs.of(src.Namespace, src.Service, src.Run, from, now); r != nil {
			r.span(in, now)
			named = failedRun{r.key, r.id, r.again}
		}
	}
	s.traces.add(in, named.key)
	if in.Call != NoCall {
		s.calls.add(in, named.key)
	}
	if s.models.isRequest(in) {
		s.models.request(in, of, now)
	}
	if in.Failed && !in.FailureElsewhere && (in.ML || in.Class != "" || in.Fingerprint != "") && !s.failures.covered(in) {
		s.failures.span(in, named, from, now)
		if of != nil {
			s.services.seeFailure(of, src.Version)
		}
	}
}

// event adds a log record.
func (s *Store) event(e *Event, now time.Time) {
	if e.XID != nil {
		s.hosts.see(e.Host, now)
		s.arrived = now
	}
	if e.XID != nil && e.GPU != "" {
		xid := *e.XID
		xid.Time = earlier(xid.Time, now)
		s.gpus.failed(gpuID{e.Host, e.GPU}, xid)
	}
	if e.Change != nil {
		run := ""
		if r := s.runs.find(e.Namespace, e.Change.Service, e.Change.RunID, e.Change.Host); r != nil {
			run = r.key
		}
		s.changes.note(e.Change, run, now)
	}
	if e.Problem != nil {
		s.noteRecord(e.Problem, e.Namespace, now)
	}
	if e.Failure != nil {
		s.failures.record(e.Failure, now)
	}
}

// earlier returns the time of a client's clock, which may be far ahead, or now.
func earlier(at, now time.Time) time.Time {
	if at.After(now) {
		return now.UTC()
	}
	return at
}
