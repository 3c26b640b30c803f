package anomalies

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	onsetSeries   = "ml.problem.onset.timestamp"
	problemRecord = "ml.problem"
)

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
}

// sightings collects problems from series and from records. Those of a kind whose
// records it has seen are not taken from the series, too.
type sightings struct {
	flush time.Duration
	all   []*sighting
	open  map[subject]*sighting
	// recorded reports whether records arrive.
	recorded bool
}

func newSightings(flush time.Duration) *sightings {
	return &sightings{flush: flush, open: make(map[subject]*sighting)}
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
				if record.EventName() == problemRecord {
					s.recorded = true
					s.noteRecord(rl.Resource().Attributes(), record.Attributes())
				}
			}
		}
	}
	return nil
}

func (s *sightings) noteRecord(resource, attrs pcommon.Map) {
	if text(attrs, "ml.problem.state") != "began" {
		return
	}
	onset, _ := attrs.Get("ml.problem.onset")
	now := time.Now()
	s.all = append(s.all, &sighting{
		subject: subjectOf(resource, attrs), onset: time.UnixMicro(int64(onset.Double() * 1e6)), detected: now, seen: now,
	})
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
		kind: text(attrs, problemRecord), service: text(resource, "service.name"),
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
