package reprogenprocessor

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// queried is the span of a database's client whose statement failed.
func queried(system, query string, more map[string]any) failedCall {
	attrs := map[string]any{"db.system.name": system, "db.query.text": query}
	maps.Copy(attrs, more)
	return failedCall{name: "SELECT", attrs: attrs, errorType: "psycopg.errors.UndefinedTable", message: "relation does not exist"}
}

// TestStatements: no script runs a statement, whatever it calls, and no flag
// permits it. A person finds it, its parameters and the database's name.
func TestStatements(t *testing.T) {
	for _, query := range []string{
		"SELECT * FROM customers WHERE id = $1",
		`SELECT U&"pg_!0072ead_file" UESCAPE '!' ('/etc/passwd')`,
		"SELECT E'a\\'\n'b', pg_read_file('/etc/passwd') --'",
	} {
		cfg := testConfig(t)
		produce(t, cfg, queried("postgresql", query, map[string]any{
			"db.namespace": "features", "server.address": "db.internal", "db.query.parameter.0": "run-7", "db.query.parameter.key": "sk-proj-0123456789abcdefghij0123",
		}).traces())
		artifact := onlyArtifact(t, cfg)
		assert.Contains(t, specText(t, artifact), `"reason": "statement"`)
		py := pythons(t)[0]
		info := py.run(t, artifact, nil, "--info")
		assert.Equal(t, 5, info.Exit)
		assert.Contains(t, info.Stderr, "features")
		for _, flags := range [][]string{{"--allow-side-effects"}, {"--allow-unsafe", "--allow-side-effects"}} {
			assert.Equal(t, 5, py.run(t, artifact, nil, flags...).Exit)
		}
		assert.Equal(t, 2, py.run(t, artifact, nil, "--dsn", "x.db").Exit)

		var trace struct {
			Span struct{ Attributes map[string]string }
		}
		require.NoError(t, json.Unmarshal([]byte(text(t, artifact, "trace.json")), &trace))
		assert.Equal(t, query, trace.Span.Attributes["db.query.text"])
		assert.Equal(t, "run-7", trace.Span.Attributes["db.query.parameter.0"])
		assert.Equal(t, "features", trace.Span.Attributes["db.namespace"])
		report := text(t, artifact, "report.md")
		_, section, _ := strings.Cut(report, "## Statement\n")
		for _, shown := range []string{"READ ONLY", `"database": "features"`, `"query": "SELECT `, `"0": "run-7"`} {
			assert.Contains(t, section, shown)
		}
		assert.NotContains(t, report+specText(t, artifact), "sk-proj-0123456789")
	}
}

// TestWhatIsAStatement: what can be replayed is more than a statement.
func TestWhatIsAStatement(t *testing.T) {
	for name, tc := range map[string]struct {
		failedCall
		want string
	}{
		"of a store without SQL": {queried("redis", "GET x", nil), `"reason": "statement"`},
		"by its old name":        {failedCall{name: "q", attrs: map[string]any{"db.statement": "SELECT 1"}}, `"reason": "statement"`},
		"nothing":                {queried("sqlite", " ", nil), `"reason": "no_payload"`},
		"of a training":          {queried("sqlite", "SELECT 1", trained([]any{"train.py"}, nil).attrs), `"kind": "train_step"`},
		"beside a call":          {failedCall{payload: mean().payload, attrs: map[string]any{"db.statement": "SELECT 1"}}, `"kind": "python_call"`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, specText(t, script(t, tc.failedCall)), tc.want)
		})
	}
}
