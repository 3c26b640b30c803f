package mlguardextension

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	_ "github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/decompress" // bounds what each server decompresses
	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/metadata"
)

// NewFactory returns the factory of the ml_guard extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func createDefaultConfig() component.Config {
	return &Config{MaxDepth: 1_000, MaxMessages: 250_000, MaxMemoryMiB: 64, FailoverAfter: 8 * time.Second}
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return newGuard(set, cfg.(*Config))
}
