package serving

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// ModelID identifies the use of a model by a service and role.
type ModelID struct{ Namespace, Service, model, role, side string }

// Use is the use of a model.
type Use struct {
	id ModelID
	// row is what does not change with each request.
	row      api.Model
	lastSeen time.Time
	series.Group

	requests                     bool
	firstToken, duration, decode reservoir
	cached, lengthStops          series.Total
}

// Models are those in use.
type Models struct {
	*input.Bounds
	streams  *series.Table
	services *Services

	All     map[ModelID]*Use
	leaving kept.Leaving[*Use]
	// Requests reports whether spans have reported any.
	Requests bool
}

// NewModels returns no models.
func NewModels(streams *series.Table, services *Services) *Models {
	return &Models{Bounds: services.Bounds, streams: streams, services: services, All: make(map[ModelID]*Use)}
}

// ModelIDOf returns what a stream of Tokens, Requests, Cost or ClientThroughput is
// about.
func ModelIDOf(one *series.Stream) ModelID {
	l := &one.Labels
	if one.Series == series.ClientThroughput {
		return ModelID{Namespace: l.Namespace, Service: l.Service, model: l.Own[1]}
	}
	return ModelID{l.Namespace, l.Service, l.Own[1], l.Own[3], l.Own[4]}
}

// Trains reports whether a stream counts the tokens of training steps.
func Trains(s *series.Stream) bool {
	return s.Series == series.Tokens && s.Labels.Own[2] == "train_step"
}

// Of returns the use of a model, which it adds if there is room, else nil.
func (s *Models) Of(id ModelID, now time.Time) *Use {
	one := s.All[id]
	if one == nil {
		id = ModelID{s.Texts.Of(id.Namespace), s.Texts.Of(id.Service), s.Texts.Of(id.model), s.Texts.Of(id.role), s.Texts.Of(id.side)}
		one = s.All[id]
	}
	if one == nil {
		key := api.Key("model", id.Namespace, id.Service, id.model, id.role, id.side)
		if len(s.All) >= maxModels && !s.replace(now) {
			s.Limits.Refuse("models", key, now)
			return nil
		}
		s.Limits.Accept("models", key)
		one = &Use{id: id, row: api.Model{Key: key, Service: id.Service, Model: id.model, Role: id.role, Side: id.side}}
		s.All[id] = one
	}
	one.lastSeen = now
	return one
}

// replace removes the use without live series that was seen longest ago.
func (s *Models) replace(now time.Time) bool {
	gone := func(one *Use) bool {
		live := slices.ContainsFunc(one.Streams, func(one *series.Stream) bool { return one.Live(now) })
		return !live && now.Sub(one.lastSeen) > series.GoneAfter && s.All[one.id] == one
	}
	return s.leaving.RemoveOldest(now, maps.Values(s.All), gone, func(one *Use) time.Time { return one.lastSeen }, s.remove)
}

func (s *Models) remove(m *Use) {
	m.Leave(s.streams)
	delete(s.All, m.id)
}

// Request adds the finished request of a span to its model, if there is room.
func (s *Models) Request(in *input.Span, now time.Time) {
	m := s.Of(ModelID{in.Source.Namespace, in.Source.Service, in.Fact.Model(), in.Fact.Role, in.Fact.Side}, now)
	if m == nil {
		return
	}
	m.requests, s.Requests = true, true
	m.firstToken.add(in.FirstToken)
	m.decode.add(in.Decode)
	if in.DecodeBasis != "" && in.Decode == in.Decode {
		m.row.DecodeBasis = s.Texts.Of(in.DecodeBasis)
	}
	if in.Cached >= 0 {
		m.cached.Add(in.Cached)
	}
	if in.LengthStop {
		m.lengthStops.Add(1)
	}
	// A client may end the span of a stream when the stream begins.
	if !in.Failed && in.Duration > 0 && !(in.FirstToken > in.Duration) {
		m.duration.add(in.Duration)
	}
}

// Rows returns the rows of models in use, by service, model and role.
func (s *Models) Rows(now time.Time) []api.Model {
	rows := make([]api.Model, 0, len(s.All))
	for _, m := range s.All {
		if row, ok := s.row(m, now); ok {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b api.Model) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Side, b.Side), cmp.Compare(a.Key, b.Key))
	})
	return rows
}

// row returns the row of a model. ok is false if nothing was used: spans of
// training have a model, too.
func (s *Models) row(m *Use, now time.Time) (row api.Model, ok bool) {
	row = m.row
	row.Errors, row.Simulated = make(map[string]float64), s.services.Simulated[m.id.Service]
	var requests, requestRate, cost series.Total
	// The tokens of input come first, those of output second.
	var tokens, rates, clientRates [2]series.Total
	for _, one := range m.Streams {
		if !one.Live(now) {
			continue
		}
		of := shared.OneIf[int](one.Labels.Own[0] == "output")
		switch one.Series {
		case series.Requests:
			requests.Add(one.Value)
			requestRate.AddRate(one, now)
			if class := one.Labels.Own[2]; class != "" {
				addClass(row.Errors, class, one.Value)
			}
		case series.Cost:
			cost.Add(one.Value)
		case series.Tokens:
			tokens[of].Add(one.Value)
			rates[of].AddRate(one, now)
		case series.ClientThroughput:
			// Means of requests are no rates of the service.
			if one.Labels.Own[2] != "mean" {
				clientRates[of].Add(one.Value)
			}
		}
	}
	// The client's own metrics count where no span reports tokens.
	if tokens[0].N+tokens[1].N == 0 {
		rates = clientRates
	}
	row.Requests, row.RequestRate = requests.All(), requestRate.All()
	row.InputTokens, row.InputTokenRate = tokens[0].All(), rates[0].All()
	row.OutputTokens, row.OutputTokenRate = tokens[1].All(), rates[1].All()
	row.CachedTokens, row.Cost, row.LengthStops = m.cached.All(), cost.All(), m.lengthStops.All()
	row.FirstToken, row.Duration, row.Decode = m.firstToken.quantiles(), m.duration.quantiles(), m.decode.quantiles()
	if of := s.services.All[ServiceID{m.id.Namespace, m.id.Service}]; of != nil {
		row.ToolErrors, row.Bound = of.toolErrors(now), of.requestTimes(m.id, now)
		row.ErrorRatio, row.ErrorRatioUsual = of.errorRatios(now)
	}
	return row, m.requests || requests.N+tokens[0].N+tokens[1].N+clientRates[0].N+clientRates[1].N > 0
}

// addClass counts errors of a class. Of too many classes the others are one.
func addClass(errors map[string]float64, class string, n float64) {
	if _, known := errors[class]; !known && len(errors) >= maxClasses {
		class = mlattr.Other
	}
	errors[class] += n
}

// reservoirSize is the number of values that quantiles are taken of.
const reservoirSize = 256

// reservoir has the last values of a measure. It grows as it fills.
type reservoir []float32

// add adds a value. A value that is negative or not believed is unknown.
func (r *reservoir) add(v float64) {
	if !(v >= 0 && v <= series.MaxValue) {
		return
	}
	if len(*r) == reservoirSize {
		*r = (*r)[1:]
	}
	*r = append(*r, float32(v))
}

// quantiles returns the quantiles by the nearest rank, nil without values.
func (r reservoir) quantiles() *api.Quantiles {
	n := len(r)
	if n == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(r))
	at := func(share float64) float64 { return api.Exact(sorted[min(n-1, int(share*float64(n)))]) }
	return &api.Quantiles{P50: at(0.5), P95: at(0.95), Count: n}
}

// Prune removes the uses that have been gone for long.
func (s *Models) Prune(within time.Duration, now time.Time) {
	for _, m := range s.All {
		m.DropGone(s.streams, now)
		if len(m.Streams) == 0 && now.Sub(m.lastSeen) > within {
			s.remove(m)
		}
	}
}

const (
	// MaxStreamsOfModel limits the streams of the use of a model.
	MaxStreamsOfModel = 4000
	// maxModels limits the uses, maxClasses the classes of errors of a row.
	maxModels  = 500
	maxClasses = 100
)
