package withhold

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"
)

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
