package harness

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// inferencePaths are the paths of servers whose metrics are not at /metrics, by
// job.
var inferencePaths = map[string]string{"trtllm": "/prometheus/metrics"}

// StartInferenceServers serves what inference servers and gateways expose, in
// e2e/smoke/testdata/servers, and returns the jobs of servers.yaml and the
// variables that have it scrape them each second. If growing is true, all counts
// are multiplied by the number of the scrape.
func StartInferenceServers(tb testing.TB, growing bool) (jobs, env []string) {
	tb.Helper()
	files, err := filepath.Glob(Path("e2e", "smoke", "testdata", "servers", "*.prom"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no expositions: %v", err)
	}
	env = []string{"SERVERS_SCRAPE_INTERVAL=1s"}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the repository's own file
		if err != nil {
			tb.Fatal(err)
		}
		job := strings.TrimSuffix(filepath.Base(file), ".prom")
		path := inferencePaths[job]
		if path == "" {
			path = "/metrics"
		}
		var scrapes atomic.Int64
		handler := http.NewServeMux()
		handler.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			factor := int64(1)
			if growing {
				factor = scrapes.Add(1)
			}
			_, _ = io.WriteString(w, multiplyCounts(string(text), float64(factor)))
		})
		server := httptest.NewServer(handler)
		tb.Cleanup(server.Close)
		jobs = append(jobs, job)
		name := strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(job)) + "_TARGETS"
		env = append(env, name+"=["+strings.TrimPrefix(server.URL, "http://")+"]")
	}
	return jobs, env
}

// multiplyCounts returns an exposition with the values of its counters and
// histograms multiplied.
func multiplyCounts(text string, factor float64) string {
	var out strings.Builder
	counts := false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 4 && words[1] == "TYPE":
			counts = words[3] != "gauge"
		case counts && !strings.HasPrefix(line, "#"):
			if value, err := strconv.ParseFloat(words[len(words)-1], 64); err == nil {
				line = strings.TrimSuffix(strings.TrimSpace(line), words[len(words)-1]) + strconv.FormatFloat(value*factor, 'f', -1, 64) + "\n"
			}
		}
		out.WriteString(line)
	}
	return out.String()
}
