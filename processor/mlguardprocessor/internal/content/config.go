package content

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"
)

// Config is the section content of ml_guard's configuration.
type Config struct {
	// Keep lists attribute keys whose values leave as they are but for secrets,
	// in addition to the allow-list. A key that ends in "*" stands for all that begin so. Two
	// names that are no keys can be listed, too: "body", the bodies of log
	// records, and "status.message", the descriptions of spans' statuses. The
	// default is none.
	Keep []string `mapstructure:"keep"`

	// Remove lists attribute keys whose values do not leave, whatever their type,
	// although they are on the allow-list or have the form of an id or a number.
	// A key that ends in "*" stands for all that begin so. The default is none.
	Remove []string `mapstructure:"remove"`

	// Names lists names of spans, of their events, of log events and of scopes
	// that leave as they are, in addition to those that are known. A name that
	// ends in "*" stands for all that begin so. The default is none.
	Names []string `mapstructure:"names"`

	// HashKey is the key of the hash that stands for a text on metrics, where
	// series that differ by that text have to stay apart. While it is empty,
	// which is the default, each process makes a key of its own, so that a
	// restart renames these labels. Use 32 random bytes from a secret store.
	HashKey configopaque.String `mapstructure:"hash_key"`
}

// Validate reports the first value that is not allowed, with its key.
func (c *Config) Validate() error {
	for _, list := range []struct {
		name    string
		entries []string
	}{{"keep", c.Keep}, {"remove", c.Remove}, {"names", c.Names}} {
		for i, entry := range list.entries {
			if start, _ := strings.CutSuffix(entry, "*"); start == "" || strings.Contains(start, "*") {
				return fmt.Errorf("%s[%d] is %q: it must be a name, or the beginning of names with one * at its end", list.name, i, entry)
			}
		}
	}
	for i, entry := range c.Remove {
		if slices.Contains(c.Keep, entry) {
			return fmt.Errorf("remove[%d] is %q, which keep lists, too: it must be in one of them", i, entry)
		}
	}
	return nil
}
