package mlmetricsconnector

import (
	"math"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxCount is the largest number of tokens or samples of one span that is
	// believed. It is far above any real one and keeps sums from overflowing.
	maxCount = 1 << 53
	// maxRate is the largest token rate that is believed, in tokens a second.
	maxRate = 1e12
	// otherError is the error.type of a failure that names none, as the
	// semantic conventions have it.
	otherError = "_OTHER"
	// scopeValidation is the ml.loss.scope of a validation loss.
	scopeValidation = "validation"
)

// values is what one span or event says, in canonical terms.
type values struct {
	phase, operation, genAIOperation string
	role, errorType, side            string
	model                            string // that answered, else that was asked for
	library, function                string
	basis                            string

	input, output       int64
	hasInput, hasOutput bool
	// notCounted is true where a descendant reports the same usage.
	notCounted bool
	epochEnd   bool
	rate       float64
	hasRate    bool
	batchSize  int64

	lossScope string
	gauges    []gauge
	nonfinite []string
}

// gauge is one value that a span shows.
type gauge struct {
	series series.ID
	labels [2]string
	value  float64
}

// readValues sorts the facts of a span.
func readValues(facts *mlattr.Facts) values {
	var v values
	requested, whole := "", false
	for f := range facts.All() {
		switch f.Key {
		case mlattr.Phase:
			// One that is inherited has no text: a call to a database during
			// a sampling is no sample of its own.
			v.phase = f.Text
		case mlattr.Operation:
			v.operation = f.Text
		case mlattr.GenAIOperationName:
			v.genAIOperation = f.Text
		case mlattr.Role:
			v.role = f.Text
		case mlattr.Side:
			v.side = f.Text
		case mlattr.GenAIRequestModel:
			requested = f.Text
		case mlattr.GenAIResponseModel:
			v.model = f.Text
		case mlattr.ErrorType:
			v.errorType = f.Text
		case mlattr.Library:
			v.library = f.Text
		case mlattr.Function:
			v.function = f.Text
		case mlattr.ThroughputBasis:
			v.basis = f.Text
		case mlattr.LossScope:
			v.lossScope = f.Text
		case mlattr.UsageCounted:
			v.notCounted = usable(f) && !f.Bool
		case mlattr.EpochEnd:
			v.epochEnd = usable(f) && f.Bool
		case mlattr.GenAIInputTokens:
			if !whole {
				v.input, v.hasInput = f.Int, usable(f)
			}
		case mlattr.UsageInputTokens:
			if usable(f) {
				// The producer's own number leaves out what caches gave and took.
				v.input, v.hasInput, whole = f.Int, true, true
			}
		case mlattr.GenAIOutputTokens:
			v.output, v.hasOutput = f.Int, usable(f)
		case mlattr.TokensPerSecond:
			v.rate, v.hasRate = f.Double, usable(f)
		case mlattr.BatchSize:
			if usable(f) {
				v.batchSize = f.Int
			}
		case mlattr.Epoch:
			if usable(f) {
				v.show(series.Epoch, float64(f.Int), "")
			}
		default:
			v.readSignal(f)
		}
	}
	if v.model == "" {
		// No answer, or a client that does not say which model gave it.
		v.model = requested
	}
	v.settleScope()
	if v.basis == "" {
		// Nobody derived the rate, so it is the producer's own.
		v.basis = mlattr.BasisReported
	}
	return v
}

// readSignal reads losses, validation metrics and the learning rate.
func (v *values) readSignal(f *mlattr.Fact) {
	g := gauge{value: f.Double}
	signal := ""
	switch {
	case f.Key == mlattr.Loss:
		g.series, signal = series.Loss, "loss"
	case f.Key == mlattr.ValLoss:
		g.series, g.labels[0], signal = series.Loss, scopeValidation, "val_loss"
	case f.Key == mlattr.LearningRate:
		g.series, signal = series.LearningRate, "learning_rate"
	case strings.HasPrefix(f.Key, mlattr.LossTaskPrefix):
		g.series, g.labels[1], signal = series.Loss, f.Key[len(mlattr.LossTaskPrefix):], "loss"
	case strings.HasPrefix(f.Key, mlattr.ValPrefix):
		g.series, g.labels[0], signal = series.ValidationMetric, f.Key[len(mlattr.ValPrefix):], "val_metric"
	default:
		return
	}
	if f.NonFinite {
		v.nonfinite = append(v.nonfinite, signal)
	} else if usable(f) {
		v.gauges = append(v.gauges, g)
	}
}

// settleScope gives losses their scope, which may come from an attribute that
// follows them.
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
// attributes have the client's short names or canonical ones. Such an event
// is a span of its own in other versions of the client.
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
			if n, ok := mlattr.ReadInt(value); ok && n > 0 && n <= maxCount {
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

// lossScope says what a loss without a scope of its own was taken over: a
// span of an epoch or a validation has theirs, any other that of a batch.
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

// ofModel says whether a span is an operation of machine learning, so that
// its failure counts here and not that of, say, an HTTP server's span.
func (v *values) ofModel() bool {
	return v.phase != "" || v.operation != "" || v.genAIOperation != "" ||
		v.role != "" || v.library != "" || v.function != ""
}

// operationOf is the ml.operation of requests, tokens and failures: where a
// client names no operation, its GenAI operation or phase says what it was.
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

// errorClass is the class of an error where a client names another one around
// it: Ray wraps what an actor raised as ray.exceptions.RayTaskError(IndexError),
// so the same failure would be two, by where the model runs.
func errorClass(errorType string) string {
	inner, wrapped := strings.CutPrefix(errorType, "ray.exceptions.RayTaskError(")
	if !wrapped {
		return errorType
	}
	inner, closed := strings.CutSuffix(inner, ")")
	if !closed || inner == "" {
		return errorType
	}
	return inner
}

// isRequestSpan says whether a span without token usage is a request to a
// model all the same.
func isRequestSpan(v *values, name string) bool {
	if v.notCounted {
		return false
	}
	if v.phase == mlattr.PhaseSample || name == nameInference {
		return true
	}
	return mlattr.AsksModel(v.genAIOperation)
}

// work says which countable piece of training a phase is.
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

// samples is the number of samples that a span put through a model. Loading
// data puts none through, and validation is no training.
func samples(v *values) int64 {
	if v.phase == mlattr.PhaseDataLoad || v.phase == mlattr.PhaseValidation || v.batchSize > maxCount {
		return 0
	}
	return max(v.batchSize, 0)
}

// endOfLoader says whether an exception is how a data loader says that the
// epoch is over.
func endOfLoader(phase, exception string) bool {
	return phase == mlattr.PhaseDataLoad && exception == "StopIteration"
}

// clampEnd returns a span's end in nanoseconds since 1970, at most now: a
// clock that is ahead must not keep later values out of a gauge.
func clampEnd(end uint64, now int64) int64 {
	if end > math.MaxInt64 {
		return now
	}
	return min(int64(end), now)
}

// runOf returns the run labels of a span, for series of every run and for the
// others: there, a run id that was computed and stands on the span, not on
// the resource, is one of a single trace, and no label.
func runOf(ofResource streams.Run, span *mlattr.Facts) (every, request streams.Run) {
	every, request = ofResource, ofResource
	if id := span.Text(mlattr.RunID); id != "" {
		every.ID, request.ID = id, id
		if inferred := span.Find(mlattr.RunInferred); inferred != nil && inferred.Bool {
			request.ID = ""
		}
	} else if id := span.Text(mlattr.TrainingRunID); id != "" {
		every.ID, request.ID = id, id
	}
	if r := rank(span); r != "" {
		every.Rank, request.Rank = r, r
	}
	if host := span.Text(mlattr.HostName); host != "" {
		every.Host, request.Host = host, host
	}
	return every, request
}

// rank returns the global rank as text.
func rank(facts *mlattr.Facts) string {
	if r, ok := facts.Int(mlattr.RankGlobal); ok {
		return strconv.FormatInt(r, 10)
	}
	return ""
}
