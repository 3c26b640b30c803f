package serving

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Ratios are fractions of the requests of a service that failed; a negative one is
// unknown.
type Ratios struct{ Recent, Usual float64 }

// Report passes on the ratios and problems of all services with spans within the
// last expiration, 0 being any time.
func (f *Fleet) Report(now time.Time, expiration time.Duration, ratios func(streams.Resource, Ratios), report func(problem.Problem)) {
	f.forget(now, expiration)
	f.endTasks(now)
	for _, s := range f.services {
		if expiration <= 0 || now.Sub(s.newest) <= expiration {
			r := reports{service: s, now: now, newest: s.newest}
			ratios(s.resource, s.report(&r))
			for _, p := range r.all {
				report(*p)
			}
		}
		s.looping = nil
	}
}

// reports collects the problems of a service, one of each kind.
type reports struct {
	service *Service
	now     time.Time
	// newest is when the newest span arrived of what is reported next.
	newest time.Time
	all    []*problem.Problem
}

// add adds a problem. Of several of a kind, the one that began first counts, and
// has the evidence of all.
func (r *reports) add(p problem.Problem) {
	p.Subject.Resource = r.service.resource
	if p.Evident.IsZero() {
		p.Evident = r.newest
	}
	if p.Count > 0 {
		p.Interval = p.Window / time.Duration(p.Count)
	}
	i := slices.IndexFunc(r.all, func(other *problem.Problem) bool { return other.Kind == p.Kind })
	if i < 0 {
		r.all = append(r.all, &p)
		return
	}
	first, second := r.all[i], &p
	if second.Onset.Before(first.Onset) {
		first, second = second, first
	}
	first.Evidence = append(first.Evidence, second.Evidence...)
	if second.Evident.After(first.Evident) {
		first.Evident = second.Evident
	}
	r.all[i] = first
}

// report adds the problems of the service.
func (s *Service) report(r *reports) Ratios {
	ratios := s.reportFailing(r)
	r.slow("requests to agents", &s.agentTimes, math.NaN())
	r.shifted(s.callTimes.Shift(), &level{
		kind: mlattr.ProblemSlowRequests, what: "calls, of what is typical of their functions", unit: "1", value: math.Exp, telemetry: math.NaN(),
		next: "Compare a slow call with one from before the onset.",
	})
	for _, name := range sortedKeys(s.models) {
		m := s.models[name]
		r.newest = m.newest
		r.slow("requests to "+orUnknown(name), &m.duration, m.all.ratio())
		r.throughput(name, m)
		r.truncated(name, m)
		r.cache(name, m)
		r.substituted(name, m)
	}
	for _, name := range sortedKeys(s.tools) {
		t := s.tools[name]
		found := t.outcomes.Find(r.now, &toolRule)
		r.proportion(mlattr.ProblemToolErrors, "calls of "+orUnknown(name)+" failed", &found, math.NaN(),
			"Look at the failed calls of the tool, newest first.")
	}
	r.newest = s.newest
	s.reportRetries(r)
	s.reportTasks(r)
	return ratios
}

func sortedKeys[V any](all map[string]V) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func orUnknown(name string) string {
	if name == "" {
		return "an unnamed one"
	}
	return name
}

// reportFailing returns the ratios of the kind of requests of which more fail.
func (s *Service) reportFailing(r *reports) Ratios {
	var worst shift.Proportions
	of := ""
	for _, kind := range [...]struct {
		what string
		of   *shift.Proportion
	}{{"requests to models", &s.requests}, {"requests to agents", &s.agents}, {"calls", &s.calls}} {
		found := kind.of.Find(r.now, &failingRule)
		if of == "" || found.Shifted == worst.Shifted && found.Recent > worst.Recent || found.Shifted && !worst.Shifted {
			of, worst = kind.what, found
		}
	}
	r.proportion(mlattr.ProblemFailing, of+" failed", &worst, math.NaN(), "Open the failures of the service and reproduce the newest one.")
	return Ratios{Recent: worst.Recent, Usual: worst.Usual}
}

// proportion adds a shifted proportion. what follows "12 of 40".
func (r *reports) proportion(kind, what string, found *shift.Proportions, telemetry float64, next string) {
	if !found.Shifted {
		return
	}
	evidence := []string{fmt.Sprintf("%d of the last %d %s", found.Shown.Of, found.Shown.All, what)}
	versions := &r.service.versions
	if found.Only != 0 {
		evidence = append(evidence, "mostly "+versions.name(int(found.Only)))
	}
	if several := found.ByVersion; severalVersions(func(v int) int { return several[v].All }) {
		for v, counts := range several {
			if counts.All > 0 {
				evidence = append(evidence, fmt.Sprintf("%s: %d of its last %d", versions.name(v), counts.Of, counts.All))
			}
		}
	}
	usual := found.Usual
	if usual < 0 {
		usual = math.NaN()
	}
	r.add(problem.Problem{
		Kind: kind, Onset: found.Since, Evident: found.Newest, Value: found.Shown.Ratio(), Usual: usual, Unit: "1",
		Window: found.Window, Count: int64(found.Shown.All), Evidence: evidence, Telemetry: telemetry, Next: next,
	})
}

// severalVersions reports whether more than one version has observations.
func severalVersions(count func(int) int) bool {
	n := 0
	for v := range shift.Versions {
		if count(v) > 0 {
			n++
		}
	}
	return n > 1
}

// level is a shifted level in words.
type level struct {
	kind, what, unit string
	// value converts a value of the shift.
	value     func(float64) float64
	works     [shift.Works]string
	telemetry float64
	next      string
}

// shifted adds a shifted level.
func (r *reports) shifted(s *shift.Shift, l *level) {
	if !s.Lasts {
		return
	}
	value, usual := l.value(s.Value), l.value(s.Usual)
	evidence := []string{fmt.Sprintf("%s: %s, usually %s", l.what, figure(value, l.unit), figure(usual, l.unit))}
	if severalVersions(func(v int) int { return s.ByVersion[v].Count }) {
		for v, of := range s.ByVersion {
			if of.Count > 0 {
				evidence = append(evidence, fmt.Sprintf("%s: %s (%d)", r.service.versions.name(v), figure(l.value(of.Value), l.unit), of.Count))
			}
		}
	} else {
		for v, of := range s.ByVersion {
			if of.Count > 0 && v > 0 {
				evidence = append(evidence, r.service.versions.name(v))
			}
		}
	}
	var excluded []string
	for i, grown := range s.Works {
		if grown && l.works[i] != "" {
			excluded = append(excluded, l.works[i])
		}
	}
	if s.Demand {
		excluded = append(excluded, "higher demand")
	}
	r.add(problem.Problem{
		Kind: l.kind, Onset: s.Since, Value: value, Usual: usual, Unit: l.unit, Window: s.Window, Count: int64(s.Count),
		Evidence: evidence, Excluded: excluded, Telemetry: l.telemetry, Next: l.next,
	})
}

// figure returns a number in three digits with its unit, a fraction in per cent.
func figure(value float64, unit string) string {
	if unit == "1" {
		value, unit = 100*value, "%"
	}
	if value >= 1000 {
		return strconv.FormatFloat(value, 'f', 0, 64) + " " + strings.Trim(unit, "{}")
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + " " + strings.Trim(unit, "{}")
}

// slow adds requests that take longer than usual.
func (r *reports) slow(what string, l *shift.Level, telemetry float64) {
	r.shifted(l.Shift(), &level{
		kind: mlattr.ProblemSlowRequests, what: what, unit: "s", value: math.Exp, telemetry: telemetry,
		works: [shift.Works]string{"longer prompts", "longer answers"},
		next:  "Compare a slow trace with one from before the onset.",
	})
}

func (r *reports) throughput(name string, m *model) {
	r.shifted(m.perToken.Shift(), &level{
		kind: mlattr.ProblemThroughputDrop, what: "output of one request to " + orUnknown(name), unit: "{token}/s",
		value: func(v float64) float64 { return math.Exp(-v) }, telemetry: m.all.ratio(),
		works: [shift.Works]string{"longer prompts", "shorter answers"},
		next:  "Look at the load and the GPUs of the model's server.",
	})
	// With as many requests, there are as many fewer tokens a second.
	r.shifted(m.length.Shift(), &level{
		kind: mlattr.ProblemThroughputDrop, what: "an answer of " + orUnknown(name), unit: "{token}",
		value: func(v float64) float64 { return math.Expm1(-v) }, telemetry: m.all.ratio(),
		next: "Find out why the answers have become shorter.",
	})
}

func (r *reports) truncated(name string, m *model) {
	found := m.truncated.Find(r.now, &truncatedRule)
	r.proportion(mlattr.ProblemTruncated, "answers of "+orUnknown(name)+" reached their limit of tokens", &found, m.finished.ratio(),
		"Raise the limit of output tokens, or find out why the answers have become longer.")
}

func (r *reports) cache(name string, m *model) {
	s, collapsed := m.collapsed()
	if !collapsed {
		return
	}
	r.shifted(s, &level{
		kind: mlattr.ProblemCacheCollapsed, what: "cached share of the input of " + orUnknown(name), unit: "1",
		value: func(v float64) float64 { return 0 - v }, telemetry: m.caches.ratio(),
		next: "Find out what has changed at the beginning of the prompts.",
	})
}

func (r *reports) substituted(name string, m *model) {
	a := &m.answers
	if !a.substituted || name == "" {
		return
	}
	usual, unusual := a.most()
	r.add(problem.Problem{
		Kind: mlattr.ProblemModelSubstituted, Onset: a.since, Value: float64(a.of) / float64(a.others), Usual: 0, Unit: "1",
		Window: r.now.Sub(a.since), Count: int64(a.others), Telemetry: math.NaN(),
		Evidence: []string{fmt.Sprintf("%d of %d requests for %s were answered by %s, usually by %s", a.of, a.others, name, unusual, usual)},
		Next:     "Ask the provider, or pin the version of the model.",
	})
}

func (s *Service) reportRetries(r *reports) {
	const next = "Let clients wait longer between attempts, and limit their retries."
	s.retries.rates.advance(r.now)
	found := s.retries.of.Find(r.now, &retryRule)
	r.proportion(mlattr.ProblemRetryStorm, "requests repeat one that failed", &found, math.NaN(), next)
	if storm := &s.retries.rates; storm.storm.All > 0 {
		r.add(problem.Problem{
			Kind: mlattr.ProblemRetryStorm, Onset: storm.since, Value: float64(storm.storm.All), Usual: float64(storm.usual), Unit: "{request}",
			Window: rateTime, Count: int64(storm.storm.All), Telemetry: math.NaN(), Next: next,
			Evidence: []string{fmt.Sprintf("%d requests in 5 minutes, usually %d; %d of them failed", storm.storm.All, storm.usual, storm.storm.Of)},
		})
	}
}

func (s *Service) reportTasks(r *reports) {
	l := level{kind: mlattr.ProblemCostly, what: "a task", unit: "{token}", value: math.Exp, telemetry: s.counted.ratio(),
		next: "Compare the steps of a task with one from before the onset."}
	shown := s.tokens.Shift()
	if costs := s.costs.Shift(); costs.Lasts {
		shown, l.unit = costs, "USD"
	}
	r.shifted(shown, &l)
	if t := s.looping; t != nil {
		usual, _ := s.repeats.usual()
		r.add(problem.Problem{
			Kind: mlattr.ProblemLooping, Onset: t.loopingSince, Value: float64(t.most), Usual: float64(usual), Unit: "{call}",
			Window: r.now.Sub(t.loopingSince), Count: int64(t.most), Telemetry: math.NaN(),
			Evidence: []string{fmt.Sprintf("%s was called %d times in one task, with the same arguments where they are known, usually at most %d times", orUnknown(t.repeated), t.most, usual)},
			Next:     "Limit the steps of a task, and look at what the call returned.",
		})
	}
}
