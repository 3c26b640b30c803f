package mlguardprocessor

import (
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/identity"
)

// Config is the configuration of ml_guard.
type Config struct {
	// Bounds limits nesting, sizes and numbers of values. It always applies.
	Bounds bounds.Config `mapstructure:"bounds"`
	// Identities admits identities to labels. It applies where the section is
	// present.
	Identities configoptional.Optional[identity.Config] `mapstructure:"identities"`
	// Content removes text that no list allows. It applies where the section
	// is present.
	Content configoptional.Optional[content.Config] `mapstructure:"content"`
}
