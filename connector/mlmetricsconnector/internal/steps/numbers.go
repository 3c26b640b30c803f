package steps

// rememberedNumbers is how many numbers up to the newest are remembered, for
// steps that arrive out of order.
const rememberedNumbers = 64

// numbers counts steps by the numbers that their program gives them.
type numbers struct {
	begun bool
	// newest is the highest number since the program went back, end when that
	// step ended, and attempt the attempt that it is of.
	newest, end, attempt int64
	// seen has a bit for newest and each number below it.
	seen uint64
	// counted is the number of steps.
	counted int64
}

// begin sets how many steps there were before the first number.
func (n *numbers) begin(before int64) {
	if !n.begun {
		n.counted = before
	}
}

// add adds the end of a step. A number that is lower than the newest and ended
// later is that of a program that went back, to a checkpoint or to another loop.
func (n *numbers) add(number, attempt, end int64) {
	behind := n.newest - number
	switch {
	case !n.begun, attempt > n.attempt, behind > 0 && end > n.end:
		*n = numbers{begun: true, newest: number, end: end, attempt: attempt, seen: 1, counted: n.counted}
	case behind < 0:
		n.seen = n.seen<<min(-behind, rememberedNumbers) | 1
		n.newest, n.end = number, end
	case behind >= rememberedNumbers:
		// Too old to be remembered: it is a step.
	case n.seen&(1<<behind) != 0:
		return
	default:
		n.seen |= 1 << behind
	}
	n.counted++
}
