package spans

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// maxCost is the largest accepted cost of one request, in US dollars. It is far
// above real ones.
const maxCost = 1e6

var (
	slotUser       = vocabulary.SlotOf(mlattr.User)
	slotInputCost  = vocabulary.SlotOf(mlattr.UsageInputCost)
	slotOutputCost = vocabulary.SlotOf(mlattr.UsageOutputCost)
)

// requestCost is what a request costs, and who says so.
type requestCost struct {
	price.Cost
	source, date string
	// user is the hash of the user, or "".
	user string
}

// readCost finds what a span's request costs: what the client states, else the
// price of its tokens. The cost of a span with tokens counts as they do. Any other
// counts if the span turns out to be a request.
func (r *Reader) readCost(u *unit, v *values) {
	counted := v.HasInput || v.HasOutput
	if v.NotCounted || v.Side == mlattr.SideServer || !counted && u.kinds&isRequest == 0 {
		return
	}
	c := requestCost{source: series.CostStated}
	var known bool
	if c.Cost, known = r.statedCost(); !known && counted {
		if r.Prices == nil {
			return
		}
		c.source, c.date = series.CostComputed, r.Prices.Date()
		if c.Cost, known = r.computedCost(u, v); !known && v.Input+v.Output > 0 {
			r.count(u, series.RequestsUnpriced, u.requestSource, 1, v.Model(), r.ofSpan.TextAt(slotProvider))
		}
	}
	if !known {
		return
	}
	c.user = r.user()
	r.costs = append(r.costs, c)
	u.cost = len(r.costs)
	if counted {
		r.addCost(u)
	}
}

// statedCost returns the cost that the client states. One of 0 is not believed:
// clients state it of models whose price they do not know.
func (r *Reader) statedCost() (cost price.Cost, known bool) {
	total := r.dollars(slotCost)
	cost = price.Cost{Input: r.dollars(slotInputCost), Output: r.dollars(slotOutputCost)}
	parts := cost.Input + cost.Output
	switch {
	case total == 0:
	case parts > total*(1+1e-6):
		// The parts are of something else.
		cost = price.Cost{Other: total}
	case parts < total*(1-1e-6):
		cost.Other = total - parts
	}
	return cost, cost.Total() > 0
}

// dollars returns a stated cost, or 0.
func (r *Reader) dollars(slot vocabulary.Slot) float64 {
	cost, ok := r.ofSpan.DoubleAt(slot)
	if !ok || cost == 0 {
		return 0
	}
	if !(cost > 0 && cost <= maxCost) {
		r.Skipped.OutOfRange++
		return 0
	}
	return cost
}

// computedCost returns what the tokens of a request cost by the file of prices: by
// the model that answered, else by the one that was asked for.
func (r *Reader) computedCost(u *unit, v *values) (cost price.Cost, known bool) {
	if v.Input > mlattr.MaxCount || v.Output > mlattr.MaxCount {
		return price.Cost{}, false
	}
	usage := price.Usage{Input: v.Input, Output: v.Output}
	usage.CacheRead, _ = r.ofSpan.IntAt(slotCached)
	usage.CacheWrite, _ = r.ofSpan.IntAt(slotCacheWrite)
	usage.Reasoning, _ = r.ofSpan.IntAt(slotReasoning)
	at, provider := time.Unix(0, u.end), r.ofSpan.TextAt(slotProvider)
	for _, model := range [...]string{v.Answered, v.Requested} {
		if model != "" {
			if cost, known = r.Prices.Find(provider, model, time.Unix(0, r.now)).Rate(usage, at); known {
				break
			}
		}
	}
	if cost.Total() > maxCost {
		r.Skipped.OutOfRange++
		return price.Cost{}, false
	}
	return cost, known
}

// user returns the hash of the user of a span, or else of its resource.
func (r *Reader) user() string {
	for _, facts := range [...]*vocabulary.Facts{&r.ofSpan, &r.ofResource} {
		// Another name than the canonical one has the user's own name.
		if user := facts.At(slotUser); user != nil && user.Own && user.Text != "" {
			return user.Text
		}
	}
	return ""
}

// addCost adds the cost of a request.
func (r *result) addCost(u *unit) {
	c := &r.costs[u.cost-1]
	for i, dollars := range [...]float64{c.Input, c.Output, c.Other} {
		if dollars > 0 {
			kind := [...]string{mlattr.TokenTypeInput, mlattr.TokenTypeOutput, series.CostOther}[i]
			r.update(u, series.Cost, u.requestSource, kind, u.model, c.source, u.role, u.side, c.date).Value = dollars
		}
	}
	if total := c.Total(); c.user != "" && total > 0 {
		r.update(u, series.UserCost, u.requestSource, c.user, c.source).Value = total
	}
}
