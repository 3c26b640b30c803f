package price

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Limits of a file. That of genai-prices has 0.4 MB, 36 providers and 1,500
// models.
const (
	maxSize      = 16 << 20
	maxProviders = 1000
	maxModels    = 50_000
	maxPrices    = 64
	maxTiers     = 16
	// maxPrice is the largest price of a million tokens.
	maxPrice = 1e9
)

// provider is a company that serves models at its own prices.
type provider struct {
	id string
	// of matches the names of the provider, models those of models that are its
	// own where a request names no provider.
	of, models *clause
	// fallbacks are the providers whose models it serves, too.
	fallbacks []string
	list      []model
}

// model is a model with its prices. Of those that hold, the last counts; if none
// holds, the first does.
type model struct {
	match  *clause
	prices []conditional
}

// conditional are prices that hold from a day on, or at a time of day.
type conditional struct {
	from time.Time
	// daily reports whether the prices hold from begin to end, after midnight UTC.
	daily      bool
	begin, end time.Duration
	prices     prices
}

// prices are those of one model, per million tokens. A nil one is not known.
type prices struct {
	input, output, cacheRead, cacheWrite, reasoning *tiered
	// request is the price of a request.
	request float64
}

// tiered is a price that depends on the number of input tokens of the request.
// The price of the last tier that the number exceeds is that of all tokens.
type tiered struct {
	base  float64
	tiers []tier
}

type tier struct {
	above int64
	price float64
}

// at returns the price for a request with that many input tokens.
func (t *tiered) at(input int64) float64 {
	price := t.base
	for i := range t.tiers {
		if input > t.tiers[i].above {
			price = t.tiers[i].price
		}
	}
	return price
}

// The form of the file, as far as it is read.
type (
	rawProvider struct {
		ID            string     `json:"id"`
		ProviderMatch *rawClause `json:"provider_match"`
		ModelMatch    *rawClause `json:"model_match"`
		Fallbacks     []string   `json:"fallback_model_providers"`
		Models        []rawModel `json:"models"`
	}
	rawModel struct {
		ID     string          `json:"id"`
		Match  *rawClause      `json:"match"`
		Prices json.RawMessage `json:"prices"`
	}
	rawConditional struct {
		Constraint *struct {
			StartDate string `json:"start_date"`
			StartTime string `json:"start_time"`
			EndTime   string `json:"end_time"`
		} `json:"constraint"`
		Prices rawPrices `json:"prices"`
	}
	rawPrices struct {
		Input      json.RawMessage `json:"input_mtok"`
		Output     json.RawMessage `json:"output_mtok"`
		CacheRead  json.RawMessage `json:"cache_read_mtok"`
		CacheWrite json.RawMessage `json:"cache_write_mtok"`
		Reasoning  json.RawMessage `json:"output_reasoning_mtok"`
		Requests   json.RawMessage `json:"requests_kcount"`
	}
	rawTiered struct {
		Base  float64 `json:"base"`
		Tiers []struct {
			Start int64   `json:"start"`
			Price float64 `json:"price"`
		} `json:"tiers"`
	}
)

// parse reads a file of prices.
func parse(from io.Reader) ([]provider, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxSize+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxSize:
		return nil, fmt.Errorf("it has more than %d bytes", maxSize)
	}
	var raw []rawProvider
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("it is no list of providers in the form of genai-prices: %w", err)
	}
	if len(raw) > maxProviders {
		return nil, fmt.Errorf("it has more than %d providers", maxProviders)
	}
	all, c := make([]provider, 0, len(raw)), compiler{}
	models := 0
	for i := range raw {
		if models += len(raw[i].Models); models > maxModels {
			return nil, fmt.Errorf("it has more than %d models", maxModels)
		}
		p, err := c.provider(&raw[i])
		if err != nil {
			return nil, fmt.Errorf("provider %.80q: %w", raw[i].ID, err)
		}
		all = append(all, p)
	}
	if models == 0 {
		return nil, errors.New("it has no model")
	}
	return all, nil
}

// provider compiles a provider.
func (c *compiler) provider(raw *rawProvider) (p provider, err error) {
	p = provider{id: strings.ToLower(raw.ID), fallbacks: raw.Fallbacks, list: make([]model, 0, len(raw.Models))}
	if p.of, err = c.clause(raw.ProviderMatch); err != nil {
		return p, fmt.Errorf(`"provider_match": %w`, err)
	}
	if p.models, err = c.clause(raw.ModelMatch); err != nil {
		return p, fmt.Errorf(`"model_match": %w`, err)
	}
	for i := range raw.Models {
		m := model{}
		if m.match, err = c.clause(raw.Models[i].Match); err != nil {
			return p, fmt.Errorf(`model %.80q: "match": %w`, raw.Models[i].ID, err)
		}
		if m.prices, err = conditionals(raw.Models[i].Prices); err != nil {
			return p, fmt.Errorf(`model %.80q: "prices": %w`, raw.Models[i].ID, err)
		}
		p.list = append(p.list, m)
	}
	return p, nil
}

// conditionals reads the prices of a model, which are one set or a list of sets
// with constraints.
func conditionals(data json.RawMessage) ([]conditional, error) {
	var raw []rawConditional
	if err := json.Unmarshal(data, &raw); err != nil {
		raw = make([]rawConditional, 1)
		if err := json.Unmarshal(data, &raw[0].Prices); err != nil {
			return nil, err
		}
	}
	if len(raw) > maxPrices {
		return nil, fmt.Errorf("more than %d sets", maxPrices)
	}
	all := make([]conditional, 0, len(raw))
	for i := range raw {
		one := conditional{}
		var err error
		if one.prices, err = raw[i].Prices.compile(); err != nil {
			return nil, err
		}
		if constraint := raw[i].Constraint; constraint != nil {
			if err := one.constrain(constraint.StartDate, constraint.StartTime, constraint.EndTime); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// constrain sets when the prices hold.
func (c *conditional) constrain(date, begin, end string) (err error) {
	if date != "" {
		c.from, err = time.Parse(time.DateOnly, date)
		return err
	}
	if c.begin, err = timeOfDay(begin); err == nil {
		c.end, err = timeOfDay(end)
	}
	c.daily = true
	return err
}

// timeOfDay reads a time such as 16:30:00Z, as the time after midnight UTC.
func timeOfDay(text string) (time.Duration, error) {
	at, err := time.Parse("15:04:05Z07:00", text)
	if err != nil {
		return 0, err
	}
	at = at.UTC()
	return at.Sub(at.Truncate(24 * time.Hour)), nil
}

// holds reports whether the prices hold at a time.
func (c *conditional) holds(at time.Time) bool {
	if !c.daily {
		return !at.Before(c.from)
	}
	at = at.UTC()
	day := at.Sub(at.Truncate(24 * time.Hour))
	return c.begin <= day && day < c.end
}

// at returns the prices at a time, nil if the model has none.
func (m *model) at(now time.Time) *prices {
	for i := len(m.prices) - 1; i >= 0; i-- {
		if m.prices[i].holds(now) {
			return &m.prices[i].prices
		}
	}
	if len(m.prices) == 0 {
		return nil
	}
	return &m.prices[0].prices
}

// compile reads the prices that tokens of text are rated by. Those of other
// media, searches and times of caches are left out: spans do not say them.
func (r *rawPrices) compile() (p prices, err error) {
	requests := (*tiered)(nil)
	for _, one := range [...]struct {
		raw json.RawMessage
		to  **tiered
	}{
		{r.Input, &p.input}, {r.Output, &p.output}, {r.CacheRead, &p.cacheRead},
		{r.CacheWrite, &p.cacheWrite}, {r.Reasoning, &p.reasoning}, {r.Requests, &requests},
	} {
		if *one.to, err = tieredOf(one.raw); err != nil {
			return p, err
		}
	}
	if requests != nil {
		p.request = requests.base / 1000
	}
	return p, nil
}

// tieredOf reads a price, a number or one with tiers. It returns nil for none.
func tieredOf(data json.RawMessage) (*tiered, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	raw := rawTiered{}
	if err := json.Unmarshal(data, &raw.Base); err != nil {
		if err := json.Unmarshal(data, &raw); err != nil {
			return nil, err
		}
	}
	if len(raw.Tiers) > maxTiers {
		return nil, fmt.Errorf("more than %d tiers", maxTiers)
	}
	t, last := &tiered{base: raw.Base}, int64(-1)
	if !believable(raw.Base) {
		return nil, fmt.Errorf("the price %v is not between 0 and %g", raw.Base, float64(maxPrice))
	}
	for _, one := range raw.Tiers {
		if !believable(one.Price) || one.Start <= last {
			return nil, fmt.Errorf("the tier from %d at %v does not begin above the one before, or its price is not between 0 and %g", one.Start, one.Price, float64(maxPrice))
		}
		last = one.Start
		t.tiers = append(t.tiers, tier{one.Start, one.Price})
	}
	return t, nil
}

func believable(price float64) bool {
	return price >= 0 && price <= maxPrice && !math.IsNaN(price)
}
