package mlattr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
)

func TestErrorClass(t *testing.T) {
	for class, want := range map[string]string{
		"":                            "",
		"IndexError":                  "IndexError",
		"torch.cuda.OutOfMemoryError": "torch.cuda.OutOfMemoryError",
		"ray.exceptions.RayTaskError(IndexError)":          "IndexError",
		"RayTaskError(numpy.exceptions.AxisError)":         "numpy.exceptions.AxisError",
		"RayTaskError(ray.exceptions.RayTaskError(Key))":   "Key",
		"ray.exceptions.RayTaskError":                      "ray.exceptions.RayTaskError",
		"ray.exceptions.RayTaskError()":                    "ray.exceptions.RayTaskError()",
		"ray.exceptions.RayTaskError(Key":                  "ray.exceptions.RayTaskError(Key",
		"MyRayTaskError(Key)":                              "MyRayTaskError(Key)",
		"RayActorError(Key)":                               "RayActorError(Key)",
		strings.Repeat("RayTaskError(", 5) + "E" + ")))))": "RayTaskError(E)",
	} {
		assert.Equal(t, want, mlattr.ErrorClass(class), class)
	}
}

func TestClassName(t *testing.T) {
	assert.Equal(t, "OutOfMemoryError", mlattr.ClassName("torch.cuda.OutOfMemoryError"))
	assert.Equal(t, "E", mlattr.ClassName("E"))
	assert.Empty(t, mlattr.ClassName(""))
}

func TestReadPrintedError(t *testing.T) {
	for text, want := range map[string]clients.PrintedError{
		`%Snakepit.Error.PythonException{message: "no \"x\"\n", category: :python, python_type: "StatisticsError", python_traceback: "Traceback"}`: {
			Type: "StatisticsError", Message: "no \"x\"\n", Stack: "Traceback"},
		`%Snakepit.Error.ValueError{message: "day is out of range for month", context: %{}}`: {
			Type: "ValueError", Message: "day is out of range for month"},
		`%Snakepit.Error.KeyError{message: "a\`: {Type: "KeyError", Message: `a\`},
	} {
		got, ok := clients.ReadPrintedError(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "ValueError: x", "%Snakepit.Error.", "%Snakepit.Error.{}", "%Snakepit.Error.PythonException{}"} {
		_, ok := clients.ReadPrintedError(text)
		assert.False(t, ok, text)
	}
}

func FuzzReadPrintedError(f *testing.F) {
	f.Add(`%Snakepit.Error.PythonException{message: "a", python_type: "b"}`)
	f.Add(`%Snakepit.Error.X{message: "a\`)
	f.Fuzz(func(t *testing.T, text string) {
		e, ok := clients.ReadPrintedError(text)
		assert.LessOrEqual(t, len(e.Type)+len(e.Message)+len(e.Stack), 2*len(text))
		assert.Equal(t, ok, e != clients.PrintedError{})
	})
}

func TestEndedByAnother(t *testing.T) {
	for _, of := range [...]struct {
		class, message string
		want           bool
	}{
		{"SIGTERM", "Signal 15 (SIGTERM) received by PID 7", true},
		{"torch.distributed.elastic.multiprocessing.api.SignalException", "Process 1 got signal: 15", true},
		{"torch.distributed.elastic.rendezvous.api.RendezvousConnectionError", "The connection to the C10d store has failed.", true},
		{"torch.distributed.DistNetworkError", "failed to recv, got 0 bytes", true},
		{"torch.distributed.DistBackendError", "NCCL error in: ProcessGroupNCCL.cpp:3356, remote process exited or there was a network error, NCCL version 2.27.5", true},
		{"torch.distributed.DistBackendError", "NCCL error in: ProcessGroupNCCL.cpp:3356, unhandled cuda error, NCCL version 2.27.5", false},
		{"RuntimeError", "[/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:1234", true},
		{"ConnectionResetError", "[Errno 104] Connection reset by peer", true},
		{"SIGKILL", "Signal 9 (SIGKILL) received by PID 2630", false},
		{"ChildFailedError", "", false},
		{"", "", false},
	} {
		assert.Equal(t, of.want, mlattr.EndedByAnother(of.class, of.message), of.class+of.message)
	}
}
