package reprogenprocessor

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// clientProgram fails inside spans of the real OpenTelemetry SDK, once for each
// name, and writes what the SDK's OTLP encoder makes of it to a file of that
// name: PyTorch takes seconds to import.
const clientProgram = `
import sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import client_app

exporter = InMemorySpanExporter()
provider = TracerProvider(resource=Resource({"service.name": "client"}))
provider.add_span_processor(SimpleSpanProcessor(exporter))
for name in sys.argv[2:]:
    exporter.clear()
    try:
        with provider.get_tracer("t").start_as_current_span("step"):
            getattr(client_app, "run_" + name)()
    except Exception:
        pass
    with open(sys.argv[1] + "/" + name, "wb") as file:
        file.write(encode_spans(exporter.get_finished_spans()).SerializeToString())
`

const clientApp = `
import datetime, os
import numpy, torch
from repro_client import record_call, reported

class Odd: pass

@reported(tensors="data", env=("CLIENT_SETTING", "NO_SUCH"), packages=("numpy", "no-such-package"), seed=3)
def everything(*args, **kwargs):
    raise ValueError(repr(args) + repr(sorted(kwargs.items())))
def run_everything():
    everything(None, True, -1, 2**70, 1.5, float("-inf"), "a'''\n\u20ac", [1, (2,)], {3}, frozenset([4]), b"\0\xff", 1-2j,
               datetime.date(2026, 2, 3), {"a": 1}, {1: "b"}, {"__type__": "x"}, numpy.float32(0.5), key=numpy.int64(7))

@reported(tensors="data")
def views(a, b, c):
    raise ValueError("%s %s %s; %s" % (a.tolist(), b.tolist(), c.tolist(), a.data_ptr() == b.data_ptr()))
def run_views():
    a = torch.arange(6, dtype=torch.float32)
    views(a, a.reshape(2, 3).t(), a.to(torch.bfloat16)[1:3])

@reported(tensors="data")
def arrays(a, b):
    b[0] = 9
    raise ValueError("%s %s" % (a.tolist(), b.tolist()))
def run_arrays():
    a = numpy.arange(6, dtype="int16")
    arrays(a, a[::-2])

@reported
def product(a, b): return a @ b
def run_product():
    product(torch.randn(32, 15), torch.randn(16, 32, requires_grad=True))

@reported(tensors="data")
def large(a): raise ValueError(tuple(a.shape))
def run_large(): large(torch.ones(1000, 1000))

def undecorated(a, b=1): raise KeyError(a)
def run_undecorated():
    try: undecorated("x", b=2)
    except KeyError:
        record_call(undecorated, ("x",), {"b": 2})
        raise

@reported
def odd(a): raise ValueError("odd")
def run_odd(): odd(Odd())

@reported
def long(a): raise ValueError("long")
def run_long(): long("x" * 400000)

@reported
def endless(a): raise ValueError("endless")
def run_endless():
    a = []
    a += [a, a]
    endless(a)
`

// TestClient is the whole way: a program with the client module and the real
// SDK fails, and the artifact fails in the same way.
func TestClient(t *testing.T) {
	py := torchPython(t)
	module, err := filepath.Abs(filepath.Join("..", "..", "examples", "repro-client"))
	require.NoError(t, err)
	app := t.TempDir()
	write(t, filepath.Join(app, "client_app.py"), clientApp)
	path := "PYTHONPATH=" + app + string(os.PathListSeparator) + module
	cases := map[string]struct {
		exit    int
		message string
		data    string
		reason  string
	}{
		"everything": {exit: 1, message: `(None, True, -1, 1180591620717411303424, 1.5, -inf, "a'''\n` + "€" + `", [1, (2,)], {3}, frozenset({4}), b'\x00\xff', (1-2j), ` +
			`datetime.date(2026, 2, 3), {'a': 1}, {1: 'b'}, {'__type__': 'x'}, 0.5)[('key', 7)]`},
		"views":       {exit: 1, message: "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0] [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] [1.0, 2.0]; True", data: "captured"},
		"arrays":      {exit: 1, message: "[0, 1, 2, 3, 4, 9] [9, 3, 1]", data: "captured"},
		"product":     {exit: 1, message: "mat1 and mat2 shapes cannot be multiplied (32x15 and 16x32)", data: "stats"},
		"large":       {exit: 1, message: "(1000, 1000)", data: "stats"},
		"undecorated": {exit: 1, message: "'x'"},
		"odd":         {exit: 5, reason: "__ffi_unserializable__"},
		"long":        {exit: 5, reason: "no_payload"},
		"endless":     {exit: 5, reason: "no_payload"},
	}
	folder := t.TempDir()
	cmd := exec.Command(py.path, append([]string{"-c", clientProgram, folder}, slices.Collect(maps.Keys(cases))...)...)
	cmd.Env = append(os.Environ(), path, "CLIENT_SETTING=on")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent, err := os.ReadFile(filepath.Join(folder, name))
			require.NoError(t, err)
			td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(sent)
			require.NoError(t, err)

			cfg := testConfig(t, "client_app")
			produce(t, cfg, td)
			artifact := onlyArtifact(t, cfg)
			r := py.run(t, artifact, []string{path})
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Equal(t, tc.message, r.Message)
			assert.Equal(t, tc.data, r.Data)
			assert.Contains(t, r.Reason, tc.reason)
			if name == "everything" {
				info := py.run(t, artifact, []string{path, "CLIENT_SETTING=off"}, "--env-diff").Stderr
				assert.Contains(t, info, "not compared: CLIENT_SETTING\n")
				assert.Contains(t, info, "0 of 1 values differ", "numpy is the same here")
			}
		})
	}
}
