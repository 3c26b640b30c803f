package intake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestGolden reads the files of each case in their order, each at the time of its
// first line, and compares the state and the details of the runs with the files.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/1.txt")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, first := range cases {
		folder := filepath.Dir(first)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			now := time.Time{}
			store := pagetest.NewStore(input.Settings{
				Version: "0.1", JaegerURL: "http://localhost:16686", Owners: map[string]string{"1001": "ada"},
				Now: func() time.Time { return now },
			})
			in := intake.New(store)
			files, err := filepath.Glob(filepath.Join(folder, "[0-9].txt"))
			require.NoError(t, err)
			for _, file := range files {
				now = startOf(t, file)
				consume(t, in, file)
			}
			now = now.Add(time.Second)
			golden.Compare(t, filepath.Join(folder, "state.json"), document(t, store.State()))
			for _, run := range store.State().Runs {
				detail, ok := store.Run(run.Key)
				require.True(t, ok)
				detail.Run = api.Run{} // the state has it
				golden.Compare(t, filepath.Join(folder, "run-"+run.ID+".json"), document(t, detail))
			}
		})
	}
}

// startOf returns the time of the first line of a file.
func startOf(t *testing.T, path string) time.Time {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(content)) {
		if _, at, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			start, err := time.Parse(time.RFC3339, at)
			require.NoError(t, err)
			return start
		}
	}
	t.Fatal("no time in " + path)
	return time.Time{}
}

func consume(t *testing.T, in *intake.Intake, path string) {
	ctx := context.Background()
	switch golden.Signal(t, path) {
	case "traces":
		in.ConsumeTraces(ctx, golden.ReadTraces(t, path))
	case "metrics":
		in.ConsumeMetrics(ctx, golden.ReadMetrics(t, path))
	case "logs":
		in.ConsumeLogs(mlattr.WithConcluded(ctx), golden.ReadLogs(t, path))
	}
}

func document(t *testing.T, value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(value))
	return text.String()
}
