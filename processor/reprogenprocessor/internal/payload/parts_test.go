package payload

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

func TestOfParts(t *testing.T) {
	list := jsontree.Array{jsontree.Int(1)}
	for name, tc := range map[string]struct {
		parts  Parts
		target string
		tree   string
		reason Reason
	}{
		"all":                           {Parts{Library: "a", Module: "a.b", Function: "f", CallType: "class", Args: list, Kwargs: jsontree.Of("k", true)}, "a.b:f", `{"library":"a","python_module":"a.b","function":"f","args":[1],"kwargs":{"k":true},"call_type":"class"}`, ""},
		"the library alone":             {Parts{Library: "a", Function: "f", Args: list}, "a:f", `{"library":"a","function":"f","args":[1]}`, ""},
		"the name alone":                {Parts{Named: "a.b.f", Args: list}, "a.b:f", `{"python_module":"a.b","function":"f","args":[1]}`, ""},
		"a method":                      {Parts{Named: "a.b.Model.build", Args: list}, "a.b:Model.build", `{"python_module":"a.b","function":"Model.build","args":[1]}`, ""},
		"a private class":               {Parts{Named: "a._Model.build", Args: list}, "a:_Model.build", `{"python_module":"a","function":"_Model.build","args":[1]}`, ""},
		"the function, and the name":    {Parts{Function: "Model.build", Named: "a.b.Model.build", Args: list}, "a.b:Model.build", `{"python_module":"a.b","function":"Model.build","args":[1]}`, ""},
		"the module, and the name":      {Parts{Module: "a", Named: "a.b.f", Args: list}, "a:b.f", `{"python_module":"a","function":"b.f","args":[1]}`, ""},
		"another function's name":       {Parts{Function: "g", Named: "a.b.f", Args: list}, "", "", NoTarget},
		"another module's name":         {Parts{Module: "c", Named: "a.b.f", Args: list}, "", "", NoTarget},
		"a name without a module":       {Parts{Named: "f", Args: list}, "", "", NoTarget},
		"a class without a module":      {Parts{Named: "Model.build", Args: list}, "Model:build", `{"python_module":"Model","function":"build","args":[1]}`, ""},
		"a function inside of another":  {Parts{Named: "a.f.<locals>.g", Args: list}, "", "", NoTarget},
		"a name of another language":    {Parts{Named: "GET /users", Args: list}, "", "", NoTarget},
		"no name":                       {Parts{Args: list}, "", "", NoTarget},
		"arguments that are no list":    {Parts{Module: "a", Function: "f", Args: "x"}, "", "", Invalid},
		"keywords that are no map":      {Parts{Module: "a", Function: "f", Kwargs: list}, "", "", Invalid},
		"a keyword twice":               {Parts{Module: "a", Function: "f", Kwargs: jsontree.Of("k", true, "k", false)}, "", "", Ambiguous},
		"a key twice, further in":       {Parts{Module: "a", Function: "f", Args: jsontree.Array{jsontree.Of("k", true, "k", false)}}, "", "", Ambiguous},
		"dots and nothing between them": {Parts{Named: "...", Args: list}, "..:", "", NoTarget},
	} {
		t.Run(name, func(t *testing.T) {
			call, reason := OfParts(tc.parts)
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
	assert.Equal(t, NoTarget, reason)
}
