package pythoncall

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// parts are those of a call that its client sends each by itself. Named is the name of
// the function by the conventions' code attributes.
type parts struct{ Library, Module, Function, CallType, Named, Args, Kwargs string }

func (p parts) attributes() pcommon.Map {
	attributes := pcommon.NewMap()
	for key, text := range map[string]string{
		"library": p.Library, "python_module": p.Module, "function": p.Function, "call_type": p.CallType,
		"code.function.name": p.Named, "args": p.Args, "kwargs": p.Kwargs,
	} {
		attributes.PutStr(key, text)
	}
	return attributes
}

func TestOfParts(t *testing.T) {
	const list = "[1]"
	for name, tc := range map[string]struct {
		parts  parts
		target string
		tree   string
		reason failure.Reason
	}{
		"all":                           {parts{Library: "a", Module: "a.b", Function: "f", CallType: "class", Args: list, Kwargs: `{"k":true}`}, "a.b:f", `{"library":"a","python_module":"a.b","function":"f","args":[1],"kwargs":{"k":true},"call_type":"class"}`, ""},
		"the library alone":             {parts{Library: "a", Function: "f", Args: list}, "a:f", `{"library":"a","function":"f","args":[1]}`, ""},
		"the name alone":                {parts{Named: "a.b.f", Args: list}, "a.b:f", `{"python_module":"a.b","function":"f","args":[1]}`, ""},
		"a method":                      {parts{Named: "a.b.Model.build", Args: list}, "a.b:Model.build", `{"python_module":"a.b","function":"Model.build","args":[1]}`, ""},
		"a private class":               {parts{Named: "a._Model.build", Args: list}, "a:_Model.build", `{"python_module":"a","function":"_Model.build","args":[1]}`, ""},
		"the function, and the name":    {parts{Function: "Model.build", Named: "a.b.Model.build", Args: list}, "a.b:Model.build", `{"python_module":"a.b","function":"Model.build","args":[1]}`, ""},
		"the module, and the name":      {parts{Module: "a", Named: "a.b.f", Args: list}, "a:b.f", `{"python_module":"a","function":"b.f","args":[1]}`, ""},
		"another function's name":       {parts{Function: "g", Named: "a.b.f", Args: list}, "", "", failure.NoTarget},
		"another module's name":         {parts{Module: "c", Named: "a.b.f", Args: list}, "", "", failure.NoTarget},
		"a name without a module":       {parts{Named: "f", Args: list}, "", "", failure.NoTarget},
		"a class without a module":      {parts{Named: "Model.build", Args: list}, "Model:build", `{"python_module":"Model","function":"build","args":[1]}`, ""},
		"a function inside of another":  {parts{Named: "a.f.<locals>.g", Args: list}, "", "", failure.NoTarget},
		"a name of another language":    {parts{Named: "GET /users", Args: list}, "", "", failure.NoTarget},
		"no name":                       {parts{Args: list}, "", "", failure.NoTarget},
		"arguments that are no list":    {parts{Module: "a", Function: "f", Args: `"x"`}, "", "", failure.Invalid},
		"keywords that are no map":      {parts{Module: "a", Function: "f", Kwargs: list}, "", "", failure.Invalid},
		"a keyword twice":               {parts{Module: "a", Function: "f", Kwargs: `{"k":true,"k":false}`}, "", "", failure.Ambiguous},
		"a key twice, further in":       {parts{Module: "a", Function: "f", Args: `[{"k":true,"k":false}]`}, "", "", failure.Ambiguous},
		"dots and nothing between them": {parts{Named: "...", Args: list}, "..:", "", failure.NoTarget},
	} {
		t.Run(name, func(t *testing.T) {
			call, reason := callOfParts(tc.parts.attributes())
			assert.Equal(t, tc.reason, reason)
			if tc.reason != "" {
				assert.Nil(t, call)
				return
			}
			assert.Equal(t, tc.target, call.Target())
			assert.Equal(t, tc.tree, string(jsontree.Encode(call.Tree)))
		})
	}
}

// TestTargetFromTheSpan: a payload keeps what it says, and takes only what it
// lacks.
func TestTargetFromTheSpan(t *testing.T) {
	call, reason := Decode(`{"args":[1]}`, Declared{Size: -1}, "app.model.predict")
	assert.Empty(t, reason)
	assert.Equal(t, jsontree.Of("python_module", "app.model", "function", "predict", "args", jsontree.Array{jsontree.Int(1)}), call.Tree)
	call, reason = Decode(`{"python_module":"m","function":"f"}`, Declared{Size: -1}, "app.model.predict")
	assert.Empty(t, reason)
	assert.Equal(t, "m:f", call.Target())
	_, reason = Decode(`{"args":[1]}`, Declared{Size: -1}, "")
	assert.Equal(t, failure.NoTarget, reason)
}
