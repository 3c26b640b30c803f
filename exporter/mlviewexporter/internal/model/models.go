package model

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
)

// modelID identifies the use of a model by a service and role.
type modelID struct{ namespace, service, model, role, side string }

// modelUse is the use of a model.
type modelUse struct {
	modelID
	key      string
	lastSeen time.Time
	group

	requests             bool
	firstToken, duration reservoir
	decode               reservoir
	decodeBasis          string
	cached, lengthStops  total
	versions             map[string]*versionUse
}

// models are those in use.
type models struct {
	texts    *texts
	limits   *limits
	streams  *streamTable
	services *services

	all map[modelID]*modelUse
	// requests reports whether spans have reported any.
	requests bool
	// parents are the spans above requests.
	parents *spanSet
}

func newModels(texts *texts, limits *limits, streams *streamTable, services *services) *models {
	return &models{
		texts: texts, limits: limits, streams: streams, services: services,
		all: make(map[modelID]*modelUse), parents: lastused.NewMap[spanRef, bool](rememberedSpans),
	}
}

// versionUse is the use of a model by one version of a service.
type versionUse struct {
	firstSeen            time.Time
	requests, errors     float64
	firstToken, duration reservoir
}

// maxVersions limits the versions that are compared.
const maxVersions = 8

// modelIDOf returns what a stream of Tokens, Requests, Cost or ClientThroughput is
// about.
func modelIDOf(one *stream) modelID {
	l := &one.labels
	if one.series == ClientThroughput {
		return modelID{namespace: l.Namespace, service: l.Service, model: l.Own[1]}
	}
	return modelID{l.Namespace, l.Service, l.Own[1], l.Own[3], l.Own[4]}
}

// trains reports whether a stream counts the tokens of training steps.
func (s *stream) trains() bool { return s.series == Tokens && s.labels.Own[2] == "train_step" }

// of returns the use of a model, which it adds if there is room, else nil.
func (s *models) of(id modelID, now time.Time) *modelUse {
	one := s.all[id]
	if one == nil {
		id = modelID{s.texts.of(id.namespace), s.texts.of(id.service), s.texts.of(id.model), s.texts.of(id.role), s.texts.of(id.side)}
		one = s.all[id]
	}
	if one == nil {
		key := keyOf("model", id.namespace, id.service, id.model, id.role, id.side)
		if len(s.all) >= maxModels && !s.replace(now) {
			s.limits.refuse("models", key, now)
			return nil
		}
		s.limits.accept("models", key)
		one = &modelUse{modelID: id, key: key, versions: make(map[string]*versionUse)}
		s.all[id] = one
	}
	one.lastSeen = now
	return one
}

// replace removes the use without live series that was seen longest ago.
func (s *models) replace(now time.Time) bool {
	var least *modelUse
	for _, one := range s.all {
		if !one.live(now) && now.Sub(one.lastSeen) > goneAfter && (least == nil || one.lastSeen.Before(least.lastSeen)) {
			least = one
		}
	}
	if least == nil {
		return false
	}
	s.remove(least)
	return true
}

func (s *models) remove(m *modelUse) {
	m.leave(s.streams)
	delete(s.all, m.modelID)
}

func (m *modelUse) live(now time.Time) bool {
	return slices.ContainsFunc(m.streams, func(one *stream) bool { return one.live(now) })
}

// request adds a finished request to a model. It is called with what spans say.
func (s *models) request(in *SpanInput, of *service, now time.Time) {
	m := s.of(modelID{in.Source.Namespace, in.Source.Service, in.Model, in.Role, in.Side}, now)
	if m == nil {
		return
	}
	m.requests, s.requests = true, true
	m.firstToken.add(in.FirstToken)
	m.decode.add(in.Decode)
	if in.DecodeBasis != "" && in.Decode == in.Decode {
		m.decodeBasis = s.texts.of(in.DecodeBasis)
	}
	if in.Cached >= 0 {
		m.cached.add(in.Cached)
	}
	if in.LengthStop {
		m.lengthStops.add(1)
	}
	if !in.Failed {
		m.duration.add(in.wholeDuration())
	}
	version := s.texts.of(in.Source.Version)
	if version == "" || of == nil {
		return
	}
	v := m.versions[version]
	if v == nil {
		if len(m.versions) >= maxVersions {
			m.forgetVersion()
		}
		v = &versionUse{firstSeen: now}
		if first, known := of.versions[version]; known {
			v.firstSeen = first
		}
		m.versions[version] = v
	}
	v.requests++
	v.firstToken.add(in.FirstToken)
	if in.Failed {
		v.errors++
	} else {
		v.duration.add(in.wholeDuration())
	}
}

// forgetVersion removes the version that was first seen longest ago.
func (m *modelUse) forgetVersion() {
	oldest := ""
	for version, use := range m.versions {
		if oldest == "" || use.firstSeen.Before(m.versions[oldest].firstSeen) {
			oldest = version
		}
	}
	delete(m.versions, oldest)
}

// rows returns the rows of models in use, by service, model and role.
func (s *models) rows(now time.Time) []Model {
	rows := make([]Model, 0, len(s.all))
	for _, m := range s.all {
		if row, ok := s.row(m, now); ok {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b Model) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Side, b.Side), cmp.Compare(a.Key, b.Key))
	})
	return rows
}

// row returns the row of a model. ok is false if nothing was used: spans of
// training have a model, too.
func (s *models) row(m *modelUse, now time.Time) (row Model, ok bool) {
	row = Model{Key: m.key, Service: m.service, Model: m.model, Role: m.role, Side: m.side, DecodeBasis: m.decodeBasis, Simulated: s.services.simulated[m.service]}
	var requests, requestRate, cost, input, output, inputRate, outputRate, clientInput, clientOutput total
	for _, one := range m.streams {
		if !one.live(now) {
			continue
		}
		switch one.series {
		case Requests:
			requests.add(one.value)
			requestRate.addRate(one, now)
			if class := one.labels.Own[2]; class != "" {
				addClass(&row.Errors, class, one.value)
			}
		case Cost:
			cost.add(one.value)
		case Tokens:
			if one.labels.Own[0] == "output" {
				output.add(one.value)
				outputRate.addRate(one, now)
			} else {
				input.add(one.value)
				inputRate.addRate(one, now)
			}
		case ClientThroughput:
			// Means of requests are no rates of the service.
			if one.labels.Own[2] == "mean" {
				continue
			}
			if one.labels.Own[0] == "output" {
				clientOutput.add(one.value)
			} else {
				clientInput.add(one.value)
			}
		}
	}
	// The client's own metrics count where no span reports tokens.
	if input.n+output.n == 0 {
		inputRate, outputRate = clientInput, clientOutput
	}
	row.Requests, row.RequestRate = requests.all(), requestRate.all()
	row.InputTokens, row.InputTokenRate = input.all(), inputRate.all()
	row.OutputTokens, row.OutputTokenRate = output.all(), outputRate.all()
	row.CachedTokens, row.Cost, row.LengthStops = m.cached.all(), cost.all(), m.lengthStops.all()
	row.FirstToken, row.Duration, row.Decode = m.firstToken.quantiles(), m.duration.quantiles(), m.decode.quantiles()
	if of := s.services.all[serviceID{m.namespace, m.service}]; of != nil {
		row.ToolErrors, row.Bound = of.toolErrors(now), of.requestTimes(m.modelID, now)
		row.ErrorRatio, row.ErrorRatioUsual = of.errorRatios(now)
	}
	row.Versions = m.versionRows(s.services.all[serviceID{m.namespace, m.service}])
	return row, m.requests || requests.n+input.n+output.n+clientInput.n+clientOutput.n > 0
}

func (m *modelUse) versionRows(of *service) (rows []VersionUse) {
	for _, version := range slices.Sorted(maps.Keys(m.versions)) {
		use := m.versions[version]
		row := VersionUse{
			Version: version, FirstSeen: use.firstSeen.UTC(), Requests: use.requests, Errors: use.errors,
			FirstToken: use.firstToken.quantiles(), Duration: use.duration.quantiles(),
		}
		if of != nil {
			row.Failures = max(row.Errors, of.failed[version])
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b VersionUse) int { return b.FirstSeen.Compare(a.FirstSeen) })
	return rows
}

// addClass counts errors of a class. Of too many classes the others are one.
func addClass(errors *map[string]float64, class string, n float64) {
	if *errors == nil {
		*errors = make(map[string]float64)
	}
	if _, known := (*errors)[class]; !known && len(*errors) >= maxClasses {
		class = otherError
	}
	(*errors)[class] += n
}

// reservoirSize is the number of values that quantiles are taken of.
const reservoirSize = 256

// reservoir has the last values of a measure. It grows as it fills.
type reservoir struct {
	values []float32
	next   int
}

// add adds a value. A value that is negative or not believed is unknown.
func (r *reservoir) add(v float64) {
	if !(v >= 0 && v <= maxValue) {
		return
	}
	if len(r.values) < reservoirSize {
		r.values = append(r.values, float32(v))
		return
	}
	r.values[r.next] = float32(v)
	r.next = (r.next + 1) % reservoirSize
}

// quantiles returns the quantiles by the nearest rank, nil without values.
func (r *reservoir) quantiles() *Quantiles {
	n := len(r.values)
	if n == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(r.values))
	at := func(share float64) float64 { return exact(sorted[min(n-1, int(share*float64(n)))]) }
	return &Quantiles{P50: at(0.5), P95: at(0.95), Count: n}
}

// prune removes the uses that have been gone for long.
func (s *models) prune(within time.Duration, now time.Time) {
	for _, m := range s.all {
		m.dropGone(s.streams, now)
		if len(m.streams) == 0 && now.Sub(m.lastSeen) > within {
			s.remove(m)
		}
	}
}

// noteParents remembers the spans above requests to a model: of a chain of spans
// that report one request, the lowest counts.
func (s *models) noteParents(spans []SpanInput) {
	for i := range spans {
		if in := &spans[i]; (in.Request || in.Usage) && in.Parent != ([8]byte{}) {
			s.parents.Put(spanRef{in.Trace, in.Parent}, true)
		}
	}
}

// isRequest reports whether a span is a request that no span below reports.
func (s *models) isRequest(in *SpanInput) bool {
	below, _ := s.parents.Get(spanRef{in.Trace, in.ID})
	return (in.Request || in.Usage) && !below
}
