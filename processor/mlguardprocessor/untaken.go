package mlguardprocessor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// endsAfter is how long everything must have been taken until a time without is
// over: a queue that is full takes a request now and then.
const endsAfter = 30 * time.Second

// untaken is what the components after a guard have not taken. The zero value is
// ready. It is safe for concurrent use, and takes a lock only around such times.
type untaken struct {
	// lasts reports whether there is such a time now.
	lasts atomic.Bool

	mu sync.Mutex
	// since and last are the beginning of the present or last such time and when
	// something was last not taken in it, until its end. items were not taken in it,
	// and all ever.
	since, last, until time.Time
	items, all         int64
}

// add adds what was not taken. It returns true if a time without begins.
func (u *untaken) add(now time.Time, items int) (begins bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if begins = !u.lasts.Load(); begins {
		u.since, u.items = now, 0
		u.lasts.Store(true)
	}
	u.last = now
	u.items += int64(items)
	u.all += int64(items)
	return begins
}

// taken returns true if a time without ends because something was taken.
func (u *untaken) taken() (ends bool) {
	if !u.lasts.Load() {
		return false
	}
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.lasts.Load() || now.Sub(u.last) < endsAfter {
		return false
	}
	u.until = now
	u.lasts.Store(false)
	return true
}

// passed takes what the next component returned for items, and returns what the
// sender is told.
func (g *guard) passed(ctx context.Context, items int, err error) error {
	if err == nil {
		if g.untaken.taken() {
			g.logger.Info("What follows takes data again.", zap.String("signal", g.signal))
		}
		return nil
	}
	if g.drops() {
		g.telemetry.ProcessorMlGuardItemsDropped.Add(ctx, int64(items), g.ofSignal)
		if g.untaken.add(time.Now(), items) {
			g.logger.Warn("Data is dropped, because what follows refuses it.", zap.String("signal", g.signal), zap.Error(err))
		}
		return nil
	}
	// A guard that is nearer to the refusal has counted it.
	counted := errors.As(err, new(*retryError))
	temporary, told := g.withRetry(err)
	if temporary && !counted && ctx.Err() == nil {
		now := time.Now()
		g.state.Refused(now)
		g.telemetry.ProcessorMlGuardItemsRefused.Add(ctx, int64(items), g.ofSignal)
		if g.untaken.add(now, items) {
			g.logger.Warn("Data is refused, because what follows refuses it.", zap.String("signal", g.signal), zap.Error(err))
		}
	}
	return told
}

// drops reports whether what is not taken is dropped.
func (g *guard) drops() bool { return g.out != nil && g.out.WhenRefused == Drop }

// leadsNowhere reports whether there is no back end.
func (g *guard) leadsNowhere() bool {
	return g.out != nil && g.out.Destination != nil && *g.out.Destination == ""
}
