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
	usual := math.NaN()
	if found.Usual >= 0 {
		usual = found.Usual
		evidence[0] += ", usually " + figure(usual, "1")
	}
	if found.Only != 0 {
		evidence = append(evidence, "mostly "+s.Versions.Name(int(found.Only)))
	}
	var versions []string
	for v, counts := range found.ByVersion {
		if counts.All > 0 {
			versions = append(versions, fmt.Sprintf("%s: %d of its last %d", s.Versions.Name(v), counts.Of, counts.All))
		}
	}
	if len(versions) > 1 {
		evidence = append(evidence, versions...)
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
	var versions []string
	only := 0
	for v, its := range of.ByVersion {
		if its.Count > 0 {
			only = v
			versions = append(versions, fmt.Sprintf("%s: %s (%d)", s.Versions.Name(v), figure(l.value(its.Value), l.unit), its.Count))
		}
	}
	switch {
	case len(versions) > 1:
		evidence = append(evidence, versions...)
	case only > 0:
		evidence = append(evidence, s.Versions.Name(only))
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
