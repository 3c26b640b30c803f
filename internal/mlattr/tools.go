package mlattr

// IsToolArguments reports whether an attribute's key is that of what a tool was
// called with, on a span that executes one. It costs next to nothing for most
// other keys.
func IsToolArguments(key string) bool { return toolArguments.has(key) }

var toolArguments = keySetOf(collectKeys(func(t *Table) []string { return t.ToolArguments }))
