package price

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
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
	ID string `json:"id"`
	// Of matches the names of the provider, Own those of models that are its
	// own where a request names no provider.
	Of  *clause `json:"provider_match"`
	Own *clause `json:"model_match"`
	// Fallbacks are the providers whose models it serves, too.
	Fallbacks []string `json:"fallback_model_providers"`
	Models    []Model  `json:"models"`
}

// Model is a model with its prices. Of those that hold, the last counts; if none
// holds, the first does.
type Model struct {
	ID     string  `json:"id"`
	Match  *clause `json:"match"`
	Prices sets    `json:"prices"`
}

// sets are the prices of a model: one set, or a list of sets with constraints.
type sets []conditional

// UnmarshalJSON reads both forms.
func (s *sets) UnmarshalJSON(data []byte) error {
	list, to := make([]conditional, 1), any(nil)
	if to = &list; data[0] == '{' {
		to = &list[0].Prices
	}
	err := json.Unmarshal(data, to)
	*s = append(sets{}, list...)
	return err
}

// conditional are prices that hold from a day on, or at a time of day.
type conditional struct {
	Constraint *struct {
		StartDate string `json:"start_date"`
		StartTime string `json:"start_time"`
		EndTime   string `json:"end_time"`
	} `json:"constraint"`
	Prices prices `json:"prices"`

	from time.Time
	// daily reports whether the prices hold from begin to end, after midnight UTC.
	daily      bool
	begin, end time.Duration
}

// prices are those of one model, per million tokens of text, and per thousand requests. A
// nil one is not known. Those of other media, searches and times of caches are left out:
// spans do not say them.
type prices struct {
	Input      *tiered `json:"input_mtok"`
	Output     *tiered `json:"output_mtok"`
	CacheRead  *tiered `json:"cache_read_mtok"`
	CacheWrite *tiered `json:"cache_write_mtok"`
	Reasoning  *tiered `json:"output_reasoning_mtok"`
	Requests   *tiered `json:"requests_kcount"`
}

// tiered is a price that depends on the number of input tokens of the request.
// The price of the last tier that the number exceeds is that of all tokens.
type tiered struct {
	Base  float64 `json:"base"`
	Tiers []struct {
		Start int64   `json:"start"`
		Price float64 `json:"price"`
	} `json:"tiers"`
}

// UnmarshalJSON reads a number, or a price with tiers.
func (t *tiered) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &t.Base) == nil {
		return nil
	}
	type plain tiered
	return json.Unmarshal(data, (*plain)(t))
}

// at returns the price for a request with that many input tokens.
func (t *tiered) at(input int64) float64 {
	price := t.Base
	for i := range t.Tiers {
		if input > t.Tiers[i].Start {
			price = t.Tiers[i].Price
		}
	}
	return price
}

// parse reads a file of prices.
func parse(from io.Reader) ([]provider, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("it has more than %d bytes", maxSize)
	}
	var all []provider
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("it is no list of providers in the form of genai-prices: %w", err)
	}
	if len(all) > maxProviders {
		return nil, fmt.Errorf("it has more than %d providers", maxProviders)
	}
	c, models := compiler{}, 0
	for i := range all {
		if models += len(all[i].Models); models > maxModels {
			return nil, fmt.Errorf("it has more than %d models", maxModels)
		}
		if err := c.provider(&all[i]); err != nil {
			return nil, fmt.Errorf("provider %.80q: %w", all[i].ID, err)
		}
	}
	if models == 0 {
		return nil, errors.New("it has no model")
	}
	return all, nil
}

// provider compiles a provider.
func (c *compiler) provider(p *provider) error {
	p.ID = strings.ToLower(p.ID)
	if err := errors.Join(c.clause(p.Of, 1), c.clause(p.Own, 1)); err != nil {
		return err
	}
	for i := range p.Models {
		m := &p.Models[i]
		if err := cmp.Or(c.clause(m.Match, 1), m.Prices.compile()); err != nil {
			return fmt.Errorf("model %.80q: %w", m.ID, err)
		}
	}
	return nil
}

// compile checks the sets of a model, and reads when they hold.
func (s sets) compile() error {
	if s == nil || len(s) > maxPrices {
		return fmt.Errorf(`"prices" is missing, or has more than %d sets`, maxPrices)
	}
	for i := range s {
		if err := s[i].compile(); err != nil {
			return err
		}
	}
	return nil
}

// compile checks prices, and reads when they hold.
func (c *conditional) compile() (err error) {
	p := &c.Prices
	if err := cmp.Or(p.Input.check(), p.Output.check(), p.CacheRead.check(), p.CacheWrite.check(), p.Reasoning.check(), p.Requests.check()); err != nil {
		return err
	}
	switch is := c.Constraint; {
	case is == nil:
	case is.StartDate != "":
		c.from, err = time.Parse(time.DateOnly, is.StartDate)
	default:
		c.daily = true
		if c.begin, err = timeOfDay(is.StartTime); err == nil {
			c.end, err = timeOfDay(is.EndTime)
		}
	}
	return err
}

// timeOfDay reads a time such as 16:30:00Z, as the time after midnight UTC.
func timeOfDay(text string) (time.Duration, error) {
	at, err := time.Parse("15:04:05Z07:00", text)
	return sinceMidnight(at), err
}

// sinceMidnight returns the time after midnight UTC.
func sinceMidnight(at time.Time) time.Duration {
	return at.UTC().Sub(at.UTC().Truncate(24 * time.Hour))
}

// holds reports whether the prices hold at a time.
func (c *conditional) holds(at time.Time) bool {
	if !c.daily {
		return !at.Before(c.from)
	}
	day := sinceMidnight(at)
	return c.begin <= day && day < c.end
}

// check returns an error if a price is not plausible.
func (t *tiered) check() error {
	believable := func(price float64) bool { return price >= 0 && price <= maxPrice }
	switch {
	case t == nil:
		return nil
	case len(t.Tiers) > maxTiers:
		return fmt.Errorf("more than %d tiers", maxTiers)
	case !believable(t.Base):
		return fmt.Errorf("the price %v is not between 0 and %g", t.Base, float64(maxPrice))
	}
	for i, one := range t.Tiers {
		if !believable(one.Price) || one.Start < 0 || i > 0 && one.Start <= t.Tiers[i-1].Start {
			return fmt.Errorf("the tier from %d at %v does not begin above the one before, or its price is not between 0 and %g", one.Start, one.Price, float64(maxPrice))
		}
	}
	return nil
}

// Limits of clauses.
const (
	maxClauses     = 500_000
	maxClauseDepth = 8
	maxPatterns    = 2000
	maxPattern     = 512
)

// clause is what names match: one of its fields is set. A nil clause matches none.
type clause struct {
	Equals     *string   `json:"equals"`
	StartsWith *string   `json:"starts_with"`
	EndsWith   *string   `json:"ends_with"`
	Contains   *string   `json:"contains"`
	Regex      *string   `json:"regex"`
	Or         []*clause `json:"or"`
	And        []*clause `json:"and"`

	pattern *regexp.Regexp
}

// match reports whether a name in lower case matches.
func (c *clause) match(name string) bool {
	switch {
	case c == nil:
		return false
	case c.Equals != nil:
		return name == *c.Equals
	case c.StartsWith != nil:
		return strings.HasPrefix(name, *c.StartsWith)
	case c.EndsWith != nil:
		return strings.HasSuffix(name, *c.EndsWith)
	case c.Contains != nil:
		return strings.Contains(name, *c.Contains)
	case c.pattern != nil:
		return c.pattern.MatchString(name)
	case len(c.Or) > 0:
		return slices.ContainsFunc(c.Or, func(one *clause) bool { return one.match(name) })
	default:
		return !slices.ContainsFunc(c.And, func(one *clause) bool { return !one.match(name) })
	}
}

// compiler counts what it compiles.
type compiler struct{ clauses, patterns int }

// clause compiles a clause, so that it matches names in lower case. A regular expression is
// used once for each name of a model and never for a span.
func (c *compiler) clause(of *clause, depth int) (err error) {
	if of == nil {
		return nil
	}
	if c.clauses++; c.clauses > maxClauses || depth > maxClauseDepth {
		return fmt.Errorf("more than %d clauses, or %d in one another", maxClauses, maxClauseDepth)
	}
	for _, text := range [...]*string{of.Equals, of.StartsWith, of.EndsWith, of.Contains} {
		if text != nil {
			*text = strings.ToLower(*text)
			return nil
		}
	}
	if of.Regex != nil {
		if c.patterns++; c.patterns > maxPatterns || len(*of.Regex) > maxPattern {
			return fmt.Errorf("more than %d regular expressions, or one of more than %d bytes", maxPatterns, maxPattern)
		}
		of.pattern, err = regexp.Compile(*of.Regex)
		return err
	}
	for _, one := range slices.Concat(of.Or, of.And) {
		err = cmp.Or(err, c.clause(one, depth+1))
	}
	if len(of.Or)+len(of.And) == 0 {
		err = errors.New("it is none of equals, starts_with, ends_with, contains, regex, or, and")
	}
	return err
}
