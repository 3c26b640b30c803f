package anomalies

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const onsetSeries = "ml.problem.onset.timestamp"

// subject is what a problem is of. Names that do not apply are empty.
type subject struct {
	kind, service, run, host, gpu string
}

// sighting is one problem that ml_metrics has reported, from its first to its last
// report without a gap of three emissions.
type sighting struct {
	subject
	// onset is when it began, as reported at first, and detected when it was
	// reported at first.
	onset, detected time.Time
	// seen is the last report.
	seen time.Time
	// seed is that of its world, evidence what the record says for it.
	seed     int64
	evidence string
}

// String describes the problem, with what is needed to see it again.
func (s *sighting) String() string {
	return fmt.Sprintf("seed %d: %+v began %s, reported %s for %s: %s", s.seed, s.subject,
		s.onset.Format(time.DateTime), s.detected.Format(time.DateTime), s.seen.Sub(s.detected), s.evidence)
}

// sightings collects problems: from records, or from series where no records arrive.
type sightings struct {
	flush time.Duration
	all   []*sighting
	open  map[subject]*sighting
	// recorded reports whether records arrive. lasting are the problems of records that
	// have not ended, by their ids.
	recorded bool
	lasting  map[string]*sighting
}

func newSightings(flush time.Duration) *sightings {
	return &sightings{flush: flush, open: make(map[subject]*sighting), lasting: make(map[string]*sighting)}
}

// Capabilities reports that nothing is mutated.
func (*sightings) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeMetrics notes the problems among an emission's series.
func (s *sightings) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == onsetSeries && !s.recorded {
					s.noteSeries(rm.Resource().Attributes(), m)
				}
			}
		}
	}
	return nil
}

func (s *sightings) noteSeries(resource pcommon.Map, m pmetric.Metric) {
	for _, point := range m.Gauge().DataPoints().All() {
		if !point.Flags().NoRecordedValue() {
			seconds := point.DoubleValue()
			s.note(subjectOf(resource, point.Attributes()), time.UnixMicro(int64(seconds*1e6)))
		}
	}
}

// ConsumeLogs notes the problems among records.
func (s *sightings) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if record.EventName() == mlattr.Problem {
					s.noteRecord(rl.Resource().Attributes(), record.Attributes())
				}
			}
		}
	}
	return nil
}

// noteRecord notes a problem that begins or ends. One may begin again with the same id
// while it lasts: once its cause is known, and after a restart of the collector.
func (s *sightings) noteRecord(resource, attrs pcommon.Map) {
	id, now := text(attrs, mlattr.ProblemID), time.Now()
	known := s.lasting[id]
	if text(attrs, mlattr.ProblemState) == mlattr.ProblemEnded {
		if delete(s.lasting, id); known != nil {
			known.seen = now
		}
		return
	}
	if known != nil {
		return
	}
	onset, _ := attrs.Get(mlattr.ProblemOnset)
	known = &sighting{subject: subjectOf(resource, attrs), onset: time.UnixMicro(int64(onset.Double() * 1e6)), detected: now, seen: now}
	if evidence, ok := attrs.Get(mlattr.ProblemEvidence); ok {
		for _, phrase := range evidence.Slice().All() {
			known.evidence += phrase.Str() + "; "
		}
	}
	s.lasting[id] = known
	s.all = append(s.all, known)
}

// note records that a problem is reported now.
func (s *sightings) note(of subject, onset time.Time) {
	now := time.Now()
	known := s.open[of]
	if known == nil || now.Sub(known.seen) > 3*s.flush {
		known = &sighting{subject: of, onset: onset, detected: now}
		s.open[of] = known
		s.all = append(s.all, known)
	}
	known.seen = now
}

func subjectOf(resource, attrs pcommon.Map) subject {
	of := subject{
		kind: text(attrs, mlattr.Problem), service: text(resource, "service.name"),
		run: text(attrs, "ml.run.id"), host: text(attrs, "host.name"), gpu: text(attrs, "hw.id"),
	}
	if of.host == "" {
		of.host = text(resource, "host.name")
	}
	return of
}

func text(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok {
		return v.Str()
	}
	return ""
}
