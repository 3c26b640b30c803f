package mlmetricsconnector

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxRate is the largest accepted token rate, in tokens per second.
	maxRate = 1e12
	// scopeValidation is the ml.loss.scope of a validation loss.
	scopeValidation = "validation"
)

var (
	slotRank = mlattr.SlotOf(mlattr.RankGlobal)
	slotHost = mlattr.SlotOf(mlattr.HostName)
)

// values is the content of one span or event, in canonical terms.
type values struct {
	phase, operation, genAIOperation string
	role, side                       string
	model                            string // that was asked for, else that answered
	requested, answered              string
	library, function                string
	basis                            string

	input, output       int64
	hasInput, hasOutput bool
	// notCounted reports whether another span reports the same usage, noRequest
	// whether the span is no request of its own, asked whether it is one that states
	// no operation, and errorElsewhere whether another span counts its failure.
	notCounted, noRequest, asked, errorElsewhere bool
	rate                                         float64
	hasRate                                      bool
	batchSize                                    int64

	// critical is for how many seconds the span decided when its trace ended.
	critical float64

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

// field is a canonical attribute with a field in values.
type field uint8

const (
	notRead field = iota
	fieldPhase
	fieldOperation
	fieldGenAIOperation
	fieldRole
	fieldSide
	fieldRequestedModel
	fieldModel
	fieldLibrary
	fieldFunction
	fieldBasis
	fieldLossScope
	fieldCounted
	fieldRequestCounted
	fieldErrorCounted
	fieldInput
	fieldWholeInput
	fieldOutput
	fieldRate
	fieldBatchSize
	fieldEpoch
	fieldLoss
	fieldValLoss
	fieldLearningRate
	fieldValMetric
	fieldCritical
)

// unread are the canonical attributes that no rule needs. They are skipped if
// ml_enrich has read the spans.
var unread = mlattr.SlotsOf(
	mlattr.SessionID, mlattr.SamplingSessionID, mlattr.GenAIConversationID, mlattr.GenAIResponseID,
	mlattr.JobName, mlattr.Cluster, mlattr.RankLocal, mlattr.WorldSize, mlattr.CorrelationConflict,
	mlattr.BatchIndex, mlattr.EpochTotal, mlattr.MicrobatchCount, mlattr.SamplesPerSecond, mlattr.SamplesBasis,
	mlattr.DecodePerSecond, mlattr.PrefillPerSecond, mlattr.SequencePerSecond, mlattr.ThroughputScope,
	mlattr.TokensEstimated, mlattr.GenAIStream, mlattr.GenAIChoices, mlattr.GPUIndex, mlattr.GPUJoin, mlattr.GPUShared, mlattr.Critical, mlattr.UsageEvidence,
)

// fields has the field of each slot: a switch over small numbers is cheaper
// than one over names.
var fields = func() (bySlot [256]field) {
	for name, f := range map[string]field{
		mlattr.Phase:              fieldPhase,
		mlattr.Operation:          fieldOperation,
		mlattr.GenAIOperationName: fieldGenAIOperation,
		mlattr.Role:               fieldRole,
		mlattr.Side:               fieldSide,
		mlattr.GenAIRequestModel:  fieldRequestedModel,
		mlattr.GenAIResponseModel: fieldModel,
		mlattr.Library:            fieldLibrary,
		mlattr.Function:           fieldFunction,
		mlattr.ThroughputBasis:    fieldBasis,
		mlattr.LossScope:          fieldLossScope,
		mlattr.UsageCounted:       fieldCounted,
		mlattr.RequestCounted:     fieldRequestCounted,
		mlattr.ErrorCounted:       fieldErrorCounted,
		mlattr.GenAIInputTokens:   fieldInput,
		mlattr.UsageInputTokens:   fieldWholeInput,
		mlattr.GenAIOutputTokens:  fieldOutput,
		mlattr.TokensPerSecond:    fieldRate,
		mlattr.BatchSize:          fieldBatchSize,
		mlattr.Epoch:              fieldEpoch,
		mlattr.Loss:               fieldLoss,
		mlattr.ValLoss:            fieldValLoss,
		mlattr.LearningRate:       fieldLearningRate,
		mlattr.ValMetric:          fieldValMetric,
		mlattr.CriticalTime:       fieldCritical,
	} {
		bySlot[mlattr.SlotOf(name)] = f
	}
	return bySlot
}()

// read reads the facts of a span. It reuses memory.
func (v *values) read(facts *mlattr.Facts) {
	*v = values{gauges: v.gauges[:0], nonfinite: v.nonfinite[:0]}
	whole := false
	for f := range facts.All() {
		if f.Slot() == 0 {
			v.readDynamic(f)
			continue
		}
		switch fields[f.Slot()] {
		case fieldPhase:
			// An inherited phase has no text: a database call during sampling
			// is no sample.
			v.phase = f.Text
		case fieldOperation:
			v.operation = f.Text
		case fieldGenAIOperation:
			v.genAIOperation = f.Text
		case fieldRole:
			v.role = f.Text
		case fieldSide:
			v.side = f.Text
		case fieldRequestedModel:
			v.requested = f.Text
		case fieldModel:
			v.answered = f.Text
		case fieldLibrary:
			v.library = f.Text
		case fieldFunction:
			v.function = f.Text
		case fieldBasis:
			v.basis = f.Text
		case fieldLossScope:
			v.lossScope = f.Text
		case fieldCounted:
			v.notCounted = usable(f) && !f.Bool
		case fieldRequestCounted:
			v.noRequest, v.asked = usable(f) && !f.Bool, usable(f) && f.Bool
		case fieldErrorCounted:
			v.errorElsewhere = usable(f) && !f.Bool
		case fieldInput:
			if !whole {
				v.input, v.hasInput = f.Int, usable(f)
			}
		case fieldWholeInput:
			if usable(f) {
				// The producer's own number excludes caches.
				v.input, v.hasInput, whole = f.Int, true, true
			}
		case fieldOutput:
			v.output, v.hasOutput = f.Int, usable(f)
		case fieldRate:
			v.rate, v.hasRate = f.Double, usable(f)
		case fieldBatchSize:
			if usable(f) {
				v.batchSize = f.Int
			}
		case fieldEpoch:
			if usable(f) {
				v.show(series.Epoch, float64(f.Int), "")
			}
		case fieldLoss:
			v.signal(f, "loss", series.Loss)
		case fieldValLoss:
			v.signal(f, "val_loss", series.Loss, scopeValidation)
		case fieldLearningRate:
			v.signal(f, "learning_rate", series.LearningRate)
		case fieldValMetric:
			v.signal(f, "val_metric", series.ValidationMetric, mlattr.ValMetric[len(mlattr.ValPrefix):])
		case fieldCritical:
			if usable(f) {
				v.critical = f.Double
			}
		}
	}
	// A failed request has no model that answered, and counts beside the others.
	v.model = cmp.Or(v.requested, v.answered)
	v.settleScope()
	if v.basis == "" {
		// The rate was not derived, so the producer reported it.
		v.basis = mlattr.BasisReported
	}
}

// reset clears all fields and keeps the memory.
func (v *values) reset() {
	clear(v.gauges[:cap(v.gauges)])
	*v = values{gauges: v.gauges[:0], nonfinite: v.nonfinite[:0]}
}

// readDynamic reads the losses of tasks and other validation metrics.
func (v *values) readDynamic(f *mlattr.Fact) {
	if task, ok := strings.CutPrefix(f.Key, mlattr.LossTaskPrefix); ok {
		v.signal(f, "loss", series.Loss, "", task)
	} else if metric, ok := strings.CutPrefix(f.Key, mlattr.ValPrefix); ok {
		v.signal(f, "val_metric", series.ValidationMetric, metric)
	}
}

// signal adds a value that may not be finite.
func (v *values) signal(f *mlattr.Fact, name string, id series.ID, labels ...string) {
	switch {
	case f.NonFinite:
		v.nonfinite = append(v.nonfinite, name)
	case usable(f):
		g := gauge{series: id, value: f.Double}
		copy(g.labels[:], labels)
		v.gauges = append(v.gauges, g)
	}
}

// settleScope sets the scope of losses, which may come from a later attribute.
func (v *values) settleScope() {
	for i := range v.gauges {
		if g := &v.gauges[i]; g.series == series.Loss && g.labels[0] == "" {
			g.labels[0] = lossScope(v.lossScope, v.phase)
		}
	}
}

func (v *values) show(id series.ID, value float64, label string) {
	v.gauges = append(v.gauges, gauge{series: id, labels: [2]string{label}, value: value})
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
			v.event(series.Loss, "loss", number, ok, nonfinite)
		case "learning_rate", mlattr.LearningRate:
			v.event(series.LearningRate, "learning_rate", number, ok, nonfinite)
		case "epoch", mlattr.Epoch:
			if ok {
				v.show(series.Epoch, number, "")
			}
		case "batch_size", mlattr.BatchSize:
			if n, ok := mlattr.ReadInt(value); ok && n > 0 && n <= mlattr.MaxCount {
				v.batchSize = n
			}
		case "tokens_per_second", mlattr.TokensPerSecond:
			v.rate, v.hasRate = number, ok
		case "model", mlattr.GenAIRequestModel:
			v.model, _ = mlattr.ReadText(value)
		}
	}
	v.settleScope()
	return v
}

func (v *values) event(id series.ID, signal string, number float64, ok, nonfinite bool) {
	switch {
	case nonfinite:
		v.nonfinite = append(v.nonfinite, signal)
	case ok:
		v.show(id, number, "")
	}
}

func usable(f *mlattr.Fact) bool { return !f.NonFinite && !f.Unreadable }

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

// ofModel reports whether a span is a machine-learning operation, whose failure
// counts, unlike, for example, that of an HTTP server's span.
func (v *values) ofModel() bool {
	return v.phase != "" || v.operation != "" || v.genAIOperation != "" ||
		v.role != "" || v.library != "" || v.function != "" || v.asked
}

// operationOf returns the ml.operation of requests, tokens and failures, else
// the GenAI operation, else the phase.
func operationOf(operation, genAIOperation, phase string) string {
	switch {
	case operation != "":
		return operation
	case genAIOperation != "":
		return genAIOperation
	default:
		return phase
	}
}

// isRequestSpan reports whether a span without token usage is a request to a
// model. It may represent an event.
func isRequestSpan(v *values, event mlattr.EventKind) bool {
	if v.notCounted || v.noRequest {
		return false
	}
	if v.phase == mlattr.PhaseSample || event == mlattr.EventInference {
		return true
	}
	return v.asked || mlattr.AsksModel(v.genAIOperation)
}

// work returns the kind of countable training work of a phase.
func work(phase string) is {
	switch phase {
	case mlattr.PhaseOptimizer:
		return isOptimizer
	case mlattr.PhaseBatch:
		return isBatch
	default:
		return 0
	}
}

// samples returns the number of samples that a span processed. Data loading and
// validation count none.
func samples(v *values) int64 {
	if v.phase == mlattr.PhaseDataLoad || v.phase == mlattr.PhaseValidation || v.batchSize > mlattr.MaxCount {
		return 0
	}
	return max(v.batchSize, 0)
}

// clampEnd returns a span's end in nanoseconds since 1970, at most now: a clock
// that is ahead must not exclude later values from a gauge.
func clampEnd(end uint64, now int64) int64 {
	if end > math.MaxInt64 {
		return now
	}
	return min(int64(end), now)
}

// resourceRun returns the run labels of a resource.
func resourceRun(facts *mlattr.Facts) streams.Run {
	id, _ := facts.Run()
	return streams.Run{ID: id, Job: facts.Text(mlattr.JobID), Host: facts.Text(mlattr.HostName), Rank: rank(facts)}
}

// addSources sets the sources of a span's series, which are those of its resource
// unless the span names a run, a rank or a host. For series without every run, a
// computed run id on the span identifies a single trace and is no label.
func (r *reader) addSources(u *unit) {
	id, inferred := r.ofSpan.NamedRun()
	number, host := rank(&r.ofSpan), r.ofSpan.TextAt(slotHost)
	if id == "" && number == "" && host == "" {
		u.source, u.requestSource, u.hostSource = r.source, r.source, r.hostSource
		return
	}
	run := r.source.Run
	run.ID, run.Rank, run.Host = cmp.Or(id, run.ID), cmp.Or(number, run.Rank), cmp.Or(host, run.Host)
	u.source = r.sources.of(r.source.Resource, run)
	if inferred {
		run.ID = ""
	}
	u.requestSource = r.sources.of(r.source.Resource, run)
	u.hostSource = r.sources.of(r.source.Resource, streams.Run{Host: run.Host})
}

// worldSize returns the number of ranks as text, or "".
func worldSize(facts *mlattr.Facts) string {
	if n, ok := facts.Int(mlattr.WorldSize); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

// rank returns the global rank as text.
func rank(facts *mlattr.Facts) string {
	if r, ok := facts.IntAt(slotRank); ok {
		return strconv.FormatInt(r, 10)
	}
	return ""
}
