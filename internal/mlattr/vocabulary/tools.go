package vocabulary

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"

// IsToolArguments reports whether an attribute's key is that of what a tool was
// called with, on a span that executes one. It costs next to nothing for most
// other keys.
func IsToolArguments(key string) bool { return toolArguments.has(key) }

var toolArguments = keySetOf(collectKeys(func(t *table.Table) []string { return t.ToolArguments }))
