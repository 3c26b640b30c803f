package reprogenprocessor

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTriggers: where a failure was no exception, its like is what counts.
func TestTriggers(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), `
import os, signal, time
def loss(): return {"loss": [1.0, float("nan")]}
def norm(): return (1.0, -float("inf"))
def good(): return [1.0, "text", None]
def hangs(): time.sleep(600)
def dies(): os.abort()
`)
	for name, tc := range map[string]struct {
		function, trigger string
		exit              int
	}{
		"NaN": {"loss", "nan", 1}, "an infinity": {"norm", "inf", 1}, "no NaN": {"norm", "nan", 0}, "neither": {"good", "nan", 0},
		"NaN, and nobody asked": {"loss", "", 0},
		"a hang":                {"hangs", "timeout", 1}, "a hang, and nobody asked": {"hangs", "", 6},
		"a crash": {"dies", "crash", 1}, "a crash, and nobody asked": {"dies", "", 3}, "no crash": {"good", "crash", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := failedCall{payload: call("app", tc.function, "[]", "{}")}
			if tc.trigger != "" {
				f.attrs = map[string]any{"repro.trigger": tc.trigger}
			}
			artifact := script(t, f, "app")
			for _, py := range pythons(t) {
				r := py.run(t, artifact, []string{"PYTHONPATH=" + packages}, "--timeout", "2")
				if tc.function != "hangs" { // the machine may be slow
					r = py.run(t, artifact, []string{"PYTHONPATH=" + packages})
				}
				assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			}
		})
	}
}
