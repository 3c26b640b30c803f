package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

func TestTextNotesWhere(t *testing.T) {
	var r Redactor
	assert.Equal(t, "DB_PASS=<REDACTED:assignment> <REDACTED:github_token>", r.Text("span.name", "DB_PASS=hunter2 ghp_0123456789abcdef0123456789"))
	assert.Equal(t, []Path{{"span.name", "github_token"}, {"span.name", "assignment"}}, r.Paths)
}

func TestTree(t *testing.T) {
	in := jsontree.Of(
		"password", "hunter2",
		"credentials", jsontree.Of("user", "x"),
		"token", jsontree.Number("5"),
		"use_auth_token", true,
		"pin_secret", jsontree.Number("1234"),
		"nested", jsontree.Array{jsontree.Of("api_key", "k"), "--password", "hunter2", "--epochs", "3"},
		"pair", jsontree.Array{"password", "hunter2"},
		"ghp_0123456789abcdef0123456789", "a secret as a key",
	)
	assert.Equal(t, jsontree.Array{jsontree.Of("name", "DB_PASSWORD", "value", "<REDACTED:key>"), jsontree.Of("name", "size", "value", "x")},
		(&Redactor{}).Tree("env", jsontree.Array{jsontree.Of("name", "DB_PASSWORD", "value", "hunter2"), jsontree.Of("name", "size", "value", "x")}))
	assert.Equal(t, jsontree.Of("__type__", "dict", "pairs", jsontree.Array{jsontree.Array{"password", "<REDACTED:key>"}}),
		(&Redactor{}).Tree("args", jsontree.Of("__type__", "dict", "pairs", jsontree.Array{jsontree.Array{"password", "hunter2"}})))
	var r Redactor
	want := jsontree.Of(
		"password", "<REDACTED:key>",
		"credentials", "<REDACTED:key>",
		"token", jsontree.Number("5"),
		"use_auth_token", true,
		"pin_secret", "<REDACTED:key>",
		"nested", jsontree.Array{jsontree.Of("api_key", "<REDACTED:key>"), "--password", "<REDACTED:argument>", "--epochs", "3"},
		"pair", jsontree.Array{"password", "<REDACTED:key>"},
		"<REDACTED:github_token>", "a secret as a key",
	)
	assert.Equal(t, want, r.Tree("args", in))
	assert.Contains(t, r.Paths, Path{"args.nested[0].api_key", "key"})
	assert.Contains(t, r.Paths, Path{"args.password", "key"})
	assert.Len(t, r.Paths, 7)
}

// A long key above many secrets must not be written down for each of them.
func TestPathsAreBounded(t *testing.T) {
	secrets := make(jsontree.Array, 1000)
	for i := range secrets {
		secrets[i] = "password=hunter2"
	}
	var r Redactor
	r.Tree("payload", jsontree.Of(strings.Repeat("k", 64<<10), jsontree.Array{jsontree.Of(strings.Repeat("l", 64<<10), secrets)}))
	assert.Len(t, r.Paths, len(secrets))
	for _, p := range r.Paths {
		assert.LessOrEqual(t, len(p.Where), 2*maxPath)
	}
}
