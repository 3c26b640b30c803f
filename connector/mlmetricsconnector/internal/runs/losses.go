package runs

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/loss"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// maxCurves limits the runs whose loss is watched.
	maxCurves = 8192
	// leadGone is the time after which another rank's loss is that of the run.
	leadGone = 5 * time.Minute
)

// Losses watches the loss of each run, and the norm of its gradient. The zero value is ready for use. It is safe for
// concurrent use.
type Losses struct {
	mu  sync.Mutex
	all map[streams.RunKey]*runLoss
}

// runLoss is the loss of one run, and the norm of its gradient.
type runLoss struct {
	curve, norm loss.Curve
	// lead is the rank whose losses and norms are those of the run, seen the arrival of the
	// latest one.
	lead string
	seen time.Time
	// broken is the rank of the newest loss that is not finite.
	broken string
	// attempts is the number of attempts at the previous emission.
	attempts int64
}

// Loss is what the losses of a run show at an emission.
type Loss struct {
	Key streams.RunKey
	// Run is what is known of the run, nil if its spans show none.
	Run *Run
	// Rank is the one whose losses are those of the run, Seen the arrival of the latest
	// one, and Broken the rank of the newest one that is not finite.
	Rank, Broken string
	Seen         time.Time
	// Nonfinite are the newest ones that are NaN or infinite, Spike is a new one, and
	// Diverged and Frozen last; nil means none. NormNonfinite and NormSpike are those of
	// the norm of the gradient.
	Nonfinite, Spike, Diverged, Frozen, NormNonfinite, NormSpike *loss.Found
}

// Observe adds the losses among updates that arrived at now.
func (l *Losses) Observe(updates []streams.Update, now time.Time) {
	var source *streams.Source
	var of *runLoss
	leads := false
	for i := range updates {
		u := &updates[i]
		if u.Series != series.Loss && u.Series != series.Nonfinite && u.Series != series.LearningRate && u.Series != series.GradientNorm {
			continue
		}
		if source == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
		}
		if u.Source != source {
			source = u.Source
			of, leads = l.of(u.Source, now)
		}
		switch {
		case of == nil:
		case leads:
			of.add(u, now)
		case u.Series == series.Nonfinite && u.Labels[0] == "loss":
			of.curve.AddNonfinite(u.At, now)
			of.broken = strings.Clone(u.Source.Run.Rank)
		}
	}
}

// of returns the loss of the run of a source, or nil beyond the limit, and whether the
// source's losses are those of the run.
func (l *Losses) of(source *streams.Source, now time.Time) (of *runLoss, leads bool) {
	if source.Run.ID == "" || source.Run.ID == mlattr.Other {
		return nil, false
	}
	key := streams.RunKey{Resource: source.Resource, ID: source.Run.ID}
	of = shared.Bounded(&l.all, key, maxCurves, streams.RunKey.Clone)
	switch {
	case of == nil:
		return nil, false
	case of.seen.IsZero():
		of.seen, of.norm = now, loss.OfNorms()
	case of.lead != source.Run.Rank && now.Sub(of.seen) <= leadGone:
		return of, false
	}
	if of.lead != source.Run.Rank {
		of.lead = strings.Clone(source.Run.Rank)
	}
	return of, true
}

// add adds a loss, a norm, one that is not finite, or a learning rate. Losses of tasks
// and of validations count only if they are not finite. A step without a gradient has no
// norm.
func (l *runLoss) add(u *streams.Update, now time.Time) {
	l.seen = now
	switch {
	case u.Series == series.LearningRate:
		l.curve.Rate(u.Value)
	case u.Series == series.GradientNorm && u.Value > 0:
		l.norm.Add(u.At, u.Value, now)
	case u.Series == series.Nonfinite && u.Labels[0] == "gradient_norm":
		l.norm.Add(u.At, math.NaN(), now)
	case u.Series == series.Nonfinite:
		if u.Labels[0] == "loss" || u.Labels[0] == "val_loss" {
			l.curve.Add(u.At, math.NaN(), now)
			l.broken = l.lead
		}
	case u.Labels[1] != "":
	case u.Labels[0] == mlattr.LossScopeBatch:
		l.curve.Add(u.At, u.Value, now)
	default:
		l.curve.Finite(u.At)
	}
}

// Settle returns what the losses of runs show that take steps, and removes runs without
// any for longer than expiration; 0 removes none. run returns what is known of a run, or
// nil.
func (l *Losses) Settle(run func(streams.RunKey) *Run, expiration time.Duration, now time.Time) (all []Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, of := range l.all {
		if expiration > 0 && now.Sub(of.seen) > expiration {
			delete(l.all, key)
			continue
		}
		is := Loss{Key: key, Run: run(key), Rank: of.lead, Broken: of.broken, Seen: of.seen}
		if is.Run != nil {
			if attempts := is.Run.Attempts(); attempts != of.attempts {
				if of.attempts > 0 {
					of.curve.Restart()
					of.norm.Restart()
				}
				of.attempts = attempts
			}
			if is.Run.State != Running {
				continue
			}
		}
		is.Nonfinite, is.Spike, is.Diverged, is.Frozen = of.curve.Nonfinite(), of.curve.TakeSpike(), of.curve.Diverged(), of.curve.Frozen()
		is.NormNonfinite, is.NormSpike = of.norm.Nonfinite(), of.norm.TakeSpike()
		all = append(all, is)
	}
	return all
}
