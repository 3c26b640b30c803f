package mlguardprocessor

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/identity"
)

// Config is the configuration of ml_guard.
type Config struct {
	// Bounds limits nesting, sizes and numbers of values. It always applies.
	Bounds bounds.Config `mapstructure:"bounds"`
	// RetryAfter is the delay after which a sender whose request was refused for
	// the moment shall send it again: gRPC's RetryInfo and HTTP's Retry-After say
	// it where the refusal does not, in whole seconds. The default is 5s. Zero
	// leaves refusals as they are.
	RetryAfter time.Duration `mapstructure:"retry_after"`
	// Identities admits identities to labels. It applies where the section is
	// present.
	Identities configoptional.Optional[identity.Config] `mapstructure:"identities"`
	// Content removes text that no list allows. It applies where the section
	// is present.
	Content configoptional.Optional[content.Config] `mapstructure:"content"`
}

// Validate reports values that are not allowed, with their keys. The sections
// report their own.
func (c *Config) Validate() error {
	if c.RetryAfter < 0 || c.RetryAfter > time.Hour || c.RetryAfter%time.Second != 0 {
		return fmt.Errorf("%q is %s; it must be whole seconds between 0s and 1h", "retry_after", c.RetryAfter)
	}
	return nil
}
