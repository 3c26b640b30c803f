package steps

// rememberedNumbers is how many of the highest numbers are remembered, for
// steps that arrive out of order.
const rememberedNumbers = 64

// numbers counts steps by the numbers that their program assigns.
type numbers struct {
	begun bool
	// newest is the highest number since the program went back, end the end of
	// that step, and attempt its attempt.
	newest, end, attempt int64
	// seen has a bit for newest and each number below it.
	seen uint64
	// counted is the number of steps.
	counted int64
}

// begin sets the number of steps before the first number.
func (n *numbers) begin(before int64) {
	if !n.begun {
		n.counted = before
	}
}

// add adds the end of a step. If its number is lower than the newest and it
// ended later, the program went back, to a checkpoint or to another loop.
func (n *numbers) add(number, attempt, end int64) {
	behind := n.newest - number
	switch {
	case !n.begun, attempt > n.attempt, behind > 0 && end > n.end:
		*n = numbers{begun: true, newest: number, end: end, attempt: attempt, seen: 1, counted: n.counted}
	case behind < 0:
		n.seen = n.seen<<min(-behind, rememberedNumbers) | 1
		n.newest, n.end = number, end
	case behind >= rememberedNumbers:
	// Too old to be remembered, so it counts.
	case n.seen&(1<<behind) != 0:
		return
	default:
		n.seen |= 1 << behind
	}
	n.counted++
}
