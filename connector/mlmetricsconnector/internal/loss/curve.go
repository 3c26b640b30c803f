// Package loss watches the loss of a training run, and the norm of its gradient: values
// that are not finite, a spike, and divergence.
//
// A value is compared with the median of those before it, in units of their
// median absolute deviation (Hampel's identifier, 1974; Leys et al. 2013), on the
// logarithm of the loss, because losses fall by factors. Medians are those of
// blocks, so that an observation costs a constant time.
package loss

import (
	"cmp"
	"math"
	"math/bits"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// blockSize is the number of losses of a block, usualBlocks that of the blocks
	// with which a loss is compared.
	blockSize, usualBlocks = 32, 8
	// A loss is high if it is above highRatio times the usual one, and above it by
	// highSpreads times their spread. A spike is highOf high losses among the
	// newest highAmong, so that a single bad batch is none: with heavy tails as
	// of Student's t with 3 degrees of freedom, one among a million by chance. A norm of a
	// gradient must be above highNorm times the usual one: other batches may double it.
	highRatio, highNorm, highSpreads = 1.2, 5, 8
	highOf, highAmong                = 3, 5
	// A loss has diverged if the medians of divergedBlocks blocks in a row are above
	// the best one by divergedRatio times, and by divergedSpreads times the spread.
	divergedBlocks                 = 2
	divergedRatio, divergedSpreads = 1.3, 2
	// acceptedBlocks is the number of blocks after which the level of a loss that
	// has diverged is the usual one: the run trains on other data now.
	acceptedBlocks = 100
	// leastSpread is the least spread of a loss's logarithm, as of one that is
	// rounded.
	leastSpread = 0.01
	// quiet is the time after a spike without another one.
	quiet = time.Hour
	// beyondOwn is how many times the highest rise another one is, on a logarithmic scale,
	// once ownRises have gone by themselves: rates that restart and games of two networks
	// make the same rise again and again.
	beyondOwn, ownRises = 1.25, 2
	// frozenFor is the least number of equal losses in a row of one that has frozen, and
	// seldomEqual the greatest share of losses before it that equal the one before.
	frozenFor, seldomEqual = 64, 0.1
	// nonfiniteOf losses among the newest nonfiniteAmong, or the newest two, are no
	// chance: mixed precision skips a single step whose values overflow. So are
	// nonfiniteNorms norms in a row: it halves the scale of the losses, of 2^32 at most,
	// until they are finite.
	nonfiniteOf, nonfiniteAmong, nonfiniteNorms = 3, 20, 32
	// raised is how many times higher a learning rate is after a warm restart
	// (Loshchilov and Hutter 2017), after which the loss rises too.
	raised = 1.5
)

// observation is one loss.
type observation struct {
	at   time.Time
	loss float64
}

// Curve has the losses of the steps of a run. The zero Curve is ready to use. It
// is not safe for concurrent use.
type Curve struct {
	lasting
	present
	usual
	highs
	divergence
	repetition
	rates
}

// lasting is what a Restart keeps.
type lasting struct {
	// linear reports whether losses are compared as they are, because some are not
	// positive, and not their logarithms.
	linear bool
	// ratio and least are highNorm and nonfiniteNorms, 0 for losses.
	ratio, least int
	// count is the number of steps, latest the time of the newest by the client's clock.
	count, latest int64
	// nonfinite has a bit for each of the newest losses, broken is since when losses are
	// not finite, zero if they are.
	nonfinite uint32
	broken    time.Time
	// spiked is when the newest spike came.
	spiked              time.Time
	ownSpikes, ownRises own
}

// present is the block that has begun, of n losses.
type present struct {
	values [blockSize]float64
	n      int
	begun  time.Time
}

// usual is that with which a loss is compared: center and spread, of the newest blocks.
type usual struct {
	center, spread   float64
	medians, spreads [usualBlocks]float64
	beginnings       [usualBlocks]time.Time
	// blocks is the number of all blocks.
	blocks int
}

// highs are the newest losses, with a bit in high for each that is high.
type highs struct {
	newest [highAmong]observation
	high   uint32
	spike  *Found
}

// divergence is how far the loss is above its best level: best is the lowest median,
// above how many medians are higher, and diverged since when they are. highest is the
// highest rise above the best since then.
type divergence struct {
	best     float64
	above    int
	diverged time.Time
	highest  float64
}

// own are the rises that went by themselves.
type own struct {
	number  int
	highest float64
}

func (o *own) add(rise float64) { o.number, o.highest = o.number+1, max(o.highest, rise) }

// least returns the least rise that is none of its own.
func (o *own) least() float64 {
	if o.number < ownRises {
		return 0
	}
	return beyondOwn * o.highest
}

// repetition is how often a loss equals the one before: last is the newest, same how many
// in a row, since when, and equal of compared earlier ones did.
type repetition struct {
	last            float64
	same            int64
	since           time.Time
	equal, compared float64
}

// rates are learning rates: the newest, and that at the end of the block before, 0 if it
// is unknown.
type rates struct{ rate, rateOfBlock float64 }

// OfNorms returns a Curve of norms of gradients, which are added as losses are.
func OfNorms() Curve { return Curve{lasting: lasting{ratio: highNorm, least: nonfiniteNorms}} }

// Found is what the losses of a run show: a spike, that they have diverged or frozen, or that
// some are NaN or infinite.
type Found struct {
	// Onset is the arrival of the first loss that shows it.
	Onset time.Time
	// Value is the highest loss of a spike, the median of the newest block of a loss that has
	// diverged, the frozen loss, or the number of those that are not finite. Usual is the
	// median before a spike, or the best one before it has diverged, else NaN.
	Value, Usual float64
	// Count is how many losses Usual is of, or else Value.
	Count int64
	// Spreads is how far a spike is above Usual, in spreads.
	Spreads float64
}

// Add adds a loss that arrived at now. at is its time by the client's clock, in
// nanoseconds: further values of the same time belong to the same step, and count
// only if they are not finite.
func (c *Curve) Add(at int64, value float64, now time.Time) {
	again := c.begin(at)
	if math.IsNaN(value) || math.IsInf(value, 0) {
		c.addNonfinite(now)
		return
	}
	if again {
		return
	}
	c.repeat(value, now)
	x := c.scale(value)
	c.judge(observation{now, value}, x)
	if c.n == 0 {
		c.begun = now
	}
	c.values[c.n] = x
	if c.n++; c.n == blockSize {
		c.endBlock()
	}
}

// Finite adds a step whose loss is finite, and not compared with others.
func (c *Curve) Finite(at int64) { c.begin(at) }

// begin begins the step of a time, and reports whether it is the newest one again.
func (c *Curve) begin(at int64) (again bool) {
	again = at != 0 && at == c.latest
	if c.latest = at; !again {
		c.count++
		c.nonfinite <<= 1
	}
	return again
}

// addNonfinite adds to the newest step that its loss is NaN or infinite.
func (c *Curve) addNonfinite(now time.Time) {
	c.nonfinite |= 1
	c.broken = cmp.Or(c.broken, now)
}

// scale returns the logarithm of a loss, or the loss once one was not positive.
func (c *Curve) scale(loss float64) float64 {
	if loss <= 0 && !c.linear {
		c.Restart()
		c.linear = true
	}
	if c.linear {
		return loss
	}
	return math.Log(loss)
}

// ready reports whether the usual loss is known.
func (c *Curve) ready() bool { return c.blocks >= usualBlocks/2 }

// judge compares a loss with those before it.
func (c *Curve) judge(o observation, x float64) {
	copy(c.newest[1:], c.newest[:highAmong-1])
	c.newest[0] = o
	c.high <<= 1
	if !c.ready() {
		return
	}
	above := x - c.center
	if above > highSpreads*c.spread && (c.linear || above > math.Log(cmp.Or(float64(c.ratio), highRatio))) {
		c.high |= 1
	}
	if bits.OnesCount32(c.high&(1<<highAmong-1)) < highOf || !c.spiked.IsZero() && o.at.Sub(c.spiked) < quiet {
		return
	}
	c.spiked = o.at
	if above < c.ownSpikes.least() {
		return
	}
	c.ownSpikes.add(above)
	c.spike = &Found{Usual: c.unscale(c.center), Count: int64(min(c.blocks, usualBlocks)) * blockSize, Spreads: above / c.spread}
	for age := range highAmong {
		if c.high>>age&1 != 0 {
			c.spike.Onset, c.spike.Value = c.newest[age].at, max(c.spike.Value, c.newest[age].loss)
		}
	}
}

// unscale returns the loss of a value.
func (c *Curve) unscale(x float64) float64 {
	if c.linear {
		return x
	}
	return math.Exp(x)
}

// endBlock ends a block, and updates what is usual.
func (c *Curve) endBlock() {
	i := c.blocks % usualBlocks
	c.medians[i], c.spreads[i] = pace.Spread(c.values[:])
	c.beginnings[i] = c.begun
	c.blocks++
	c.n = 0
	known := min(c.blocks, usualBlocks)
	c.follow(c.medians[i])

	// The newer half is usual, the spread is that of all: within the blocks and
	// between them.
	var newer [usualBlocks / 2]float64
	for age := range min(known, len(newer)) {
		newer[age] = c.medians[(c.blocks-1-age)%usualBlocks]
	}
	c.center = shared.Median(newer[:min(known, len(newer))])
	spreads, medians := c.spreads, c.medians
	within := shared.Median(spreads[:known])
	_, between := pace.Spread(medians[:known])
	least := leastSpread
	if c.linear {
		least *= math.Abs(c.center)
	}
	c.spread = max(within, between, least)
	c.rateOfBlock = c.rate
}

// follow compares the median of a block with the best one. A loss that is not
// positive may rise for good reasons, as of rewards.
func (c *Curve) follow(median float64) {
	if c.blocks == 1 || median < c.best {
		c.best = median
	}
	if c.linear || !c.ready() || median-c.best <= max(math.Log(divergedRatio), divergedSpreads*c.spread, c.ownRises.least()) {
		if c.above >= divergedBlocks {
			c.ownRises.add(c.highest)
		}
		c.above, c.diverged, c.highest = 0, time.Time{}, 0
		return
	}
	c.highest = max(c.highest, median-c.best)
	if c.above++; c.above == divergedBlocks {
		c.diverged = c.beginnings[(c.blocks-divergedBlocks)%usualBlocks]
	}
	if c.above >= acceptedBlocks {
		c.best, c.above, c.diverged, c.highest = median, 0, time.Time{}, 0
	}
}

// Rate adds a learning rate. After one that is higher by half than at the end of
// the block before, what is usual is learned again.
func (c *Curve) Rate(rate float64) {
	if !(rate > 0) {
		return
	}
	if c.rateOfBlock > 0 && rate >= raised*c.rateOfBlock {
		c.Restart()
		c.rateOfBlock = rate
	}
	c.rate = rate
}

// Restart forgets what is usual: the run went back to a checkpoint, or begins
// anew.
func (c *Curve) Restart() {
	*c = Curve{lasting: c.lasting}
}

// TakeSpike returns a spike since the last call, or nil.
func (c *Curve) TakeSpike() *Found {
	spike := c.spike
	c.spike = nil
	return spike
}

// Diverged returns how the loss rose above its best level, where it stays, or nil.
func (c *Curve) Diverged() *Found {
	if c.diverged.IsZero() {
		return nil
	}
	newest := c.medians[(c.blocks-1)%usualBlocks]
	return &Found{Onset: c.diverged, Value: c.unscale(newest), Usual: c.unscale(c.best), Count: blockSize}
}

// repeat counts equal losses in a row.
func (c *Curve) repeat(value float64, now time.Time) {
	switch {
	case value == c.last && c.count > 1:
		c.same++
		return
	case c.same > 0 && c.same < frozenFor:
		c.equal += float64(c.same)
		c.compared += float64(c.same)
	}
	c.compared++
	c.last, c.same, c.since = value, 0, now
}

// Frozen returns since when the loss is exactly the same in each step, nil if it is not, or if it
// often stayed the same before, as one that is rounded.
func (c *Curve) Frozen() *Found {
	if c.same < frozenFor || c.compared < frozenFor || c.equal > seldomEqual*c.compared {
		return nil
	}
	return &Found{Onset: c.since, Value: c.last, Usual: math.NaN(), Count: c.same + 1}
}

// AddNonfinite adds a loss of another rank that is NaN or infinite.
func (c *Curve) AddNonfinite(at int64, now time.Time) {
	latest := c.latest
	c.begin(at)
	c.latest = latest
	c.addNonfinite(now)
}

// Nonfinite returns losses that are NaN or infinite while the newest two are, or 3 of the
// newest 20, else nil. Of norms, the newest 32 must be.
func (c *Curve) Nonfinite() *Found {
	among := cmp.Or(c.least, nonfiniteAmong)
	newest := c.nonfinite & (1<<among - 1)
	n := bits.OnesCount32(newest)
	if n == 0 {
		c.broken = time.Time{}
	}
	if n < c.least || n < nonfiniteOf && newest&3 != 3 {
		return nil
	}
	return &Found{Onset: c.broken, Value: float64(n), Usual: math.NaN(), Count: min(c.count, int64(among))}
}
