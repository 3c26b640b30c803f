package pythoncall

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// FuzzCallInParts: whatever the parts are, the SPEC is JSON and holds them.
func FuzzCallInParts(f *testing.F) {
	f.Add("statistics", "mean", "[[]]", "{}", "a.b.C.d")
	f.Add("", "'''", "{", "[1e999,NaN]", "..")
	f.Fuzz(func(t *testing.T, module, function, args, kwargs, named string) {
		attributes := pcommon.NewMap()
		for k, v := range map[string]string{"python_module": module, "function": function, "args": args, "kwargs": kwargs, "code.function.name": named} {
			attributes.PutStr(k, v)
		}
		call, reason := (&reader{}).call(attributes)
		require.NotEqual(t, call == nil, reason == "")
		if call != nil {
			assert.NotEmpty(t, call.Module)
			assert.NotEmpty(t, call.Function)
		}
		_, err := json.Marshal(reason)
		require.NoError(t, err)
	})
}
