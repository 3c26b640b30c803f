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

// TestDiagnosis: what a message says about memory or a collective operation
// is in the script and in the report.
func TestDiagnosis(t *testing.T) {
	memory := script(t, failedCall{errorType: "torch.OutOfMemoryError", message: "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of " +
		"80.00 GiB of which 1.50 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but unallocated."})
	r := pythons(t)[0].run(t, memory, nil)
	assert.Equal(t, 5, r.Exit)
	assert.Regexp(t, `requested_bytes +2147483648\n`, r.Stderr)
	assert.Contains(t, r.Stderr, "fragmented")
	assert.Contains(t, text(t, memory, "report.md"), `"reserved_unused_bytes": 4294967296`)

	hang := script(t, failedCall{errorType: "RuntimeError", message: "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1042, OpType=ALLREDUCE, " +
		"NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600123 milliseconds before timing out."})
	r = pythons(t)[0].run(t, hang, nil)
	assert.Regexp(t, `operation +ALLREDUCE\nsequence +1042\n`, r.Stderr)
	assert.Contains(t, text(t, hang, "report.md"), `"operation": "ALLREDUCE"`)
	assert.NotContains(t, text(t, script(t, failedCall{errorType: "ValueError", message: "x"}), "repro.py"), `"diagnosis":`)
}
