package clients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// reportedModel is an application's module that reports its calls with
// examples/repro-client: one that fails by the shapes of its tensors, and one
// that fails by chance.
const reportedModel = `
import torch
from repro_client import reported

@reported(tensors="data", packages=("torch",), seed=7)
def project(batch, weight):
    return batch @ weight

@reported(seed=7)
def drop(rate):
    raise RuntimeError("dropped at %.12f of %s" % (torch.rand(1).item(), rate))
`

// reportedProgram calls both, and sends what the real SDK makes of it to the
// collector. It prints the failures.
const reportedProgram = `
import json, sys
import torch
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
import reported_model

provider = TracerProvider(resource=Resource.create({"service.name": "reported"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=sys.argv[1] + "/v1/traces")))
failures = []
for call in (lambda: reported_model.project(torch.ones(3, 4), torch.ones(5, 2)), lambda: reported_model.drop(0.5)):
    torch.manual_seed(7)
    try:
        with provider.get_tracer("test").start_as_current_span("step") as span:
            context = span.get_span_context()
            call()
    except RuntimeError as error:
        failures.append({"type": "RuntimeError", "message": str(error),
                         "trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)})
provider.shutdown()
print(json.dumps(failures))
`

// An application with examples/repro-client's module and the real SDK and
// PyTorch: over OTLP through the built collector, to programs that fail in the
// same way, also by the same chance.
func TestReproClient(t *testing.T) {
	t.Parallel()
	python := harness.Path(".cache", "venvs", "torchtel", "bin", "python")
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "reported_model.py"), []byte(reportedModel), 0o600))
	modules := folder + string(os.PathListSeparator) + harness.Path("examples", "repro-client")
	cmd := exec.CommandContext(t.Context(), python, "-c", reportedProgram, overHTTP(t))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+modules)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, complaints.String())
	var failures []harness.TrueError
	require.NoError(t, json.Unmarshal(out, &failures))
	require.Len(t, failures, 2)

	spans := jaeger.AwaitSpanCounts(t, []string{"reported"}, map[string]int{"step": 2})
	shapes, chance := failures[0], failures[1]
	_, artifact := awaitFailure(t, spans, shapes)
	verdict, output := harness.ReproduceWith(t, python, artifact.Script(), modules, "--match", "message")
	assert.Equal(t, harness.Reproduced, verdict, output)
	assert.Contains(t, output, "cannot be multiplied (3x4 and 5x2)")
	assert.Contains(t, output, "as captured")

	_, artifact = awaitFailure(t, spans, chance)
	verdict, output = harness.ReproduceWith(t, python, artifact.Script(), modules)
	assert.Equal(t, harness.Reproduced, verdict, output)
	assert.Contains(t, output, "seed: 7, as it was recorded")
	assert.Contains(t, output, "reproduced: RuntimeError: "+chance.Message, "the same chance")
	_, output = harness.ReproduceWith(t, python, artifact.Script(), modules, "--seed", "8")
	assert.NotContains(t, output, chance.Message, "another one")
}
