package mlenrichprocessor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxResourceLabels bounds the labels that every metric point may gain.
const maxResourceLabels = 32

// maxMinDuration and maxScopes bound what is configured about rates.
const (
	maxMinDuration = time.Minute
	maxScopes      = 32
)

// Config is the configuration of ml_enrich. The defaults are right for the
// clients that it knows: "ml_enrich:" alone is a complete configuration.
type Config struct {
	// Vocabularies selects the clients whose names are understood:
	// torchtel, tuft, snakepit, fx, taskweaver and genai. The default is all
	// of them. An empty list leaves the canonical names and the aliases
	// only.
	Vocabularies []string `mapstructure:"vocabularies"`

	// Aliases says what a client's own attributes mean: from the
	// attribute's key to the canonical attribute that is added beside it, on
	// resources, spans, metric points and log records. Aliases are tried
	// before the vocabularies. The default is none.
	Aliases map[string]string `mapstructure:"aliases"`

	// ResourceLabels lists resource attributes that are copied onto every
	// metric point of the resource, so that they become labels in
	// Prometheus. A point's own attribute of that name wins. The default is
	// none, and at most 32 are allowed: each multiplies what a metrics back
	// end has to store.
	ResourceLabels []string `mapstructure:"resource_labels"`

	// HashKey turns users' names into ml.user, the first 16 hexadecimal
	// digits of an HMAC-SHA256 with this key: the same user has the same
	// value wherever the key is the same, and the name cannot be found by
	// trying names without the key. While it is empty, which is the default,
	// there is no ml.user. Use 32 random bytes from a secret store.
	HashKey configopaque.String `mapstructure:"hash_key"`

	// MinDuration is the shortest duration that a rate is derived from.
	// What is shorter gets none and is counted: there the resolution of the
	// client's clock decides. The default is 1ms; zero allows every duration
	// that is not zero itself.
	MinDuration time.Duration `mapstructure:"min_duration"`

	// InputWithoutCache lists beginnings of the names of instrumentation
	// scopes whose input tokens leave out those that a cache gave or took.
	// The conventions count them in, and where they are more than the input
	// it is seen that a client does not; otherwise it cannot be seen. Rates
	// are derived from the sum. The default is none, and at most 32 are
	// allowed.
	InputWithoutCache []string `mapstructure:"input_without_cache"`
}

// Validate reports everything that is wrong with the configuration.
func (c *Config) Validate() error {
	var errs []error
	for _, name := range c.Vocabularies {
		if _, ok := mlattr.ParseSystem(name); !ok {
			errs = append(errs, fmt.Errorf(`"vocabularies": unknown vocabulary %q, must be one of %s`,
				name, quoted(mlattr.SystemNames())))
		}
	}
	allowed := mlattr.Aliasable()
	for _, source := range sortedKeys(c.Aliases) {
		canonical := c.Aliases[source]
		switch {
		case strings.TrimSpace(source) == "":
			errs = append(errs, fmt.Errorf(`"aliases": the key for %q is empty, must be an attribute's name`, canonical))
		case !slices.Contains(allowed, canonical):
			errs = append(errs, fmt.Errorf(`"aliases": %q means %q, must be one of %s`, source, canonical, quoted(allowed)))
		case source == canonical:
			errs = append(errs, fmt.Errorf(`"aliases": %q means itself, must name another attribute`, source))
		}
	}
	seen := make(map[string]bool)
	for _, label := range c.ResourceLabels {
		switch {
		case strings.TrimSpace(label) == "":
			errs = append(errs, fmt.Errorf(`"resource_labels": %q is empty, must be an attribute's name`, label))
		case seen[label]:
			errs = append(errs, fmt.Errorf(`"resource_labels": %q is listed twice, must be listed once`, label))
		}
		seen[label] = true
	}
	if c.MinDuration < 0 || c.MinDuration > maxMinDuration {
		errs = append(errs, fmt.Errorf(`"min_duration": %v, must be from 0s to %v`, c.MinDuration, maxMinDuration))
	}
	for _, scope := range c.InputWithoutCache {
		if strings.TrimSpace(scope) == "" {
			errs = append(errs, fmt.Errorf(`"input_without_cache": %q is empty, must begin a scope's name`, scope))
		}
	}
	if n := len(c.InputWithoutCache); n > maxScopes {
		errs = append(errs, fmt.Errorf(`"input_without_cache": has %d entries, must have at most %d`, n, maxScopes))
	}
	if n := len(c.ResourceLabels); n > maxResourceLabels {
		errs = append(errs, fmt.Errorf(`"resource_labels": has %d entries, must have at most %d`, n, maxResourceLabels))
	}
	return errors.Join(errs...)
}

// reader compiles the configured vocabulary.
func (c *Config) reader() (*mlattr.Reader, error) {
	var systems mlattr.System
	for _, name := range c.Vocabularies {
		system, _ := mlattr.ParseSystem(name)
		systems |= system
	}
	return mlattr.NewReader(mlattr.Options{Systems: systems, Aliases: c.Aliases})
}

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(list, ", ")
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
