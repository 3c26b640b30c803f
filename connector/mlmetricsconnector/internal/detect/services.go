package detect

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// eachService finds problems of one kind of single services.
func eachService(kind string, find func(*service)) Detector {
	return func(s *State, report func(problem.Problem)) {
		s.Services.Each(func(of *serving.Service) {
			one := service{Service: of, kind: kind, now: s.Now, newest: of.Newest}
			if find(&one); one.found != nil {
				report(*one.found)
			}
		})
	}
}

// eachModel finds problems of one kind of the models of single services.
func eachModel(kind string, find func(s *service, name string, m *serving.Model)) Detector {
	return eachService(kind, func(s *service) {
		s.models(func(name string, m *serving.Model) { find(s, name, m) })
	})
}

// service is a service with its problem of one kind.
type service struct {
	*serving.Service
	kind string
	now  time.Time
	// newest is when the newest span arrived of what is added next.
	newest time.Time
	found  *problem.Problem
}

// models passes the models of the service to of, in the order of their names.
func (s *service) models(of func(name string, m *serving.Model)) {
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		m := s.Models[name]
		s.newest = m.Newest
		of(orUnknown(name), m)
	}
}

// add adds a problem. The one that began first counts, and has the evidence of all.
func (s *service) add(p problem.Problem) {
	p.Kind, p.Subject.Resource = s.kind, s.Resource
	p.Evident = cmp.Or(p.Evident, s.newest)
	if p.Count > 0 {
		p.Interval = p.Window / time.Duration(p.Count)
	}
	if s.found == nil {
		s.found = &p
		return
	}
	first, second := s.found, &p
	if second.Onset.Before(first.Onset) {
		first, second = second, first
	}
	first.Evidence = append(first.Evidence, second.Evidence...)
	first.Evident = shared.Later(first.Evident, second.Evident)
	s.found = first
}

// proportion adds a shifted proportion. what follows "12 of 40".
func (s *service) proportion(what string, found *shift.Proportions, telemetry float64) {
	if !found.Shifted {
		return
	}
	said := found.Shown
	if found.Only == 0 && said.All < found.Last.All {
		said = found.Last // the failure of the only request in 15 minutes says little
	}
	evidence := []string{fmt.Sprintf("%d of the last %d %s", said.Of, said.All, what)}
	if found.Usual >= 0 {
		evidence[0] += ", usually " + figure(found.Usual, "1")
	}
	if found.Only != 0 {
		evidence = append(evidence, "mostly "+s.Versions.Name(int(found.Only)))
	}
	if several := found.ByVersion; severalVersions(func(v int) int { return several[v].All }) {
		for v, counts := range several {
			if counts.All > 0 {
				evidence = append(evidence, fmt.Sprintf("%s: %d of its last %d", s.Versions.Name(v), counts.Of, counts.All))
			}
		}
	}
	usual := found.Usual
	if usual < 0 {
		usual = math.NaN()
	}
	s.add(problem.Problem{
		Onset: found.Since, Evident: found.Newest, Evidence: evidence,
		Measure: problem.Measure{
			Value: found.Shown.Ratio(), Usual: usual, Unit: "1",
			Window: found.Window, Count: int64(found.Shown.All), Telemetry: telemetry,
		},
	})
}

// unusual adds answers of a model that are unusual, of which the newest came at a time. form
// takes their number, that of all, the name of the model, the unusual and the usual one, next is
// what to do, "" for what the kind says.
func (s *service) unusual(a *serving.Answers, newest time.Time, name, form, next string) {
	if !a.Substituted {
		return
	}
	usual, unusual := a.Most()
	s.add(problem.Problem{
		Onset: a.Since, Evident: newest,
		Measure: problem.Measure{
			Value: float64(a.Of) / float64(a.Others), Unit: "1",
			Window: s.now.Sub(a.Since), Count: int64(a.Others), Telemetry: math.NaN(),
		},
		Evidence: []string{fmt.Sprintf(form, a.Of, a.Others, name, unusual, usual)}, Next: next,
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
	what, unit string
	// value converts a value of the shift.
	value     func(float64) float64
	works     [shift.Works]string
	telemetry float64
	// next is what to do, "" for what the kind says.
	next string
}

// shifted adds a shifted level.
func (s *service) shifted(of *shift.Shift, l *level) {
	if !of.Lasts {
		return
	}
	value, usual := l.value(of.Value), l.value(of.Usual)
	evidence := []string{fmt.Sprintf("%s: %s, usually %s", l.what, figure(value, l.unit), figure(usual, l.unit))}
	several := severalVersions(func(v int) int { return of.ByVersion[v].Count })
	for v, its := range of.ByVersion {
		switch {
		case its.Count == 0:
		case several:
			evidence = append(evidence, fmt.Sprintf("%s: %s (%d)", s.Versions.Name(v), figure(l.value(its.Value), l.unit), its.Count))
		case v > 0:
			evidence = append(evidence, s.Versions.Name(v))
		}
	}
	var excluded []string
	for i, grown := range of.Works {
		if grown && l.works[i] != "" {
			excluded = append(excluded, l.works[i])
		}
	}
	if of.Demand {
		excluded = append(excluded, "higher demand")
	}
	s.add(problem.Problem{
		Onset: of.Since, Evidence: evidence, Excluded: excluded, Next: l.next,
		Measure: problem.Measure{
			Value: value, Usual: usual, Unit: l.unit, Window: of.Window, Count: int64(of.Count), Telemetry: l.telemetry,
		},
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

// orUnknown returns a name as evidence has it.
func orUnknown(name string) string { return cmp.Or(name, "an unnamed one") }

// mostOf is the share of the failures of all models from which on one is named.
const mostOf = 0.8

// failing finds services of whose requests or calls more fail, and of several models the
// one of whose requests most do.
func failing(s *service) {
	of, worst := s.FailingOf, s.Failing
	if len(s.Models) > 1 {
		all, most, mostly := 0, 0, ""
		s.models(func(name string, m *serving.Model) {
			found := m.Failures.Find(s.now, &serving.FailingRule)
			if all += found.Counts.Of; found.Counts.Of > most {
				most, mostly = found.Counts.Of, name
			}
			if found.Shifted && (!worst.Shifted || found.Shown.Ratio() > worst.Shown.Ratio()) {
				of, worst = "requests to "+name, found
			}
		})
		if of == serving.ToModels && float64(most) >= mostOf*float64(all) {
			of += ", mostly to " + mostly + ","
		}
	}
	s.proportion(of+" failed", &worst, math.NaN())
}

// slowRequests finds services whose requests or calls take longer than usual.
func slowRequests(s *service) {
	slow := func(what string, of *shift.Level, telemetry float64) {
		s.shifted(of.Shift(), &level{
			what: what, unit: "s", value: math.Exp, telemetry: telemetry,
			works: [shift.Works]string{"longer prompts", "longer answers"},
		})
	}
	slow("requests to agents", &s.Agents.Times, math.NaN())
	s.shifted(s.Calls.Times.Shift(), &level{
		what: "calls, of what is typical of their functions", unit: "1", value: math.Exp, telemetry: math.NaN(),
		next: "Compare a slow call with one from before the onset.",
	})
	s.models(func(name string, m *serving.Model) {
		slow("requests to "+name, &m.Times, m.All.Ratio())
		slow("first tokens of "+name, &m.FirstToken, math.NaN())
		slow("waiting of requests to "+name, &m.Queued, math.NaN())
	})
}

// tailRule: 0.02 and five times the usual share. mostTail is the greatest share that
// is a tail: where more take longer, all do.
var tailRule = shift.ProportionRule{Least: 0.02, Times: 5, Count: 10, Steady: true}

const mostTail = 0.4

// tailLatency finds services of whose requests or calls more take far longer than others.
func tailLatency(s *service) {
	slow := func(what string, of *shift.Tail, unit string) {
		found := of.Over.Find(s.now, &tailRule)
		if found.Shown.Ratio() > mostTail {
			return
		}
		s.proportion(fmt.Sprintf("%s took more than %s", what, figure(math.Exp(of.Limit()), unit)), &found, math.NaN())
	}
	slow("requests to agents", &s.Agents.Tail, "s")
	slow("calls, of what is typical of their functions,", &s.Calls.Tail, "1")
	s.models(func(name string, m *serving.Model) {
		if !m.Length.Shift().Lasts { // other answers vary otherwise
			slow("requests to "+name, &m.Tail, "s")
		}
	})
}

// retryRule: clients should keep retries below a tenth of their requests, by the
// retry budget of Google's Site Reliability Engineering (2016), chapter 21.
var retryRule = shift.ProportionRule{Least: 0.1, Times: 3, Count: 10}

// retryStorm finds services of whose requests more repeat a failed one, or that have many
// more of which most fail.
func retryStorm(s *service) {
	found := s.Retries.Repeated.Find(s.now, &retryRule)
	s.proportion("requests repeat one that failed", &found, math.NaN())
	if storm := s.Retries.Storm(s.now); storm.All > 0 {
		rates := &s.Retries.Rates
		s.add(problem.Problem{
			Onset: rates.Since,
			Measure: problem.Measure{
				Value: float64(storm.All), Usual: float64(rates.Usual), Unit: "{request}",
				Window: serving.RateTime, Count: int64(storm.All), Telemetry: math.NaN(),
			},
			Evidence: []string{fmt.Sprintf("%d requests in 5 minutes, usually %d; %d of them failed", storm.All, rates.Usual, storm.Of)},
		})
	}
}

// unusableRule: a twentieth of the answers and three times the usual share.
var unusableRule = shift.ProportionRule{Least: 0.05, Times: 3, Count: 5}

// answersChanged finds models whose answers are empty, withheld, half as long or of other
// dimensions.
func answersChanged(s *service, name string, m *serving.Model) {
	found := m.Unusable.Find(s.now, &unusableRule)
	s.proportion("answers of "+name+" were empty, withheld or refused", &found, math.NaN())
	s.shifted(m.Length.Shift(), &level{
		what: "an answer of " + name, unit: "{token}",
		value: func(v float64) float64 { return math.Expm1(-v) }, telemetry: m.All.Ratio(),
		next: "Find out why the answers have become shorter.",
	})
	s.unusual(&m.Dimensions, m.Newest, name, "%d of %d embeddings of %s have %s dimensions, usually %s",
		"Do not mix them in one index: ask the provider, or pin the version of the model.")
}

// cacheUsual is the least usual share of cached tokens that can collapse, and
// cacheFactor what it falls to, as a share of the usual one.
const cacheUsual, cacheFactor = 0.2, 1.0 / 3

// cacheCollapsed finds models of whose input fewer tokens are read from a cache.
func cacheCollapsed(s *service, name string, m *serving.Model) {
	if of := m.Cached.Shift(); -of.Usual >= cacheUsual && -of.Value <= -of.Usual*cacheFactor {
		s.shifted(of, &level{
			what: "cached share of the input of " + name, unit: "1",
			value: func(v float64) float64 { return 0 - v }, telemetry: m.Caches.Ratio(),
		})
	}
}

// substituted finds models for which another one answers.
func substituted(s *service) {
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if m := s.Models[name]; name != "" {
			s.unusual(&m.Answers, m.Newest, name, "%d of %d requests for %s were answered by %s, usually by %s", "")
		}
	}
}

// throughput finds models of which fewer tokens come.
func throughput(s *service, name string, m *serving.Model) {
	s.shifted(m.PerToken.Shift(), &level{
		what: "output of one request to " + name, unit: "{token}/s",
		value: func(v float64) float64 { return math.Exp(-v) }, telemetry: m.All.Ratio(),
		works: [shift.Works]string{"longer prompts", "shorter answers"},
	})
}

// truncatedRule: a tenth of the answers and twice the usual share.
var truncatedRule = shift.ProportionRule{Least: 0.1, Times: 2, Count: 5}

// truncated finds models of whose answers more are cut at a limit of tokens.
func truncated(s *service, name string, m *serving.Model) {
	found := m.Truncated.Find(s.now, &truncatedRule)
	s.proportion("answers of "+name+" reached their limit of tokens", &found, m.Finished.Ratio())
}

// costly finds services whose tasks take more tokens, or cost more, than usual.
func costly(s *service) {
	l := level{what: "a task", unit: "{token}", value: math.Exp, telemetry: s.Counted.Ratio()}
	shown := s.Tokens.Shift()
	if costs := s.Costs.Shift(); costs.Lasts {
		shown, l.unit = costs, "USD"
	}
	s.shifted(shown, &l)
}

// looping finds a task that calls the same again and again.
func looping(s *service) {
	t := s.Looping
	if t == nil {
		return
	}
	usual, _ := s.Repeats.Usual()
	s.add(problem.Problem{
		Onset: t.LoopingSince,
		Measure: problem.Measure{
			Value: float64(t.Most), Usual: float64(usual), Unit: "{call}",
			Window: s.now.Sub(t.LoopingSince), Count: int64(t.Most), Telemetry: math.NaN(),
		},
		Evidence: []string{fmt.Sprintf("%s was called %d times in one task, with the same arguments where they are known, usually at most %d times", orUnknown(t.Repeated), t.Most, usual)},
	})
}

// toolRule needs a usual proportion: many tools fail often.
var toolRule = shift.ProportionRule{Least: 0.1, Times: 3, Count: 5}

// toolErrors finds tools of whose calls more fail.
func toolErrors(s *service) {
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		found := s.Tools[name].Outcomes.Find(s.now, &toolRule)
		s.proportion("calls of "+orUnknown(name)+" failed", &found, math.NaN())
	}
}
