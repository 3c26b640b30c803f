package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// exampleTimeout bounds one run of an example. Each takes some seconds, most
// of them imports.
const exampleTimeout = 3 * time.Minute

// Truth is what an example says that it did.
type Truth struct {
	System   string            `json:"system"`
	Versions map[string]string `json:"versions"`
	// Services are the values of service.name that it used.
	Services []string `json:"services"`
	// Spans counts the spans that it made by their names.
	Spans map[string]int `json:"spans"`
	// Steps counts steps by rank or by run.
	Steps map[string]int `json:"steps"`
	// Tokens are by role or model.
	Tokens map[string]TokenCounts `json:"tokens"`
	Losses []TrueLoss             `json:"losses"`
	// Keys has the values of share keys, by what the example calls the key.
	Keys   map[string][]string `json:"keys"`
	Errors []TrueError         `json:"errors"`
	// Numbers are other totals of one example.
	Numbers map[string]float64 `json:"numbers"`
	// Notes say what is not as in the real system.
	Notes []string `json:"notes"`
}

// TokenCounts are the tokens of one role or model.
type TokenCounts struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

// TrueLoss is the last value of one loss.
type TrueLoss struct {
	Service string `json:"service"`
	// Scope is what the loss is of: batch, epoch or validation.
	Scope string `json:"scope"`
	// Task is empty for the loss of all tasks together.
	Task  string  `json:"task"`
	Value float64 `json:"value"`
}

// TrueError is one failure that an example provoked and reported.
type TrueError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`
	// Payload says whether the span carries the call that failed.
	Payload bool `json:"payload"`
}

// Example describes one run of a program of the folder examples.
type Example struct {
	// Name is the folder's.
	Name string
	// Args come after those that every example takes.
	Args []string
	// Env has additional environment variables as "KEY=value".
	Env []string
	// Endpoint is where it sends OTLP to, as a URL.
	Endpoint string
}

// ExamplePython returns the interpreter of an example's virtual environment.
// Where examples/venv.sh has made none, the test is skipped, or fails in CI.
func ExamplePython(tb testing.TB, name string) string {
	tb.Helper()
	python := Path(".cache", "venvs", name, "bin", "python")
	if _, err := os.Stat(filepath.Join(filepath.Dir(python), "..", "stamp")); err != nil {
		message := fmt.Sprintf("LEFT OUT: the real client %s has no virtual environment; make it with: examples/venv.sh %s", name, name)
		if os.Getenv("CI") == "true" {
			tb.Fatal(message)
		}
		tb.Skip(message)
	}
	return python
}

// RunExample runs an example to its end and returns what it says that it did.
// The test fails if it does not end well.
func RunExample(tb testing.TB, example Example) Truth {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "truth.json")
	folder := Path("examples", example.Name)
	code, output := Run(tb, Command{
		Name: "examples/" + example.Name,
		Path: ExamplePython(tb, example.Name),
		Args: append([]string{filepath.Join(folder, "main.py"), "--truth", file}, example.Args...),
		Env: append([]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + example.Endpoint,
			"PYTHONDONTWRITEBYTECODE=1",
			"PYTHONUNBUFFERED=1",
		}, example.Env...),
	}, exampleTimeout)
	if code != 0 {
		tb.Fatalf("examples/%s ended with %d:\n%s", example.Name, code, output)
	}
	text, err := os.ReadFile(file) //nolint:gosec // a path below the test's own folder
	if err != nil {
		tb.Fatal(err)
	}
	var truth Truth
	if err := json.Unmarshal(text, &truth); err != nil {
		tb.Fatalf("what examples/%s says that it did: %v", example.Name, err)
	}
	return truth
}
