package model

import (
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// span adds a span to all that it concerns.
func (s *Store) span(in *SpanInput, from share.Origin, now time.Time) {
	src := in.Source
	s.hosts.see(src.Host, now)
	of := s.serviceOf(src.Namespace, src.Service, from, now)
	var r *run
	if src.Run != "" {
		if r = s.runOf(src.Namespace, src.Service, src.Run, from, now); r != nil {
			s.spanOfRun(in, r, now)
		}
	} else if in.Runless {
		id := serviceID{src.Namespace, src.Service}
		if _, known := s.seen.spansWithoutRun[id]; known || of != nil {
			s.seen.spansWithoutRun[s.ownID(id)]++
		}
	}
	if src.Simulated {
		s.seeSimulated(src.Service)
	}
	if of != nil && src.User != "" && src.User != of.user {
		of.user = s.texts.of(src.User)
	}
	s.seeVersion(of, src.Version, now)
	var named failedRun
	if r != nil {
		named = failedRun{r.key, r.id, r.again}
	}
	s.traces.add(in, named.key)
	if in.Call != NoCall {
		s.calls.add(in, named.key)
	}
	if s.isRequest(in) {
		s.request(in, of, now)
	}
	if in.Failed && !in.FailureElsewhere && (in.ML || in.Class != "" || in.Fingerprint != "") && !s.failures.covered(in) {
		s.failures.span(in, named, from, now)
		if version := s.texts.of(src.Version); of != nil && version != "" && !of.versions[version].IsZero() {
			of.failed[version]++
		}
	}
}

func (s *Store) ownID(id serviceID) serviceID {
	if of := s.services[id]; of != nil {
		return of.serviceID
	}
	return serviceID{s.texts.of(id.namespace), s.texts.of(id.name)}
}

// spanOfRun takes over what a span says of its run and rank.
func (s *Store) spanOfRun(in *SpanInput, r *run, now time.Time) {
	src := in.Source
	r.lastSeen = now
	r.sent(now)
	r.news.See(now)
	r.simulated = r.simulated || src.Simulated
	for _, text := range [...]struct {
		of *string
		is string
	}{{&r.job, src.Job}, {&r.jobName, src.JobName}, {&r.user, src.User}, {&r.version, src.Version}} {
		if text.is != "" && text.is != *text.of {
			*text.of = s.texts.of(text.is)
		}
	}
	r.facts.someRanks = r.facts.someRanks || src.SomeRanks
	if in.Sizes != (Sizes{}) {
		r.facts.sizes.grow(&in.Sizes)
	}
	if in.Phase == "train" {
		r.failed = in.Failed
	}
	ended := time.Unix(0, min(in.End, now.UnixNano()))
	if in.Phase == "checkpoint" && !in.Failed && !loads(in.Operation) && ended.After(r.checkpoint) {
		r.checkpoint = ended
	}
	if src.Rank == "" && src.Host == "" && in.Phase == "" {
		return
	}
	rank := r.ranks[src.Rank]
	if rank == nil {
		rank = s.rankOf(r, s.texts.of(src.Rank), s.texts.of(src.Host))
	}
	if rank == nil {
		return
	}
	if in.End >= rank.ended {
		s.moveRank(r, rank, src.Host)
	}
	if src.PID > 0 {
		rank.pid = src.PID
	}
	what := in.Phase
	if what == "" {
		what = in.Operation
	}
	// The whole run or epoch says nothing of where a rank is.
	if what != "" && what != "train" && what != "epoch" && in.End >= rank.ended && in.End <= now.UnixNano()+int64(time.Minute) {
		rank.span, rank.ended = s.texts.of(what), in.End
	}
}

// loads reports whether an operation restores a checkpoint.
func loads(operation string) bool {
	return strings.HasPrefix(operation, "load") || strings.Contains(operation, "restore")
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
		s.noteXID(gpuID{e.Host, e.GPU}, xid)
	}
	if e.Change != nil {
		s.noteChange(e.Change, e.Namespace, now)
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

// noteXID keeps the last error of a GPU. It may arrive before the GPU's first
// reading.
func (s *Store) noteXID(of gpuID, xid XID) {
	known := s.xids[of]
	if known != nil && xid.Time.Before(known.Time) || known == nil && !s.roomForXID(of) {
		return
	}
	xid.Code, xid.Message = s.texts.of(xid.Code), s.texts.of(xid.Message)
	s.xids[gpuID{s.texts.of(of.host), s.texts.of(of.id)}] = &xid
}

// roomForXID reports whether there is room for an error of one more GPU. That of an
// unknown GPU makes room for that of a known one.
func (s *Store) roomForXID(of gpuID) bool {
	if len(s.xids) < s.settings.MaxGPUs {
		return true
	}
	if s.gpus[of] == nil {
		return false
	}
	for other := range s.xids {
		if s.gpus[other] == nil {
			delete(s.xids, other)
			return true
		}
	}
	return false
}
