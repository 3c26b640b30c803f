package price

import "time"

// Usage are the tokens of a request. No number may be negative.
type Usage struct {
	// Input are all input tokens, CacheRead and CacheWrite those of them that were
	// read from a cache and written to one.
	Input, CacheRead, CacheWrite int64
	// Output are all output tokens, Reasoning those of them that reasoning took.
	Output, Reasoning int64
}

// Cost is what a request costs, in US dollars.
type Cost struct {
	// Input and Output are the cost of tokens, Other what neither is the reason of.
	Input, Output, Other float64
}

// Total returns the whole cost.
func (c Cost) Total() float64 { return c.Input + c.Output + c.Other }

// rate returns the cost of a request. ok is false if the model has no price for
// tokens that the request has. Cached and reasoning tokens without a price of
// their own have that of the others.
func (p *prices) rate(u Usage) (cost Cost, ok bool) {
	if p == nil || p.Input == nil && p.Output == nil || p.Input == nil && u.Input > 0 || p.Output == nil && u.Output > 0 {
		return Cost{}, false
	}
	read := min(u.CacheRead, u.Input)
	written := min(u.CacheWrite, u.Input-read)
	reasoning := min(u.Reasoning, u.Output)
	of := func(tokens int64, own, others *tiered) float64 {
		if own == nil {
			own = others
		}
		if tokens == 0 || own == nil {
			return 0
		}
		return float64(tokens) * own.at(u.Input) / 1e6
	}
	cost = Cost{
		Input:  of(u.Input-read-written, p.Input, nil) + of(read, p.CacheRead, p.Input) + of(written, p.CacheWrite, p.Input),
		Output: of(u.Output-reasoning, p.Output, nil) + of(reasoning, p.Reasoning, p.Output),
	}
	if p.Requests != nil {
		cost.Other = p.Requests.Base / 1000
	}
	return cost, true
}

// Rate returns what a request to a model costs, by the prices at its time. ok is
// false if the price is not known. A Model may be nil.
func (m *Model) Rate(u Usage, at time.Time) (cost Cost, ok bool) {
	if m == nil {
		return Cost{}, false
	}
	return m.at(at).rate(u)
}
