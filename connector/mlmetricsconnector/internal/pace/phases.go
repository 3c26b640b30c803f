package pace

import (
	"math/bits"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// blockSteps is the number of steps of a block, blocks that of the blocks that
	// are remembered.
	blockSteps, blocks = 20, 16
	// MaxPhases limits the phases of a step.
	MaxPhases = 10
	// GroupSteps is the number of steps of a group.
	GroupSteps = 10
	// Groups is the number of groups of which is known whether they have a long step: the rank
	// works for longer than usual, by longPart of the step. The usual work is that of about
	// meanOf steps.
	Groups           = 64
	meanOf, longPart = 64, 0.1
)

// phaseTimes are the seconds of each phase, and of the whole step in the end.
type phaseTimes [MaxPhases + 1]float32

// wholeStep is the index of the whole step.
const wholeStep = MaxPhases

// block has the times of steps that ended one after the other, added up.
type block struct {
	times phaseTimes
	steps int
	// last is the number of the newest step.
	last int64
}

// Phases has the times of the phases of the newest 300 steps of one rank. The zero
// Phases is ready to use. It is not safe for concurrent use.
type Phases struct {
	blocks [blocks]block
	// newest is the index of the newest block, steps the number of all steps.
	newest int
	steps  int64
	// usual are the mean times before Keep was called after keptAt steps.
	usual  phaseTimes
	keptAt int64
	// long has a bit for each of the newest groups: whether it has a long step. work is the
	// usual work of a step, in nanoseconds.
	long uint64
	work float64
}

// Add adds the phases of a step, in nanoseconds, the duration of the step, and how long of
// it the rank works before it may wait for others.
func (p *Phases) Add(phases []int64, whole, work int64) {
	if p.steps%GroupSteps == 0 {
		p.long <<= 1
	}
	p.work += (float64(work) - p.work) / float64(min(p.steps+1, meanOf))
	if float64(work) > p.work+longPart*float64(whole) {
		p.long |= 1
	}
	if p.blocks[p.newest].steps >= blockSteps {
		p.beginBlock()
	}
	at := &p.blocks[p.newest]
	for i, nanoseconds := range phases[:min(len(phases), MaxPhases)] {
		at.times[i] += float32(float64(nanoseconds) / 1e9)
	}
	at.times[wholeStep] += float32(float64(whole) / 1e9)
	at.steps++
	p.steps++
	at.last = p.steps
}

func (p *Phases) beginBlock() {
	p.newest = (p.newest + 1) % blocks
	p.blocks[p.newest] = block{}
}

// Keep keeps the times before the last steps as the usual ones, with which further
// steps are compared.
func (p *Phases) Keep(last int) {
	p.keptAt = p.steps
	defer p.beginBlock()
	var all [len(phaseTimes{})][]float64
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.steps == 0 || b.last > p.steps-int64(last) {
			continue
		}
		for phase, seconds := range b.times {
			all[phase] = append(all[phase], float64(seconds)/float64(b.steps))
		}
	}
	for phase := range p.usual {
		p.usual[phase] = float32(shared.Median(all[phase]))
	}
}

// Growth is what became of a phase, in seconds a step.
type Growth struct {
	Usual, Recent float64
	// Grew reports whether the phase takes more than 1.3 times its usual time and
	// so explains a tenth of the step.
	Grew bool
}

// Slower is how many times its usual time a slow step takes, and a phase that grew.
const Slower = 1.3

// explains is the fraction of a step that a phase must have grown by.
const explains = 0.1

// Growths returns what became of each phase since Keep was called; ok is false if
// nothing was kept, or no step was added since.
func (p *Phases) Growths() (growths [MaxPhases]Growth, ok bool) {
	recent, n := p.recent()
	if p.usual[wholeStep] == 0 || n == 0 {
		return growths, false
	}
	for phase := range growths {
		g := &growths[phase]
		g.Usual, g.Recent = float64(p.usual[phase]), recent[phase]
		g.Grew = g.Recent > Slower*g.Usual && g.Recent-g.Usual >= explains*recent[wholeStep]
	}
	return growths, true
}

// typicalBlocks is the number of blocks whose median is typical: a block with a
// step that takes very long does not matter.
const typicalBlocks = 5

// Typical is what the newest 80 to 120 steps of a rank take.
type Typical struct {
	// Phase and Step are the seconds of a phase and of a step: the medians of the
	// means of up to 20 each.
	Phase, Step float64
	// Since is how many seconds ago the steps began that decide these: the newest
	// half of them, because another time of a step changes a median from then on.
	Since float64
	// Long is how many of the newest Groups groups of GroupSteps steps have a step in which
	// the rank works for longer than usual.
	Long float64
}

// Typical returns what is typical of a phase. ok is false if there are fewer steps.
func (p *Phases) Typical(phase int) (typical Typical, ok bool) {
	if p.steps < (typicalBlocks+1)*blockSteps {
		return Typical{}, false
	}
	typical.Since = float64(p.blocks[p.newest].times[wholeStep])
	var ofPhase, ofStep [typicalBlocks]float64
	for age := range typicalBlocks {
		b := &p.blocks[(p.newest+blocks-1-age)%blocks]
		n := float64(max(b.steps, 1))
		ofPhase[age], ofStep[age] = float64(b.times[phase])/n, float64(b.times[wholeStep])/n
		if age <= typicalBlocks/2 {
			typical.Since += float64(b.times[wholeStep])
		}
	}
	typical.Phase, typical.Step, typical.Long = shared.Median(ofPhase[:]), shared.Median(ofStep[:]), float64(bits.OnesCount64(p.long))
	return typical, true
}

// recent returns the mean times of the newest two blocks since Keep was called.
func (p *Phases) recent() (mean [len(phaseTimes{})]float64, n int) {
	for age := range 2 {
		b := &p.blocks[(p.newest+blocks-age)%blocks]
		if b.steps == 0 || b.last <= p.keptAt {
			continue
		}
		n += b.steps
		for phase, seconds := range b.times {
			mean[phase] += float64(seconds)
		}
	}
	for phase := range mean {
		mean[phase] /= float64(max(n, 1))
	}
	return mean, n
}
