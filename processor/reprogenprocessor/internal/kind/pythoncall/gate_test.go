package pythoncall

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckEntry(t *testing.T) {
	for _, entry := range []string{"app", "app.models", "app.*", "app.models.*", "app:run", "app.models:Net.forward", "_private.mod", "builtinsx", "os:system"} {
		require.NoError(t, CheckEntry(entry), entry)
	}
	for entry, told := range map[string]string{
		"": "pkg.mod", "*": "pkg.mod", ".app": "pkg.mod", "app.": "pkg.mod", "app..models": "pkg.mod", "app*": "pkg.mod",
		"app.*:run": "pkg.mod", "app:": "pkg.mod", "app:*": "pkg.mod", "app:run:run": "pkg.mod", "1app": "pkg.mod",
		"app\n": "pkg.mod", "\u0430pp": "pkg.mod", "app models": "pkg.mod", "app/models": "pkg.mod",
		"builtins": "builtins", "builtins.*": "builtins", "builtins:eval": "builtins", "types:FunctionType": "types", "__main__": "__main__",
	} {
		assert.ErrorContains(t, CheckEntry(entry), told, "%q", entry)
	}
}
