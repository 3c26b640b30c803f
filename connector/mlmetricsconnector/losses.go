package mlmetricsconnector

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/loss"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxCurves limits the runs whose loss is watched.
	maxCurves = 8192
	// leadGone is the time after which another rank's loss is that of the run.
	leadGone = 5 * time.Minute
)

// losses watches the loss of each run. It is safe for concurrent use.
type losses struct {
	mu  sync.Mutex
	all map[streams.RunKey]*runLoss
}

// runLoss is the loss of one run.
type runLoss struct {
	curve loss.Curve
	// lead is the rank whose losses are those of the run, seen the arrival of the
	// latest one.
	lead string
	seen time.Time
	// attempts is the number of attempts at the previous emission.
	attempts int64
}

func newLosses() *losses { return &losses{all: make(map[streams.RunKey]*runLoss)} }

// observe adds the losses among updates that arrived at now.
func (l *losses) observe(updates []streams.Update, now time.Time) {
	var source *streams.Source
	var of *runLoss
	for i := range updates {
		u := &updates[i]
		if u.Series != series.Loss && u.Series != series.Nonfinite && u.Series != series.LearningRate {
			continue
		}
		if source == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
		}
		if u.Source != source {
			source, of = u.Source, l.of(u.Source, now)
		}
		if of != nil {
			of.add(u, now)
		}
	}
}

// of returns the loss of the run of a source, or nil if it is that of another rank
// or beyond the limit.
func (l *losses) of(source *streams.Source, now time.Time) *runLoss {
	if source.Run.ID == "" || source.Run.ID == mlattr.Other {
		return nil
	}
	key := streams.RunKey{Resource: source.Resource, ID: source.Run.ID}
	known := l.all[key]
	if known == nil {
		if len(l.all) >= maxCurves {
			return nil
		}
		run := source.Run.Clone()
		known = &runLoss{lead: run.Rank, seen: now}
		l.all[streams.RunKey{Resource: source.Resource.Clone(), ID: run.ID}] = known
	}
	if known.lead != source.Run.Rank {
		if now.Sub(known.seen) <= leadGone {
			return nil
		}
		known.lead = source.Run.Clone().Rank
	}
	return known
}

// add adds a loss, a loss that is not finite, or a learning rate. Those of tasks
// and of validations count only if they are not finite.
func (l *runLoss) add(u *streams.Update, now time.Time) {
	l.seen = now
	switch {
	case u.Series == series.LearningRate:
		l.curve.Rate(u.Value)
	case u.Series == series.Nonfinite:
		if u.Labels[0] == "loss" || u.Labels[0] == "val_loss" {
			l.curve.Add(u.At, math.NaN(), now)
		}
	case u.Labels[1] != "":
	case u.Labels[0] == mlattr.LossScopeBatch:
		l.curve.Add(u.At, u.Value, now)
	default:
		l.curve.Finite(u.At)
	}
}

// conclude reports what the losses of runs show, and removes runs without any for
// longer than expiration; 0 removes none. run returns what is concluded about a
// run, or nil.
func (l *losses) conclude(board *problem.Board, run func(streams.RunKey) *runVerdict, uses func(streams.RunKey) float64, expiration time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, of := range l.all {
		if expiration > 0 && now.Sub(of.seen) > expiration {
			delete(l.all, key)
			continue
		}
		p := problem.Problem{
			Subject: problem.Subject{Resource: key.Resource, Run: key.ID}, Evident: of.seen,
			Telemetry: math.NaN(), GPUs: uses(key), Rank: of.lead,
		}
		if verdict := run(key); verdict != nil {
			p.Telemetry = verdict.telemetry
			if attempts := verdict.attempts(); attempts != of.attempts {
				if of.attempts > 0 {
					of.curve.Restart()
				}
				of.attempts = attempts
			}
			if verdict.state != rankRunning {
				continue
			}
		}
		of.report(board, p)
	}
}

// report reports what the loss shows. p has what all its problems have in common.
func (l *runLoss) report(board *problem.Board, p problem.Problem) {
	if since, n, of, ok := l.curve.Nonfinite(); ok {
		bad := p
		bad.Kind, bad.Onset, bad.Value, bad.Usual, bad.Unit = mlattr.ProblemNonfinite, since, float64(n), math.NaN(), "{loss}"
		bad.Count = int64(of)
		bad.Evidence = []string{fmt.Sprintf("%d of the newest %d losses are NaN or infinite", n, of)}
		bad.Next = "Stop the run, and go back to the last checkpoint before; look at the learning rate, the gradient norm and the batch."
		board.Report(bad)
	}
	if spike := l.curve.TakeSpike(); spike != nil {
		high := p
		high.Kind, high.Onset, high.Value, high.Usual, high.Unit = mlattr.ProblemLossSpike, spike.Onset, spike.Loss, spike.Usual, "1"
		high.Count = spike.Count
		high.Evidence = []string{fmt.Sprintf("loss %.4g, %.4g before: %.0f times their spread above the median of %d", spike.Loss, spike.Usual, spike.Spreads, spike.Count)}
		high.Next = "Look at the batches and the gradient norm from this step on."
		board.Report(high)
	}
	if d, ok := l.curve.Diverged(); ok {
		diverged := p
		diverged.Kind, diverged.Onset, diverged.Value, diverged.Usual, diverged.Unit = mlattr.ProblemLossDiverged, d.Onset, d.Loss, d.Best, "1"
		diverged.Count = d.Count
		diverged.Evidence = []string{fmt.Sprintf("median loss %.4g, at best %.4g", d.Loss, d.Best)}
		diverged.Next = "Compare the learning rate and the data with those of the best step, and consider going back to its checkpoint."
		board.Report(diverged)
	}
}
