package reprogenprocessor

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// queried is the span of a database's client whose statement failed.
func queried(system, query string, more map[string]any) failedCall {
	attrs := map[string]any{"db.system.name": system, "db.query.text": query}
	maps.Copy(attrs, more)
	return failedCall{name: "SELECT", attrs: attrs, errorType: "sqlite3.OperationalError", message: "no such table: customers"}
}

// database makes a SQLite file by Python.
func database(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "a b?#%.db")
	cmd := exec.Command(pythons(t)[0].path, "-c", `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.executescript("""CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO users VALUES (1, 'a'), (2, 'b');
CREATE TABLE note (t TEXT); CREATE VIEW both AS SELECT * FROM users;""")
`, path)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// TestStatements runs statements in a real database of SQLite.
func TestStatements(t *testing.T) {
	db := database(t)
	run := []string{"--dsn", db, "--allow-side-effects"}
	with := func(more ...string) []string { return append(more, run...) }
	missing := queried("sqlite", "SELECT * FROM customers", nil)
	query := func(text string) failedCall { return queried("sqlite", text, nil) }
	for name, tc := range map[string]struct {
		failedCall
		args   []string
		env    []string
		exit   int
		reason string
		shown  string
	}{
		"no database":          {failedCall: missing, args: []string{"--allow-side-effects"}, exit: 4, reason: "--dsn"},
		"not without the flag": {failedCall: missing, args: []string{"--dsn", db}, exit: 4, reason: "--allow-side-effects"},
		"a dry run":            {failedCall: missing, args: with("--dry-run"), exit: 0, shown: "    SELECT * FROM customers"},
		"reproduced":           {failedCall: missing, args: run, exit: 1, reason: "no such table: customers"},
		"by the variable":      {failedCall: missing, args: []string{"--allow-side-effects"}, env: []string{"REPRO_DSN=sqlite:///" + db}, exit: 1},
		"repaired":             {failedCall: query("SELECT name FROM users;"), args: run, exit: 0, reason: "returned 2 rows"},
		"another error":        {failedCall: query("SELECT age FROM users"), args: run, exit: 3, reason: "no such column"},
		"another, by the type": {failedCall: query("SELECT age FROM users"), args: with("--match", "type"), exit: 1},
		"wrapped": {failedCall: failing(missing, "sqlalchemy.exc.OperationalError", "(sqlite3.OperationalError) no such table: customers\n[SQL: SELECT]"),
			args: run, exit: 1},
		"by the message alone":   {failedCall: failing(missing, "io.example.QueryException", "no such table: customers"), args: run, exit: 1},
		"another class":          {failedCall: failing(missing, "sqlite3.IntegrityError", "no such table: customers"), args: run, exit: 3},
		"the names before 1.30":  {failedCall: failedCall{attrs: map[string]any{"db.system": "sqlite", "db.statement": "SELECT * FROM customers"}, errorType: "OperationalError"}, args: run, exit: 1},
		"a database that is not": {failedCall: missing, args: []string{"--dsn", db + "x", "--allow-side-effects"}, exit: 5, reason: "is not here"},
		"a file that is none":    {failedCall: missing, args: []string{"--dsn", "README.md", "--allow-side-effects"}, exit: 5},
		"another kind":           {failedCall: missing, args: []string{"--dsn", "postgresql://127.0.0.1:1/x", "--allow-side-effects"}, exit: 5, reason: "another kind"},
		"an address":             {failedCall: missing, args: []string{"--dsn", "http://127.0.0.1", "--allow-side-effects"}, exit: 2},
		"without a value":        {failedCall: query("SELECT name FROM users WHERE id = ?"), args: run, exit: 5, reason: "--param 0=VALUE"},
		"with a value":           {failedCall: query("SELECT name FROM users WHERE id = ?"), args: with("--param", "0=2"), exit: 0, reason: "returned 1 rows"},
		"with a recorded value":  {failedCall: queried("sqlite", "SELECT name FROM users WHERE id = :key OR id = :key", map[string]any{"db.query.parameter.key": "1"}), args: run, exit: 0, reason: "returned 1 rows"},
		"by numbers":             {failedCall: queried("sqlite", "SELECT name FROM users WHERE id = ?2 AND name <> ?1", map[string]any{"db.query.parameter.0": "x", "db.query.parameter.1": "1"}), args: run, exit: 0, reason: "returned 1 rows"},
		"a secret":               {failedCall: query("SELECT * FROM customers WHERE api_key = 'hunter2hunter2'"), args: run, exit: 5, reason: "payload.query"},
		"a secret, given again":  {failedCall: query("SELECT * FROM customers WHERE api_key = 'hunter2hunter2'"), args: with("--set", "query=x"), exit: 1},
		"a secret value":         {failedCall: queried("sqlite", "SELECT * FROM customers WHERE k = :token", map[string]any{"db.query.parameter.token": "hunter2"}), args: run, exit: 5, reason: "payload.parameters.token"},
		"a secret value, given":  {failedCall: queried("sqlite", "SELECT * FROM customers WHERE k = :token", map[string]any{"db.query.parameter.token": "hunter2"}), args: with("--param", "token=x"), exit: 1},
		"too slow":               {failedCall: query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n"), args: with("--timeout", "1"), exit: 6},
		"no frames":              {failedCall: missing, args: with("--match", "frame"), exit: 5},
		"a view":                 {failedCall: query("SELECT b.name, upper(b.name) FROM both AS b WHERE b.name LIKE 'a%' ORDER BY 1"), args: run, exit: 0, reason: "returned 1 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pythons(t)[0].run(t, script(t, tc.failedCall), tc.env, tc.args...)
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, tc.reason)
			assert.Contains(t, r.Stderr, tc.shown)
		})
	}
	t.Run("every Python", func(t *testing.T) {
		t.Parallel()
		for _, py := range pythons(t) {
			r := py.run(t, script(t, missing), nil, run...)
			assert.Equal(t, 1, r.Exit, "%s: %s\n%s", py.path, r.Stdout, r.Stderr)
		}
	})
}

// ruleProgram asks a script's own rules about statements, once for all of them.
const ruleProgram = `
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("repro", sys.argv[1])
repro = importlib.util.module_from_spec(spec)
spec.loader.exec_module(repro)
out = []
for system, text in json.load(sys.stdin):
    try:
        assert "".join(piece for kind, piece in repro.tokens_of(system, text)) == text, text
        repro.check_statement(system, text, ["app.pure"])
        out.append("")
    except repro.Verdict as refused:
        assert refused.code == 4, refused.code
        out.append(refused.reason)
print(json.dumps(out))
`

// TestWhatAQueryIs: one query that only reads, as the database would take it
// apart.
func TestWhatAQueryIs(t *testing.T) {
	const both = "sqlite postgresql"
	var statements [][2]string
	var wants []string
	for _, tc := range []struct{ systems, text, refused string }{
		{both, "SELECT 1", ""},
		{both, "  /* by app */ select count(*), max(a.b), 'it''s; drop' from a -- ;\n where x in (1, 2) and exists (select 1) ; ", ""},
		{both, `WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM t) SELECT sum(n) FROM t`, ""},
		{both, `SELECT cast(a AS numeric(10, 2)), row_number() OVER (PARTITION BY b ORDER BY c) FROM "t;" AS x (a)`, ""},
		{both, `SELECT t.update, t."insert" FROM t`, ""},
		{"postgresql", `SELECT E'a\'; b', $$ ; drop $$, $x$ $$ ; $x$, a::varchar(3), b[1] FROM t WHERE c = $1 AND d = %s AND e = %(f)s`, ""},
		{"postgresql", `SELECT pg_catalog.lower(left(a, 1)), app.pure(1) FROM t`, ""},
		{"sqlite", "SELECT [a;b], `c;d` FROM t WHERE e = ?1 AND f = :g AND h = @i", ""},

		{both, "", "only a query"},
		{both, "-- SELECT", "only a query"},
		{both, "DELETE FROM t", "only a query"},
		{both, "EXPLAIN ANALYZE SELECT 1", "only a query"},
		{both, "PRAGMA writable_schema = 1", "only a query"},
		{both, "ATTACH 'x' AS y", "only a query"},
		{both, "COPY (SELECT 1) TO PROGRAM 'id'", "only a query"},
		{both, "VALUES (1)", "only a query"},
		{both, "SELECT 1; DROP TABLE t", "one statement"},
		{both, "SELECT 1;;SELECT 2", "one statement"},
		{both, "SELECT 'a' ; -- '\n DROP TABLE t", "one statement"},
		{both, `SELECT "a""" ; DROP TABLE t; --"`, "one statement"},
		{both, "WITH x AS (SELECT 1) DELETE FROM t", "DELETE"},
		{both, "WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x", "INSERT"},
		{both, "WITH x AS (SELECT 1)", "only a query"},
		{both, "SELECT * INTO t FROM u", "INTO"},
		{both, "SELECT * FROM t FOR UPDATE", "UPDATE"},
		{both, "SELECT load_extension('x')", "load_extension may"},
		{both, "SELECT Load_Extension ('x')", "load_extension may"},
		{both, `SELECT "load_extension"('x')`, "load_extension may"},
		{both, "SELECT pg_sleep/**/(5)", "pg_sleep may"},
		{both, "SELECT pg_sleep -- x\n(5)", "pg_sleep may"},
		{both, "SELECT lower(pg_read_file('/etc/passwd'))", "pg_read_file may"},
		{both, "SELECT * FROM dblink('x', 'y') AS (a int)", "dblink may"},
		{both, "SELECT * FROM t, dblink('x', 'y') AS (a int)", "dblink may"},
		{both, "WITH a AS (SELECT 1), b AS (SELECT pg_sleep(1)) SELECT 1", "pg_sleep may"},
		{both, "WITH a(b) AS (SELECT 1) SELECT evil(1)", "evil may"},
		{both, "SELECT evil.lower('a')", "evil.lower may"},
		{both, "SELECT * FROM a JOIN LATERAL nextval('s') ON true", "nextval may"},
		{both, "SELECT query_to_xml('delete from t', true, true, '')", "query_to_xml may"},
		{both, "SELECT set_config('a', 'b', false)", "set_config may"},
		{both, "SELECT 'a", "without an end"},
		{both, "SELECT /* a", "without an end"},
		{both, "SELECT \x00 1", "without an end"},
		{both, "SELECT /* a /* b */ pg_sleep(1) */ 1", "comment in a comment"},
		{"postgresql", "SELECT 1 -- x\r; DROP TABLE t", "one statement"},
		{"postgresql", `SELECT E'\\'; DROP TABLE t; --'`, "one statement"},
		{"postgresql", "SELECT $a$ x", "without an end"},
		{"postgresql", "SELECT $$a$$; DROP TABLE t", "one statement"},
		{"postgresql", "SELECT [a; DROP TABLE t]", "one statement"},
		{"postgresql", "SELECT `a; DROP TABLE t`", "without an end"},
		{"postgresql", `SELECT U&"\0070g_sleep"(5)`, "may do more"},
		{"postgresql", "SELECT pg_sleep\u00a0(5)", "may do more"},
		{"sqlite", "SELECT $$a; DROP TABLE t$$", "one statement"},
		{"sqlite", "SELECT E'\\'; DROP TABLE t; --'", "one statement"},
		{"sqlite", "SELECT [a", "without an end"},
	} {
		for system := range strings.FieldsSeq(tc.systems) {
			statements = append(statements, [2]string{system, tc.text})
			wants = append(wants, tc.refused)
		}
	}
	for _, s := range hostile {
		if utf8.ValidString(s) {
			statements = append(statements, [2]string{"sqlite", s}, [2]string{"postgresql", s})
			wants = append(wants, " ", " ")
		}
	}
	artifact := script(t, queried("sqlite", "SELECT 1", nil))
	in, err := json.Marshal(statements)
	require.NoError(t, err)
	for _, py := range pythons(t) {
		cmd := exec.Command(py.path, "-B", "-c", ruleProgram, filepath.Join(artifact, "repro.py"))
		cmd.Stdin = bytes.NewReader(in)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, stderr.String())
		var got []string
		require.NoError(t, json.Unmarshal(out, &got))
		require.Len(t, got, len(wants))
		for i, want := range wants {
			if want == "" {
				assert.Empty(t, got[i], "%q", statements[i])
			} else {
				assert.Contains(t, got[i], want, "%q", statements[i])
			}
		}
	}
}

// TestSQLiteItselfRefuses: what the rules let pass by mistake, or a view hides,
// SQLite is not asked to do.
func TestSQLiteItselfRefuses(t *testing.T) {
	db := database(t)
	before := text(t, db)
	canary := filepath.Join(t.TempDir(), "canary")
	for name, tc := range map[string]struct {
		query  string
		reason string
	}{
		"a function of SQLite's shell": {"SELECT writefile('" + canary + "', 'x')", "writefile"},
		"an extension":                 {"SELECT load_extension('" + canary + "')", "load_extension"},
		"a pragma as a table":          {"SELECT * FROM pragma_user_version", "may do more"},
		"a function's other name":      {"SELECT fts3_tokenizer('x')", "fts3_tokenizer"},
	} {
		t.Run(name, func(t *testing.T) {
			artifact := script(t, queried("sqlite", tc.query, nil))
			// The rules are taken out, so that only SQLite is left.
			path := filepath.Join(artifact, "repro.py")
			write(t, path, strings.Replace(text(t, path), "        check_statement(", "        (lambda *rules: rules)(", 1))
			r := pythons(t)[0].run(t, artifact, nil, "--dsn", db, "--allow-side-effects")
			assert.Contains(t, []int{3, 4}, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			if r.Exit == 4 {
				assert.Contains(t, r.Reason, tc.reason)
			}
			assert.NoFileExists(t, canary)
		})
	}
	for _, query := range []string{"DELETE FROM users", "INSERT INTO note VALUES ('x')", "CREATE TABLE x (y)", "PRAGMA user_version = 7", "ATTACH '" + canary + "' AS x", "VACUUM INTO '" + canary + "'"} {
		artifact := script(t, queried("sqlite", query, nil))
		path := filepath.Join(artifact, "repro.py")
		write(t, path, strings.Replace(text(t, path), "        check_statement(", "        (lambda *rules: rules)(", 1))
		r := pythons(t)[0].run(t, artifact, nil, "--dsn", db, "--allow-side-effects")
		if !strings.HasPrefix(query, "VACUUM") || r.Exit != 3 { // no transaction has one
			assert.Equal(t, 4, r.Exit, "%s: %s\n%s", query, r.Stdout, r.Stderr)
		}
	}
	assert.NoFileExists(t, canary)
	assert.Equal(t, before, text(t, db), "nothing was written")
}

// fakeDriver stands for psycopg: no server of PostgreSQL is needed to see what
// is asked of it.
const fakeDriver = `
import json, os
class Error(Exception): sqlstate = None
class ProgrammingError(Error): pass
class UndefinedTable(ProgrammingError): sqlstate = "42P01"
said = []
class Cursor:
    def __enter__(self): return self
    def __exit__(self, *args): pass
    def __iter__(self): return iter([(1,), (2,)])
    def execute(self, text, values=None):
        said.append([text, values])
        if "customers" in text: raise UndefinedTable('relation "customers" does not exist\nLINE 1: SELECT')
class Connection:
    read_only = False
    def cursor(self, name=None):
        said.append(["cursor", name, self.read_only])
        return Cursor()
    def close(self):
        with open(os.environ["SAID"], "w") as file: json.dump(said, file)
def connect(dsn, **how):
    if "nowhere" in dsn: raise Error("connection refused")
    said.append([dsn])
    return Connection()
`

// TestPostgreSQL shows what the driver is asked for, with one that only listens.
func TestPostgreSQL(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "psycopg.py"), fakeDriver)
	const dsn = "postgresql://me:hunter2hunter2@db.test/app"
	query := queried("postgresql", "SELECT '10%' FROM customers WHERE a = $1 AND b = %s", map[string]any{"db.query.parameter.0": "x", "db.query.parameter.1": "y"})
	for name, tc := range map[string]struct {
		failedCall
		dsn    string
		path   string
		exit   int
		reason string
	}{
		"reproduced":       {failing(query, "psycopg.errors.UndefinedTable", `relation "customers" does not exist`), dsn, packages, 1, "does not exist"},
		"by the code":      {failing(query, "org.postgresql.util.PSQLException", `ERROR: relation "customers" does not exist (SQLSTATE 42P01)`), dsn, packages, 1, ""},
		"by its base":      {failing(query, "sqlalchemy.exc.ProgrammingError", `(psycopg2.errors.UndefinedTable) relation "customers" does not exist`), dsn, packages, 1, ""},
		"another":          {failing(query, "psycopg.errors.DivisionByZero", "division by zero"), dsn, packages, 3, ""},
		"answered":         {queried("postgresql", "SELECT 1", nil), dsn, packages, 0, "2 rows"},
		"not reached":      {query, "postgresql://nowhere/x", packages, 5, "connection refused"},
		"without a driver": {query, dsn, filepath.Join(packages, "none"), 5, "pip install"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.path != packages {
				// Whatever is installed here, it is not found.
				write(t, filepath.Join(tc.path, "psycopg.py"), "raise ImportError\n")
				write(t, filepath.Join(tc.path, "psycopg2.py"), "raise ImportError\n")
			}
			said := filepath.Join(t.TempDir(), "said")
			r := pythons(t)[0].run(t, script(t, tc.failedCall), []string{"PYTHONPATH=" + tc.path, "SAID=" + said}, "--dsn", tc.dsn, "--allow-side-effects")
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, tc.reason)
			assert.NotContains(t, r.Stdout+r.Stderr, "hunter2")
			if name == "reproduced" {
				assert.JSONEq(t, `[["`+dsn+`"], ["cursor", null, true], ["SET standard_conforming_strings = on", null], ["SET statement_timeout = 305000", null],
					["cursor", "repro", true], ["SELECT '10%%' FROM customers WHERE a = %s AND b = %s", ["x", "y"]]]`, text(t, said))
			}
		})
	}
}

// TestWhatIsAStatement: a statement of a database that can be asked.
func TestWhatIsAStatement(t *testing.T) {
	for name, tc := range map[string]struct {
		failedCall
		want string
	}{
		"of a store without SQL": {queried("redis", "GET x", nil), `"kind": "context"`},
		"without a system":       {queried("", "SELECT 1", nil), `"kind": "context"`},
		"nothing":                {queried("sqlite", " ", nil), `"reason": "payload_invalid"`},
		"one that was cut":       {queried("sqlite", "SELECT '"+strings.Repeat("x", 9000)+"'", nil), `"reason": "payload_truncated"`},
		"of a training":          {queried("sqlite", "SELECT 1", trained([]any{"train.py"}, nil).attrs), `"kind": "sql"`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, specText(t, script(t, tc.failedCall)), tc.want)
		})
	}
}

// TestHostileStatements: a statement is data in the script and on the screen,
// and what is no query is not run.
func TestHostileStatements(t *testing.T) {
	code := newSyntax(t, "sql", `["payload", "query"]`)
	db := database(t)
	for name, s := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(s) > 4096 {
				return
			}
			literal := "SELECT '" + strings.ReplaceAll(s, "'", "''") + "' AS x"
			artifact := script(t, queried("sqlite", literal, map[string]any{"db.namespace": s, "server.address": s, "db.query.parameter." + s: s}))
			code.add(t, artifact, string(jsontree.Encode(literal)))
			r := pythons(t)[0].run(t, artifact, nil, "--dsn", db, "--allow-side-effects")
			if strings.Contains(s, "\x00") {
				assert.Contains(t, []int{3, 4, 5}, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			} else {
				assert.Equal(t, 0, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			}
			for _, b := range []byte(r.Stdout + r.Stderr) {
				require.True(t, b == '\n' || b >= 0x20 && b <= 0x7E, "the terminal gets byte 0x%02x", b)
			}
		})
	}
}
