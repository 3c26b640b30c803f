package mlfileprovider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-ml/otelcol-ml/extension/mlstateextension/mlfileprovider"
)

// retrieve reads a file with this name and text, and returns its error without the
// folder.
func retrieve(t testing.TB, name, text string) (*confmap.Retrieved, string) {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	retrieved, err := mlfileprovider.NewFactory().Create(confmap.ProviderSettings{}).Retrieve(t.Context(), "file:"+file, nil)
	if err == nil {
		return retrieved, ""
	}
	return retrieved, strings.ReplaceAll(err.Error(), folder+string(filepath.Separator), "")
}

func TestWrongFiles(t *testing.T) {
	t.Setenv("LIMIT", "1G")
	t.Setenv("EVERY", "15")
	t.Setenv("INSECURE", "flase")
	t.Setenv("PORT", "4317")
	t.Setenv("EMPTY", "")
	t.Setenv("HALF", "0.5")
	t.Setenv("LESS", "-5")
	t.Setenv("WRAPS", "4294967296")
	t.Setenv("EXPONENT", "1e3")
	for name, test := range map[string]struct{ text, want string }{
		"a tab":       {"a:\n  b:\n\tc: 1\n", `c.yaml:3: "c: 1" begins with a tab; it must be indented with spaces`},
		"another tab": {"a: |\n  x\n  \ty\nb: 1\nc: @\n", "c.yaml is not valid YAML: line 5: found character that cannot start any token"},
		"a key twice": {"a:\n  b: 1\n  b: 2\n", "c.yaml is not valid YAML: unmarshal errors:\n  line 3: mapping key \"b\" already defined at line 2"},
		"a number": {
			"processors:\n  memory_limiter:\n    limit_mib: ${env:LIMIT:-0}\n",
			`c.yaml:3: processors::memory_limiter::limit_mib is "1G", the value of LIMIT; it must be a whole number of MiB, from 0 to 4294967295`,
		},
		"another number": {"a: {b: {limit: '${env:LIMIT:-0}', size: 1}}\nc: ${env:LIMIT:-0.5}", `c.yaml:2: c is "1G", the value of LIMIT; it must be a number, as 0.5 is`},
		"a fraction": {
			"processors:\n  memory_limiter:\n    limit_mib: ${env:HALF:-0}\n    spike_limit_mib: 0.25\n",
			`c.yaml:3: processors::memory_limiter::limit_mib is "0.5", the value of HALF; it must be a whole number of MiB, from 0 to 4294967295` + "\n" +
				`c.yaml:4: processors::memory_limiter::spike_limit_mib is "0.25"; it must be a whole number of MiB, from 0 to 4294967295`,
		},
		"below 0":         {"a: {limit_mib: '${env:LESS:-0}'}\nb_mib: ${env:LESS:-0}", `c.yaml:2: b_mib is "-5", the value of LESS; it must be a whole number of MiB, from 0 to 4294967295`},
		"what would wrap": {"a_mib: ${env:WRAPS:-0}", `c.yaml:1: a_mib is "4294967296", the value of WRAPS; it must be a whole number of MiB, from 0 to 4294967295`},
		"an exponent":     {"a_mib: ${env:EXPONENT:-0}", `c.yaml:1: a_mib is "1e3", the value of EXPONENT; it must be a whole number of MiB, from 0 to 4294967295`},
		"true or false":   {"a:\n  b: [{c: '${env:INSECURE:-true}'}]\n  d: ${env:INSECURE:-true}", `c.yaml:3: a::d is "flase", the value of INSECURE; it must be true or false`},
		"a time":          {"a: {b: {flush_interval: 15}}", `c.yaml:1: a::b::flush_interval is "15"; it must be a time with a unit, such as 500ms, 15s or 5m`},
		"another unit":    {"a: {b: {max_elapsed_time: 15 sec}}", `c.yaml:1: a::b::max_elapsed_time is "15 sec"; it must be a time with a unit, such as 500ms, 15s or 5m`},
		"a variable time": {"a: {b: {timeout: '${env:EVERY:-1s}'}}", `c.yaml:1: a::b::timeout is "15", the value of EVERY; it must be a time with a unit, such as 500ms, 15s or 5m`},
		"two": {
			"receivers:\n  otlp: {a:1}\nprocessors:\n  x: a:1\n  y: {timeout: 1}\n",
			"c.yaml:4: processors::x is \"a:1\"; it must be a map of keys and values, with a space after each colon\n" +
				`c.yaml:5: processors::y::timeout is "1"; it must be a time with a unit, such as 500ms, 15s or 5m`,
		},

		"right values":            {text: "a:\n  x: \n  y: ~\n  limit_mib: ${env:PORT:-0}\n  c: ${env:PORT:-0.5}\n  b: {timeout: 0, interval: 1m30s, max_interval: -1}\n  wait: ${env:UNSET:-5s}"},
		"numbers of MiB":          {text: "a_mib: 512\nb_mib: ~\nc_mib: 0x10\nd_mib: ${env:PORT:-0}\ne_mib: ${env:EMPTY:-0}\nf_mib: 4294967295"},
		"what is quoted is text":  {text: `a: {b: {c: "${env:LIMIT:-0}", d: "a ${env:LIMIT:-0}"}}`},
		"variables in variables":  {text: "a:\n  b: ${env:LIMIT:-${env:PORT:-0}}\n  d: ${env:LIMIT}\n  e: ${env:EMPTY:-0}\n  f: ${file:x}\n  timeout: '${env:'\n  delay: ${env:PORT}s"},
		"what has other times":    {text: "{service: {telemetry: {interval: 1000}, extensions: x}, receivers: {prometheus: {config: {scrape_interval: 1d}}}}"},
		"keys that are no times":  {text: "a: {b: {max_age: 5, max_idle_conns: 5, time: 5, after: true, sampling_thereafter: 5}}"},
		"a list":                  {text: "[a, {timeout: x}]"},
		"nothing":                 {},
		"keys that are no texts":  {text: "{1: {2: 3, ~: x}, [a]: {}}"},
		"one value in many files": {text: "a: &a {timeout: 1s}\nb: {c: *a}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := retrieve(t, "c.yaml", test.text)
			if name == "keys that are no texts" {
				assert.NotEmpty(t, got)
				return
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// A file of another name is not YAML, such as a secret.
func TestOtherFiles(t *testing.T) {
	for _, name := range []string{"token", "token.txt"} {
		retrieved, message := retrieve(t, name, "\tx: [")
		require.Empty(t, message)
		text, err := retrieved.AsString()
		require.NoError(t, err)
		assert.Equal(t, "\tx: [", text)
	}
	_, err := mlfileprovider.NewFactory().Create(confmap.ProviderSettings{}).Retrieve(t.Context(), "file:missing.yaml", nil)
	assert.ErrorContains(t, err, "missing.yaml")
}

// A file that the stock provider takes is read or refused.
func FuzzRetrieve(f *testing.F) {
	f.Add("a: {b: {timeout: ${env:X:-5}}}")
	f.Add("\ta: [&a *a]")
	f.Add("a: {b: {timeout: '${env:'}}")
	f.Fuzz(func(t *testing.T, text string) { _, _ = retrieve(t, "c.yaml", text) })
}
