// Package withhold exports text by the allow-list of internal/content: text that is not
// known to be a name, an id or a number is replaced by its length, and on metrics by a
// keyed hash.
package withhold

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Filter applies one Config. It is safe for concurrent use.
type Filter struct {
	keys    *content.Keys
	names   *content.Names
	known   knownNames
	hashKey []byte
}

// New returns a Filter.
func New(cfg *Config) *Filter {
	f := &Filter{keys: content.NewKeys(cfg.Keep, cfg.Remove), names: content.NewNames(cfg.Names), known: knownNames{seed: maphash.MakeSeed()}, hashKey: []byte(cfg.HashKey)}
	if len(f.hashKey) == 0 {
		f.hashKey = processKey()
	}
	return f
}

// Traces changes td in place. It returns the number of texts, keys and other values that
// were replaced.
func (f *Filter) Traces(td ptrace.Traces) (replaced int64) {
	w := walker{Filter: f}
	for _, rs := range td.ResourceSpans().All() {
		w.resource(rs.Resource())
		w.schema(rs)
		for _, ss := range rs.ScopeSpans().All() {
			w.scope(ss.Scope())
			w.schema(ss)
			for _, span := range ss.Spans().All() {
				w.span(span)
			}
		}
	}
	return w.replaced
}

// Metrics changes md in place, as Traces does.
func (f *Filter) Metrics(md pmetric.Metrics) (replaced int64) {
	w := walker{Filter: f, hashed: true}
	for _, rm := range md.ResourceMetrics().All() {
		w.resource(rm.Resource())
		w.schema(rm)
		for _, sm := range rm.ScopeMetrics().All() {
			w.scope(sm.Scope())
			w.schema(sm)
			for _, metric := range sm.Metrics().All() {
				w.metric(metric)
			}
		}
	}
	return w.replaced
}

// Logs changes ld in place, as Traces does.
func (f *Filter) Logs(ctx context.Context, ld plog.Logs) (replaced int64) {
	w := walker{Filter: f, concluded: mlattr.IsConcluded(ctx)}
	for _, rl := range ld.ResourceLogs().All() {
		w.resource(rl.Resource())
		w.schema(rl)
		for _, sl := range rl.ScopeLogs().All() {
			w.scope(sl.Scope())
			w.schema(sl)
			for _, record := range sl.LogRecords().All() {
				w.record(record)
			}
		}
	}
	return w.replaced
}

// Config is the section content of ml_guard's configuration.
type Config struct {
	// Keep lists attribute keys whose text is exported, except secrets, in
	// addition to the allow-list. A key that ends in "*" matches all keys with
	// that prefix. "body" stands for the bodies of log records and
	// "status.message" for the descriptions of span statuses. The default is
	// none.
	Keep []string `mapstructure:"keep"`

	// Remove lists attribute keys whose values are never exported, whatever
	// their type. It takes precedence over the allow-list and over the forms of
	// ids and numbers. A key that ends in "*" matches all keys with that
	// prefix. The default is none.
	Remove []string `mapstructure:"remove"`

	// Names lists names of spans, span events, log events and scopes that are
	// exported, in addition to the known ones. A name that ends in "*" matches
	// all names with that prefix. The default is none.
	Names []string `mapstructure:"names"`

	// HashKey is the key of the hashes that replace text on metrics, which keep
	// series distinct. If it is empty, the default, each process generates a
	// random key, so that a restart changes these labels. Use 32 random bytes
	// from a secret store.
	HashKey configopaque.String `mapstructure:"hash_key"`
}

// Validate returns an error that names the first invalid entry.
func (c *Config) Validate() error {
	for _, list := range []struct {
		name    string
		entries []string
	}{{"keep", c.Keep}, {"remove", c.Remove}, {"names", c.Names}} {
		for i, entry := range list.entries {
			if start, _ := strings.CutSuffix(entry, "*"); start == "" || strings.Contains(start, "*") {
				return fmt.Errorf("%s[%d] is %q: it must be a name or a prefix with one * at its end", list.name, i, entry)
			}
		}
	}
	for i, entry := range c.Remove {
		if slices.Contains(c.Keep, entry) {
			return fmt.Errorf("remove[%d] is %q, which keep lists too: remove it from one of the lists", i, entry)
		}
	}
	return nil
}
