package spans

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

const (
	// maxRate is the largest accepted token rate, in tokens per second.
	maxRate = 1e12
	// scopeValidation is the ml.loss.scope of a validation loss.
	scopeValidation = "validation"
)

// signals are the attributes with a value that may not be finite, besides the loss.
var signals = [...]struct {
	slot   vocabulary.Slot
	name   string
	series series.ID
	label  string
}{
	{vocabulary.SlotValLoss, "val_loss", series.Loss, scopeValidation},
	{vocabulary.SlotLearningRate, "learning_rate", series.LearningRate, ""},
	{vocabulary.SlotGradientNorm, "gradient_norm", series.GradientNorm, ""},
	{vocabulary.SlotValMetric, "val_metric", series.ValidationMetric, mlattr.ValMetric[len(mlattr.ValPrefix):]},
}

// numbers are those that earlier events of a span have shown.
type numbers struct{ loss, learningRate bool }

// addNumbers adds the numbers of a training run that facts have at a time, but for those
// that there were before.
func (r *result) addNumbers(u *unit, facts *vocabulary.Facts, at int64, has numbers) {
	epoch, ok := facts.IntAt(vocabulary.SlotEpoch)
	r.addNumber(u, at, float64(epoch), ok, false, "", series.Epoch)
	add := func(f *vocabulary.Fact, name string, id series.ID, labels ...string) {
		known := id == series.Loss && has.loss || id == series.LearningRate && has.learningRate
		if f.NonFinite {
			known = has.loss // NaN and infinity count until there is a loss
		}
		if !known {
			r.addNumber(u, at, f.Double, !f.Unreadable, f.NonFinite, name, id, labels...)
		}
	}
	scope := func() string {
		return lossScope(facts.TextAt(vocabulary.SlotLossScope), facts.TextAt(vocabulary.SlotPhase))
	}
	if f := facts.At(vocabulary.SlotLoss); f != nil {
		add(f, "loss", series.Loss, scope())
	}
	for i := range signals {
		if f := facts.At(signals[i].slot); f != nil {
			add(f, signals[i].name, signals[i].series, signals[i].label)
		}
	}
	for f := range facts.All() {
		if f.Slot() != 0 {
			continue
		}
		// The losses of tasks, and other validation metrics.
		if task, ok := strings.CutPrefix(f.Key, mlattr.LossTaskPrefix); ok {
			add(f, "loss", series.Loss, scope(), task)
		} else if metric, ok := strings.CutPrefix(f.Key, mlattr.ValPrefix); ok {
			add(f, "val_metric", series.ValidationMetric, metric)
		}
	}
}

// addNumber adds a number, if it could be read, and counts by its name one that is not finite.
func (r *result) addNumber(u *unit, at int64, number float64, ok, nonfinite bool, name string, id series.ID, labels ...string) {
	switch {
	case nonfinite:
		up := r.update(u, series.Nonfinite, u.Source, name)
		up.Count, up.At = 1, at
	case ok:
		up := r.update(u, id, u.Source, labels...)
		up.Value, up.At = number, at
	}
}

// addStep adds the event of a training step or an inference, whose attributes have the
// client's short names or canonical ones. Other versions of the client send a span instead.
func (r *result) addStep(u *unit, kind table.EventKind, attrs pcommon.Map, at int64) {
	rate, hasRate, model, size := 0.0, false, "", int64(0)
	for key, value := range attrs.All() {
		number, ok, nonfinite := mlattr.ReadDouble(value)
		switch key {
		case "batch_size", mlattr.BatchSize:
			if n, ok := mlattr.ReadInt(value); ok && n > 0 && n <= mlattr.MaxCount {
				size = n
			}
		case "tokens_per_second", mlattr.TokensPerSecond:
			rate, hasRate = number, ok
		case "model", mlattr.GenAIRequestModel:
			model, _ = mlattr.ReadText(value)
		}
		if kind != table.EventTrainStep {
			continue // what an inference has is none of its run
		}
		switch key {
		case "loss", mlattr.Loss:
			r.addNumber(u, at, number, ok, nonfinite, "loss", series.Loss, mlattr.LossScopeBatch)
		case "learning_rate", mlattr.LearningRate:
			r.addNumber(u, at, number, ok, nonfinite, "learning_rate", series.LearningRate)
		case "epoch", mlattr.Epoch:
			r.addNumber(u, at, number, ok, false, "", series.Epoch)
		}
	}
	u.samples += size
	if kind == table.EventTrainStep {
		u.Steps++
		return
	}
	if hasRate {
		r.addRate(u, rate, mlattr.BasisReported, model)
	}
	r.count(u, series.Requests, u.requestSource, 1, operationInference, u.role, model)
}

// lossScopes are the scopes of losses by the phase of their span, if that is not batch.
var lossScopes = map[string]string{mlattr.PhaseEpoch: mlattr.LossScopeEpoch, mlattr.PhaseValidation: scopeValidation}

// lossScope returns the scope of a loss: its own, else that of its span.
func lossScope(own, phase string) string {
	return cmp.Or(own, lossScopes[phase], mlattr.LossScopeBatch)
}

// samples returns the number of samples that a span processed. Data loading and
// validation count none.
func samples(v *spanfact.Fact) int64 {
	if v.Phase == mlattr.PhaseDataLoad || v.Phase == mlattr.PhaseValidation || v.BatchSize > mlattr.MaxCount {
		return 0
	}
	return max(v.BatchSize, 0)
}

// clampEnd returns a span's end in nanoseconds since 1970, at most now: a clock
// that is ahead must not exclude later values from a gauge.
func clampEnd(end uint64, now int64) int64 {
	return int64(min(end, uint64(now))) // #nosec G115 -- not above now
}

// addSources sets the sources of a span's series, which are those of its resource
// unless the span names a run, a rank or a host. For series without every run, a
// computed run id on the span identifies a single trace and is no label. For the others it is
// one only if a resource has it, too.
func (r *Reader) addSources(u *unit) {
	var is names
	is.run, is.inferred = r.ofSpan.NamedRun()
	is.rank, is.host = spanfact.Rank(r.ofSpan), r.ofSpan.TextAt(vocabulary.SlotHostName)
	if r.hidden {
		is.run, is.identity = mlattr.Other, r.identity
		if is.host != "" {
			is.host = mlattr.Other
		}
	}
	if is == (names{}) {
		u.Source, u.requestSource, u.hostSource = r.source, r.source, r.hostSource
		return
	}
	if is.run == mlattr.Other && !r.hidden {
		is.identity = identityOf(r.spanAttrs)
	}
	if is != r.names {
		r.names = is
		r.named = r.sourcesOf(is)
	}
	u.Source, u.requestSource, u.hostSource = r.named[0], r.named[1], r.named[2]
}

// names are those of the run, the rank and the host that a span states itself.
type names struct {
	run, rank, host string
	inferred        bool
	identity        int64
}

// sourcesOf returns the sources of the spans of the resource that state names.
func (r *Reader) sourcesOf(is names) (all [3]*streams.Source) {
	of, run, identity := r.source.Resource, r.source.Run, cmp.Or(is.identity, r.source.Identity)
	if is.inferred && is.run != run.ID && (r.Live == nil || !r.Live(streams.RunKey{Resource: of, ID: is.run})) {
		is.run = mlattr.Other // some clients have such a run for each request
	}
	run.ID, run.Rank, run.Host = cmp.Or(is.run, run.ID), cmp.Or(is.rank, run.Rank), cmp.Or(is.host, run.Host)
	all[0] = r.sources.of(of, run, identity)
	if is.inferred {
		run.ID = ""
	}
	all[1] = r.sources.of(of, run, identity)
	all[2] = r.sources.of(of, streams.Run{Host: run.Host}, 0)
	return all
}

// identityOf returns the hash of what ml_guard has replaced, or 0.
func identityOf(attrs pcommon.Map) int64 {
	if v, ok := attrs.Get(mlattr.Identity); ok {
		return v.Int()
	}
	return 0
}

// ownTime returns a client's time in nanoseconds since 1970, or now if it is
// too far ahead.
func ownTime(at pcommon.Timestamp, now int64) int64 {
	if uint64(at) > uint64(now+runs.MaxAhead) {
		return now
	}
	return int64(at) // #nosec G115 -- not above now
}

// readActivity reads what a span shows of the time of its run. The span may represent an
// event.
func (r *Reader) readActivity(s *runs.Span, v *spanfact.Fact, event table.EventKind, span ptrace.Span) {
	facts := r.ofSpan
	s.Program = r.program
	if restarts, ok := facts.IntAt(vocabulary.SlotRunAttempt); ok {
		s.Restarts, s.Numbered = restarts, true
	}
	if facts.Systems.Has(table.IdlesBetweenSpans) {
		s.Idles, s.NoStartup = true, true
	}
	s.OnDemand = s.OnDemand || facts.Systems.Has(table.ManyRuns)
	s.OneTrace = facts.Systems.Has(table.OneTrace)
	s.EndsRun = v.Phase == mlattr.PhaseTrain && event != table.EventTrainStep
	s.Time = wallclock.Span{Start: ownTime(span.StartTimestamp(), r.now), End: ownTime(span.EndTimestamp(), r.now)}
	s.Time.Phase, s.Timed = wallclock.PhaseOf(v.Phase)
	s.Time.State, s.Time.Whole = s.Time.Phase.State(), facts.WholeStep()
	switch {
	case facts.Queued():
		s.Timed, s.Time.State = true, wallclock.Queueing
	case v.Phase == mlattr.PhaseCheckpoint && slices.Contains(restoring, v.Operation):
		s.Time.State = wallclock.Restoring
	}
	s.Step = spanfact.Step(facts)
}

// restoring are the operations that read a checkpoint.
var restoring = []string{"load_weights", "load_state", "load_checkpoint", "restore_checkpoint", "restore"}

// Spans returns what the spans of the request show of the time of their runs. The caller
// must not keep it.
func (r *result) Spans() []*runs.Span {
	r.shown = r.shown[:0]
	for i := range r.units {
		r.shown = append(r.shown, &r.units[i].Span)
	}
	return r.shown
}

// rememberedSources is how many of the newest sources are compared: a span has
// up to three, and its resource one.
const rememberedSources = 4

// sources returns one Source for adjacent updates of the same program and
// process. It reuses its memory for the next request.
type sources struct {
	all  []*streams.Source
	used int
	// names is memory of hosts.
	names []string
	// from has sent the request.
	from share.Sender
}

// of returns the source of a resource and run.
func (s *sources) of(resource streams.Resource, run streams.Run, identity int64) *streams.Source {
	// A span usually has the source of its resource or of the previous span.
	for i := s.used - 1; i >= max(0, s.used-rememberedSources); i-- {
		if known := s.all[i]; known.Run == run && known.Resource == resource && known.Identity == identity {
			return known
		}
	}
	if s.used == len(s.all) {
		s.all = append(s.all, new(streams.Source))
	}
	source := s.all[s.used]
	s.used++
	*source = streams.Source{Resource: resource, Run: run, Identity: identity, Origin: share.OriginOf(s.from, resource.Service)}
	return source
}

// hosts returns the hosts of all sources, of adjacent ones with the same host one. The
// result is valid until the next call.
func (s *sources) hosts() []string {
	s.names = s.names[:0]
	for i, source := range s.all[:s.used] {
		if i == 0 || source.Run.Host != s.all[i-1].Run.Host {
			s.names = append(s.names, source.Run.Host)
		}
	}
	return s.names
}

// reset clears all sources.
func (s *sources) reset() {
	for _, source := range s.all[:s.used] {
		*source = streams.Source{}
	}
	clear(s.names)
	s.used = 0
}
