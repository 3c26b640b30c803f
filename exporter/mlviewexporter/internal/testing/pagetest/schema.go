package pagetest

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/schema"
)

// Schema returns the schema of a definition. Formats are checked.
func Schema(t testing.TB, reference string) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.State))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("state.json", document))
	out, err := compiler.Compile("state.json" + reference)
	require.NoError(t, err)
	return out
}
