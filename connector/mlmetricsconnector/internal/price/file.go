// Package price says what requests to models and GPUs cost, in US dollars. It
// reads a file of prices in the form of genai-prices, and rates the tokens of a
// request by it.
package price

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// maxSize limits a file. That of genai-prices has 0.4 MB, 36 providers and 1,500 models.
	maxSize = 16 << 20
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

// UnmarshalJSON reads a provider.
func (p *provider) UnmarshalJSON(data []byte) error {
	type plain provider
	err := errors.Join(json.Unmarshal(data, (*plain)(p)), p.Of.check(), p.Own.check())
	if p.ID = strings.ToLower(p.ID); err != nil {
		return fmt.Errorf("provider %.80q: %w", p.ID, err)
	}
	return nil
}

// Model is a model with its prices. Of those that hold, the last counts; if none
// holds, the first does.
type Model struct {
	ID     string  `json:"id"`
	Match  *clause `json:"match"`
	Prices sets    `json:"prices"`
}

// UnmarshalJSON reads a model, which must have prices.
func (m *Model) UnmarshalJSON(data []byte) error {
	type plain Model
	err := errors.Join(json.Unmarshal(data, (*plain)(m)), m.Match.check())
	if err == nil && m.Prices == nil {
		err = errors.New(`"prices" is missing`)
	}
	if err != nil {
		return fmt.Errorf("model %.80q: %w", m.ID, err)
	}
	return nil
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

// conditional are prices that hold when their constraint does.
type conditional struct {
	Constraint *constraint `json:"constraint"`
	Prices     prices      `json:"prices"`
}

// constraint says from which day on prices hold, or at which time of the day.
type constraint struct {
	from time.Time
	// daily reports whether they hold from begin to end, after midnight UTC.
	daily      bool
	begin, end time.Duration
}

// UnmarshalJSON reads both forms. A time of day is such as 16:30:00Z.
func (c *constraint) UnmarshalJSON(data []byte) error {
	var is struct {
		StartDate string `json:"start_date"`
		StartTime string `json:"start_time"`
		EndTime   string `json:"end_time"`
	}
	err := json.Unmarshal(data, &is)
	if err != nil {
		return err
	}
	if is.StartDate != "" {
		c.from, err = time.Parse(time.DateOnly, is.StartDate)
		return err
	}
	begin, err := time.Parse("15:04:05Z07:00", is.StartTime)
	end, noEnd := time.Parse("15:04:05Z07:00", is.EndTime)
	c.daily, c.begin, c.end = true, sinceMidnight(begin), sinceMidnight(end)
	return errors.Join(err, noEnd)
}

// holds reports whether the prices of a constraint, which may be nil, hold at a time.
func (c *constraint) holds(at time.Time) bool {
	switch {
	case c == nil:
		return true
	case !c.daily:
		return !at.Before(c.from)
	}
	day := sinceMidnight(at)
	return c.begin <= day && day < c.end
}

// sinceMidnight returns the time after midnight UTC.
func sinceMidnight(at time.Time) time.Duration {
	return at.UTC().Sub(at.UTC().Truncate(24 * time.Hour))
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

// UnmarshalJSON reads a number, or a price with tiers, and checks whether it is plausible.
func (t *tiered) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &t.Base) != nil {
		type plain tiered
		if err := json.Unmarshal(data, (*plain)(t)); err != nil {
			return err
		}
	}
	believable := func(price float64) bool { return price >= 0 && price <= maxPrice }
	if !believable(t.Base) {
		return fmt.Errorf("the price %v is not between 0 and %g", t.Base, float64(maxPrice))
	}
	for i, one := range t.Tiers {
		if !believable(one.Price) || one.Start < 0 || i > 0 && one.Start <= t.Tiers[i-1].Start {
			return fmt.Errorf("the tier from %d at %v does not begin above the one before, or its price is not between 0 and %g", one.Start, one.Price, float64(maxPrice))
		}
	}
	return nil
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
		return nil, fmt.Errorf("it cannot be read as a list of providers in the form of genai-prices: %w", err)
	}
	if !slices.ContainsFunc(all, func(p provider) bool { return len(p.Models) > 0 }) {
		return nil, errors.New("it has no model")
	}
	return all, nil
}

// lower is a text in lower case.
type lower string

// UnmarshalText reads a text in any case.
func (l *lower) UnmarshalText(text []byte) error {
	*l = lower(strings.ToLower(string(text)))
	return nil
}

// clause is what names match: one of its fields is set. A nil clause matches none. A regular
// expression is used once for each name of a model and never for a span.
type clause struct {
	Equals     *lower         `json:"equals"`
	StartsWith *lower         `json:"starts_with"`
	EndsWith   *lower         `json:"ends_with"`
	Contains   *lower         `json:"contains"`
	Regex      *regexp.Regexp `json:"regex"`
	Or         []*clause      `json:"or"`
	And        []*clause      `json:"and"`
}

// match reports whether a name in lower case matches.
func (c *clause) match(name string) bool {
	switch {
	case c == nil:
		return false
	case c.Equals != nil:
		return name == string(*c.Equals)
	case c.StartsWith != nil:
		return strings.HasPrefix(name, string(*c.StartsWith))
	case c.EndsWith != nil:
		return strings.HasSuffix(name, string(*c.EndsWith))
	case c.Contains != nil:
		return strings.Contains(name, string(*c.Contains))
	case c.Regex != nil:
		return c.Regex.MatchString(name)
	case len(c.Or) > 0:
		return slices.ContainsFunc(c.Or, func(one *clause) bool { return one.match(name) })
	default:
		return !slices.ContainsFunc(c.And, func(one *clause) bool { return !one.match(name) })
	}
}

// check returns an error if a clause, or one in it, has no field that is known.
func (c *clause) check() error {
	if c == nil || c.Equals != nil || c.StartsWith != nil || c.EndsWith != nil || c.Contains != nil || c.Regex != nil {
		return nil
	}
	for _, one := range slices.Concat(c.Or, c.And) {
		if err := one.check(); err != nil {
			return err
		}
	}
	return shared.Check(len(c.Or)+len(c.And) > 0, "a clause is none of equals, starts_with, ends_with, contains, regex, or, and")
}

// CheckPrices is the time between two looks at the file of prices.
const CheckPrices = time.Minute

// File is the file of prices of the configuration, if it names one, that is read again when
// it changes.
type File struct {
	path   string
	logger *zap.Logger
	table  atomic.Pointer[Table]
	// failure is why the file could not be read, "" if it could.
	failure atomic.Pointer[string]
	// size and changed are those of the file that was read last.
	size    int64
	changed time.Time
}

// NewFile returns the file at a path, which may be empty. It does not read it.
func NewFile(path string, logger *zap.Logger) *File { return &File{path: path, logger: logger} }

// Table returns the prices, or nil as long as the file has not been read.
func (f *File) Table() *Table { return f.table.Load() }

// Read reads the file if it has changed since it was read last, and reports
// whether it has. After an error, the earlier prices stay.
func (f *File) Read() (changed bool, err error) {
	info, err := os.Stat(f.path)
	switch {
	case err != nil:
		f.changed = time.Time{} // one that comes back is a change
		return false, err
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is no regular file", f.path)
	case info.Size() == f.size && info.ModTime().Equal(f.changed):
		return false, nil
	}
	file, err := os.Open(filepath.Clean(f.path))
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	// A file that cannot be parsed is not parsed again before it changes.
	f.size, f.changed = info.Size(), info.ModTime()
	providers, err := parse(file)
	if err != nil {
		return true, fmt.Errorf("%s: %.512s", f.path, err.Error()) // it can have a part of the file
	}
	f.table.Store(&Table{providers: providers, date: info.ModTime().UTC().Format(time.DateOnly)})
	return true, nil
}

// Look reads the file, if there is one, and logs if it has changed, or cannot be read for
// another reason. It is not safe for concurrent use.
func (f *File) Look() {
	if f.path == "" {
		return
	}
	changed, err := f.Read()
	failure := ""
	if err != nil {
		failure = err.Error()
	} else if !changed {
		return
	}
	switch last := f.failure.Swap(&failure); {
	case err == nil:
		f.logger.Info("Read the file of prices.", zap.String("file", f.path), zap.String("date", f.Table().Date()))
	case last == nil || *last != failure:
		f.logger.Error("The file of prices could not be read. Earlier prices stay, and it is tried again each minute.", zap.Error(err))
	}
}

// Notices returns what the file does not tell.
func (f *File) Notices(id string) []shared.Notice {
	failure := f.failure.Load()
	if failure == nil || *failure == "" {
		return nil
	}
	return []shared.Notice{{
		Key: "prices", Kind: "disk", What: "Prices of models",
		Why: fmt.Sprintf("The file could not be read: %s.", *failure), Fix: id + ": {prices: {file: <file>}}",
	}}
}
