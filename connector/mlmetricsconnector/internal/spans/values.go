package spans

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
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

// values is the content of one span or event, in canonical terms.
type values struct {
	spanfact.Fact

	lossScope string
	gauges    []gauge
	nonfinite []string
}

// gauge is a value of a gauge.
type gauge struct {
	series series.ID
	labels [2]string
	value  float64
}

// unread are the canonical attributes that no rule needs. They are skipped if
// ml_enrich has read the spans.
var unread = vocabulary.SlotsOf(
	mlattr.SessionID, mlattr.SamplingSessionID, mlattr.GenAIConversationID, mlattr.GenAIResponseID,
	mlattr.JobName, mlattr.Cluster, mlattr.RankLocal, mlattr.WorldSize, mlattr.CorrelationConflict,
	mlattr.BatchIndex, mlattr.EpochTotal, mlattr.MicrobatchCount, mlattr.SamplesPerSecond, mlattr.SamplesBasis,
	mlattr.DecodePerSecond, mlattr.PrefillPerSecond, mlattr.SequencePerSecond, mlattr.ThroughputScope,
	mlattr.TokensEstimated, mlattr.GenAIStream, mlattr.GenAIChoices, mlattr.GPUIndex, mlattr.GPUJoin, mlattr.GPUShared, mlattr.UsageEvidence,
)

// signals are the attributes with a value that may not be finite.
var signals = [...]struct {
	slot   vocabulary.Slot
	name   string
	series series.ID
	label  string
}{
	{vocabulary.SlotLoss, "loss", series.Loss, ""},
	{vocabulary.SlotValLoss, "val_loss", series.Loss, scopeValidation},
	{vocabulary.SlotLearningRate, "learning_rate", series.LearningRate, ""},
	{vocabulary.SlotValMetric, "val_metric", series.ValidationMetric, mlattr.ValMetric[len(mlattr.ValPrefix):]},
}

// read reads the facts of a span. It reuses memory.
func (v *values) read(facts *vocabulary.Facts) {
	v.Read(facts)
	v.gauges, v.nonfinite = v.gauges[:0], v.nonfinite[:0]
	v.lossScope = facts.TextAt(vocabulary.SlotLossScope)
	epoch, ok := facts.IntAt(vocabulary.SlotEpoch)
	v.signal(float64(epoch), ok, false, "", series.Epoch)
	for i := range signals {
		if f := facts.At(signals[i].slot); f != nil {
			v.signal(f.Double, !f.Unreadable, f.NonFinite, signals[i].name, signals[i].series, signals[i].label)
		}
	}
	for f := range facts.All() {
		if f.Slot() != 0 {
			continue
		}
		// The losses of tasks, and other validation metrics.
		if task, ok := strings.CutPrefix(f.Key, mlattr.LossTaskPrefix); ok {
			v.signal(f.Double, !f.Unreadable, f.NonFinite, "loss", series.Loss, "", task)
		} else if metric, ok := strings.CutPrefix(f.Key, mlattr.ValPrefix); ok {
			v.signal(f.Double, !f.Unreadable, f.NonFinite, "val_metric", series.ValidationMetric, metric)
		}
	}
	v.settleScope()
}

// reset clears all fields and keeps the memory.
func (v *values) reset() {
	clear(v.gauges[:cap(v.gauges)])
	*v = values{gauges: v.gauges[:0], nonfinite: v.nonfinite[:0]}
}

// signal adds a value that may not be finite, or not readable.
func (v *values) signal(number float64, ok, nonfinite bool, name string, id series.ID, labels ...string) {
	switch {
	case nonfinite:
		v.nonfinite = append(v.nonfinite, name)
	case ok:
		g := gauge{series: id, value: number}
		copy(g.labels[:], labels)
		v.gauges = append(v.gauges, g)
	}
}

// settleScope sets the scope of losses, which may come from a later attribute.
func (v *values) settleScope() {
	for i := range v.gauges {
		if g := &v.gauges[i]; g.series == series.Loss && g.labels[0] == "" {
			g.labels[0] = lossScope(v.lossScope, v.Phase)
		}
	}
}

// readEvent reads the event of a training step or an inference, whose
// attributes have the client's short names or canonical ones. Other versions of
// the client send a span instead.
func readEvent(attrs pcommon.Map) values {
	v := values{lossScope: mlattr.LossScopeBatch}
	for key, value := range attrs.All() {
		number, ok, nonfinite := mlattr.ReadDouble(value)
		switch key {
		case "loss", mlattr.Loss:
			v.signal(number, ok, nonfinite, "loss", series.Loss)
		case "learning_rate", mlattr.LearningRate:
			v.signal(number, ok, nonfinite, "learning_rate", series.LearningRate)
		case "epoch", mlattr.Epoch:
			v.signal(number, ok, false, "", series.Epoch)
		case "batch_size", mlattr.BatchSize:
			if n, ok := mlattr.ReadInt(value); ok && n > 0 && n <= mlattr.MaxCount {
				v.BatchSize = n
			}
		case "tokens_per_second", mlattr.TokensPerSecond:
			v.Rate, v.HasRate = number, ok
		case "model", mlattr.GenAIRequestModel:
			v.Requested, _ = mlattr.ReadText(value)
		}
	}
	v.settleScope()
	return v
}

// lossScope returns the scope of a loss without its own: that of its epoch or
// validation span, else batch.
func lossScope(own, phase string) string {
	switch {
	case own != "":
		return own
	case phase == mlattr.PhaseEpoch:
		return mlattr.LossScopeEpoch
	case phase == mlattr.PhaseValidation:
		return scopeValidation
	default:
		return mlattr.LossScopeBatch
	}
}

// samples returns the number of samples that a span processed. Data loading and
// validation count none.
func samples(v *values) int64 {
	if v.Phase == mlattr.PhaseDataLoad || v.Phase == mlattr.PhaseValidation || v.BatchSize > mlattr.MaxCount {
		return 0
	}
	return max(v.BatchSize, 0)
}

// clampEnd returns a span's end in nanoseconds since 1970, at most now: a clock
// that is ahead must not exclude later values from a gauge.
func clampEnd(end uint64, now int64) int64 {
	if end > math.MaxInt64 {
		return now
	}
	return min(int64(end), now)
}

// addSources sets the sources of a span's series, which are those of its resource
// unless the span names a run, a rank or a host. For series without every run, a
// computed run id on the span identifies a single trace and is no label. For the others it is
// one only if a resource has it, too.
func (r *Reader) addSources(u *unit) {
	id, inferred := r.ofSpan.NamedRun()
	number, host := spanfact.Rank(&r.ofSpan), r.ofSpan.TextAt(vocabulary.SlotHostName)
	if id == "" && number == "" && host == "" {
		u.Source, u.requestSource, u.hostSource = r.source, r.source, r.hostSource
		return
	}
	run, identity := r.source.Run, r.source.Identity
	if id == mlattr.Other {
		identity = cmp.Or(identityOf(r.spanAttrs), identity)
	}
	if inferred && id != run.ID && (r.Live == nil || !r.Live(streams.RunKey{Resource: r.source.Resource, ID: id})) {
		id = mlattr.Other // some clients have such a run for each request
	}
	run.ID, run.Rank, run.Host = cmp.Or(id, run.ID), cmp.Or(number, run.Rank), cmp.Or(host, run.Host)
	u.Source = r.sources.of(r.source.Resource, run, identity)
	if inferred {
		run.ID = ""
	}
	u.requestSource = r.sources.of(r.source.Resource, run, identity)
	u.hostSource = r.sources.of(r.source.Resource, streams.Run{Host: run.Host}, 0)
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
func (r *Reader) readActivity(s *runs.Span, v *values, event table.EventKind, span ptrace.Span) {
	facts := &r.ofSpan
	s.Program = r.program
	if restarts, ok := program.RestartsOf(facts); ok {
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
