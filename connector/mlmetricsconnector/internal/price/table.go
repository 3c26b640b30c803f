package price

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

const (
	// maxNames limits the names of models that are remembered, and maxName the
	// length of one in bytes. Further ones have no price until the names are
	// forgotten, after namesAge.
	maxNames, maxName = 4096, 256
	namesAge          = time.Hour
)

// Table has the prices of a file. It is safe for concurrent use.
type Table struct {
	date      string
	providers []provider

	mu     sync.RWMutex
	models map[name]*Model
	since  time.Time
}

// name is how a request names a model.
type name struct{ provider, model string }

// Date returns the day of the prices, such as 2026-08-21.
func (t *Table) Date() string { return t.date }

// Find returns the model that a request to a provider names, or nil if its price
// is not known. provider is gen_ai.provider.name, and may be empty: then the name
// of the model has to say whose it is. The files' rules are tried once for each
// name.
func (t *Table) Find(provider, model string, now time.Time) *Model {
	key := name{provider, model}
	t.mu.RLock()
	found, known := t.models[key]
	t.mu.RUnlock()
	if known {
		return found
	}
	return t.add(key, now)
}

// add finds a model by the rules, and remembers it.
func (t *Table) add(key name, now time.Time) *Model {
	if key.model == "" || len(key.model) > maxName || len(key.provider) > maxName {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.models) >= maxNames && now.Sub(t.since) < namesAge {
		return nil
	}
	if t.models == nil || len(t.models) >= maxNames {
		t.models, t.since = make(map[name]*Model), now
	}
	key = name{strings.Clone(key.provider), strings.Clone(key.model)}
	found := t.search(strings.ToLower(strings.TrimSpace(key.provider)), strings.ToLower(key.model))
	t.models[key] = found
	return found
}

// search finds a model by the rules. Both names are in lower case.
func (t *Table) search(by, model string) *Model {
	unnamed := by == "" || vocabulary.IsGateway(by)
	// A gateway names the provider first: azure/gpt-4o.
	if prefix, rest, ok := strings.Cut(model, "/"); ok && unnamed {
		if found := t.of(t.provider(prefix), rest); found != nil {
			return found
		}
	}
	if !unnamed {
		return t.of(t.provider(by), model)
	}
	return t.of(mlattr.Find(t.providers, func(p *provider) bool { return p.Own.match(model) }), model)
}

// named returns the provider with an id, or nil.
func (t *Table) named(id string) *provider {
	return mlattr.Find(t.providers, func(p *provider) bool { return p.ID == id })
}

// conventional are names of providers in the conventions that no rule of the
// file matches rightly.
var conventional = map[string]string{
	"azure.ai.openai": "azure", "azure.ai.inference": "azure", "az.ai.openai": "azure", "az.ai.inference": "azure",
	"gcp.gen_ai": "google", "x_ai": "x-ai",
}

// provider returns the provider of a name, or nil.
func (t *Table) provider(name string) *provider {
	name = cmp.Or(conventional[name], name)
	if known := t.named(name); known != nil {
		return known
	}
	return mlattr.Find(t.providers, func(p *provider) bool { return p.Of.match(name) })
}

// of returns a provider's model, or that of the providers whose models it serves.
func (t *Table) of(p *provider, name string) *Model {
	found := p.find(name)
	if p != nil {
		for _, id := range p.Fallbacks {
			found = cmp.Or(found, t.named(id).find(name))
		}
	}
	return found
}

// find returns the model of a name, or nil. The provider may be nil.
func (p *provider) find(name string) *Model {
	if p == nil {
		return nil
	}
	return mlattr.Find(p.Models, func(m *Model) bool { return m.Match.match(name) })
}

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

// Rate returns what a request to a model costs, by the prices at its time. ok is
// false if the model, which may be nil, has no price for tokens that the request has.
// Cached and reasoning tokens without a price of their own have that of the others.
func (m *Model) Rate(u Usage, at time.Time) (cost Cost, ok bool) {
	if m == nil || len(m.Prices) == 0 {
		return Cost{}, false
	}
	p := &m.Prices[0].Prices
	for i := range m.Prices {
		if m.Prices[i].Constraint.holds(at) {
			p = &m.Prices[i].Prices
		}
	}
	if p.Input == nil && (p.Output == nil || u.Input > 0) || p.Output == nil && u.Output > 0 {
		return Cost{}, false
	}
	read := min(u.CacheRead, u.Input)
	written := min(u.CacheWrite, u.Input-read)
	reasoning := min(u.Reasoning, u.Output)
	of := func(tokens int64, own, others *tiered) float64 {
		if own = cmp.Or(own, others); tokens == 0 || own == nil {
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
