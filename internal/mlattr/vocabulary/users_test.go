package vocabulary_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// TestUsers shows that each key of a user is read where its client is known,
// and is written nowhere as it is.
func TestUsers(t *testing.T) {
	known := map[string]map[string]any{
		"user":        {"service.name": "torchtel"},
		"oai.user_id": {"service.name": "tuft"},

		"metadata.user_api_key_end_user_id": {"service.name": "litellm"},
	}
	seen := 0
	for _, client := range vocabulary.Tables() {
		for _, alias := range client.Span {
			if alias.Canonical != mlattr.User {
				continue
			}
			seen++
			assert.Equal(t, table.KindSecret, alias.Kind, "%s of %s would be written as it is", alias.Source, client.Name)
			_, f := readSpan(t, known[alias.Source], map[string]any{alias.Source: "ada"})
			assert.Equal(t, "ada", f.Text(mlattr.User), alias.Source)
			assert.Empty(t, written(f)[mlattr.User], alias.Source)
		}
		for _, alias := range client.Resource {
			if alias.Canonical == mlattr.User {
				assert.Equal(t, table.KindSecret, alias.Kind, "%s of %s would be written as it is", alias.Source, client.Name)
			}
		}
		for _, alias := range client.Point {
			assert.NotEqual(t, mlattr.User, alias.Canonical, "a user is no label: %s", client.Name)
		}
	}
	assert.Equal(t, 16, seen)
}

// TestUserOfAResource shows that a resource's user is read, and that the
// client's own name for one comes first.
func TestUserOfAResource(t *testing.T) {
	for name, tt := range map[string]struct {
		attrs map[string]any
		want  string
	}{
		"the conventions'":       {map[string]any{"user.id": "ada", "enduser.id": "bob"}, "ada"},
		"the conventions' older": {map[string]any{"enduser.id": "bob"}, "bob"},
		"a number":               {map[string]any{"user.id": 1000}, "1000"},
		"TorchTel's":             {map[string]any{"service.name": "torchtel", "user": "eve", "user.id": "ada"}, "eve"},
		"a stranger's":           {map[string]any{"user": "eve"}, ""},
	} {
		res := pcommon.NewMap()
		require.NoError(t, res.FromRaw(tt.attrs), name)
		var f vocabulary.Facts
		vocabulary.Default().Resource(res, &f)
		assert.Equal(t, tt.want, f.Text(mlattr.User), name)
	}
	_, f := readSpan(t, nil, map[string]any{"langfuse.user.id": "eve", "user.id": "ada"})
	assert.Equal(t, "eve", f.Text(mlattr.User), "the client's own name")
	_, f = readSpan(t, nil, map[string]any{"mlflow.trace.user": `"eve"`})
	assert.Equal(t, "eve", f.Text(mlattr.User), "without the quotes of JSON")
	assert.Zero(t, f.Rejected)
}

// TestUsersGiveNobodyAway shows that a key that anyone may send says nothing
// about whose span it is.
func TestUsersGiveNobodyAway(t *testing.T) {
	_, f := readSpan(t, nil, map[string]any{"user.id": "ada", "enduser.id": "ada", "enduser.pseudo.id": "7"})
	assert.Zero(t, f.Systems)
}
