package reprogenprocessor

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestVerdicts runs real scripts against Python's own library.
func TestVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		failedCall
		allowed []string
		args    []string
		exit    int
		reason  string
		shown   string
	}{
		"a function": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}"),
				errorType: "statistics.StatisticsError", message: "mean requires at least one data point"},
			allowed: []string{"statistics"}, exit: 1, reason: "mean requires",
		},
		"a function whose error has a bare name": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}"), errorType: "StatisticsError"},
			allowed:    []string{"statistics"}, exit: 1,
		},
		"a function behind another module": {
			failedCall: failedCall{payload: call("json", "loads", `["{bad"]`, "{}"),
				errorType: "json.decoder.JSONDecodeError",
				message:   "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
			allowed: []string{"json"}, exit: 1,
		},
		"a class in C": {
			failedCall: failedCall{payload: call("decimal", "Decimal", `["abc"]`, "{}"),
				errorType: "decimal.InvalidOperation", message: "[<class 'decimal.ConversionSyntax'>]"},
			allowed: []string{"decimal"}, exit: 1,
		},
		"a class of datetime": {
			failedCall: failedCall{payload: call("datetime", "date", `[2026,2,30]`, "{}"),
				errorType: "ValueError", message: "day is out of range for month"},
			allowed: []string{"datetime"}, exit: 1,
		},
		"a class method in C": {
			failedCall: failedCall{payload: call("datetime", "date.fromisoformat", `["nonsense"]`, "{}"),
				errorType: "builtins.ValueError", message: "Invalid isoformat string: 'nonsense'"},
			allowed: []string{"datetime"}, exit: 1,
		},
		"a function in C": {
			failedCall: failedCall{payload: call("math", "sqrt", `[-1]`, "{}"), errorType: "ValueError", message: "math domain error"},
			allowed:    []string{"math.*"},
			exit:       1,
		},
		"an accelerated function": {
			failedCall: failedCall{payload: call("heapq", "heappop", `[[]]`, "{}"), errorType: "IndexError"},
			allowed:    []string{"heapq"}, exit: 1,
		},
		"one callable by name": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}"), errorType: "StatisticsError"},
			allowed:    []string{"statistics:mean"}, exit: 1,
		},
		"no failure here": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[1,2]]", "{}"), errorType: "StatisticsError"},
			allowed:    []string{"statistics"}, exit: 0,
		},
		"another error": {
			failedCall: failedCall{payload: call("statistics", "mean", "[3]", "{}"), errorType: "StatisticsError"},
			allowed:    []string{"statistics"}, exit: 3, reason: "TypeError",
		},
		"another message": {
			failedCall: failedCall{payload: call("datetime", "date", `[2026,2,30]`, "{}"),
				errorType: "ValueError", message: "something else entirely went wrong in the loader"},
			allowed: []string{"datetime"}, exit: 3,
		},
		"nothing is allowed": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}"), errorType: "StatisticsError"},
			exit:       4, reason: "--allow-module statistics",
		},
		"allowed by its user": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}"), errorType: "StatisticsError"},
			args:       []string{"--allow-module", "statistics"}, exit: 1,
		},
		"bad entry": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}")},
			args:       []string{"--allow-module", "builtins"}, exit: 2,
		},
		"unknown flag": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}")},
			args:       []string{"--bisec"}, exit: 2,
		},
		"no such module": {
			failedCall: failedCall{payload: call("no_such_module_at_all", "f", "[]", "{}"), errorType: "ValueError"},
			allowed:    []string{"no_such_module_at_all"}, exit: 5, reason: "install",
		},
		"no such module, as expected": {
			failedCall: failedCall{payload: call("no_such_module_at_all", "f", "[]", "{}"),
				errorType: "ModuleNotFoundError", message: "No module named 'no_such_module_at_all'"},
			allowed: []string{"no_such_module_at_all"}, exit: 1,
		},
		"no such function": {
			failedCall: failedCall{payload: call("statistics", "no_such_function", "[]", "{}"), errorType: "ValueError"},
			allowed:    []string{"statistics"}, exit: 5,
		},
		"the process is left, and nothing was recorded": {
			failedCall: failedCall{payload: call("sys", "exit", "[1]", "{}"), attrs: map[string]any{"x": "y"}},
			allowed:    []string{"sys:exit"}, exit: 3, reason: "SystemExit",
		},
		"any error, and nothing was recorded": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}")},
			allowed:    []string{"statistics"}, exit: 1, reason: "nothing was recorded",
		},
		"too slow": {
			failedCall: failedCall{payload: call("time", "sleep", "[60]", "{}"), errorType: "ValueError"},
			allowed:    []string{"time"}, args: []string{"--timeout", "0.5"}, exit: 6,
		},
		"dry run": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}"), errorType: "StatisticsError"},
			allowed:    []string{"statistics"}, args: []string{"--dry-run"}, exit: 0, reason: "nothing was imported",
		},
		"dry run of what is refused": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", "{}")},
			args:       []string{"--dry-run"}, exit: 4, shown: "call: statistics.mean([])",
		},
		"info on a context": {
			failedCall: failedCall{errorType: "ValueError", message: "no payload was sent"},
			args:       []string{"--info"}, exit: 5, reason: "no_payload",
		},
		"a withheld argument": {
			failedCall: failedCall{payload: call("statistics", "mean", "[[]]", `{"password":"hunter2hunter2"}`)},
			allowed:    []string{"statistics"}, exit: 5, reason: "payload.kwargs.password",
		},
		"an object that could not be sent": {
			failedCall: failedCall{payload: call("statistics", "mean", `[{"__needs_ref__":true}]`, "{}")},
			allowed:    []string{"statistics"}, exit: 5, reason: "__needs_ref__",
		},
		"an object of an earlier session": {
			failedCall: failedCall{payload: call("statistics", "mean", `[{"__type__":"ref","id":"1"}]`, "{}")},
			allowed:    []string{"statistics"}, exit: 5, reason: "'ref'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, tc.allowed...)
			produce(t, cfg, tc.traces())
			artifact := onlyArtifact(t, cfg)
			for _, py := range pythons(t) {
				r := py.run(t, artifact, nil, tc.args...)
				assert.Equal(t, tc.exit, r.Exit, "%s: %s\n%s", py.path, r.Stdout, r.Stderr)
				assert.Contains(t, r.Reason, tc.reason)
				assert.Contains(t, r.Stderr, tc.shown)
			}
		})
	}
}

// TestPatchedModule is what a developer does next: the defect is fixed, and
// the script says so.
func TestPatchedModule(t *testing.T) {
	cfg := testConfig(t, "statistics")
	produce(t, cfg, failedCall{payload: call("statistics", "mean", "[[]]", "{}"), errorType: "StatisticsError"}.traces())
	artifact := onlyArtifact(t, cfg)
	patched := t.TempDir()
	write(t, filepath.Join(patched, "statistics.py"), "def mean(data):\n    return sum(data) / len(data) if data else 0\n")
	for _, py := range pythons(t) {
		assert.Equal(t, 1, py.run(t, artifact, nil).Exit, py.path)
		r := py.run(t, artifact, []string{"PYTHONPATH=" + patched})
		assert.Equal(t, 0, r.Exit, "%s: %s\n%s", py.path, r.Stdout, r.Stderr)
	}
}
