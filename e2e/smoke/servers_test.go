package smoke

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

var update = flag.Bool("update", false, "write testdata/servers/*.txt anew")

// What each inference server and gateway exposes becomes the series of the file
// beside it: through the receiver prometheus, with servers.yaml merged over
// agent.yaml, and all processors. The rates are 0, because the counters stand
// still.
func TestInferenceServers(t *testing.T) {
	t.Parallel()
	jobs, env := harness.StartInferenceServers(t, false)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Merged: []string{harness.Path("distribution", "config", "servers.yaml")},
		Env:    env,
		Dir:    t.TempDir(),
	})
	if *update {
		writeServers(t, collector, jobs)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		series := seriesByJob(t, c, collector)
		assert.Subset(c, slices.Collect(maps.Keys(series)), jobs)
		for _, job := range jobs {
			want, err := os.ReadFile(filepath.Join("testdata", "servers", job+".txt"))
			if assert.NoError(c, err) {
				assert.Equal(c, string(want), series[job], job)
			}
		}
	}, arrival, poll)
	stopDropIn(t, collector)
}

// writeServers writes the expected files, once all series are there: rates come
// with the second scrape.
func writeServers(t *testing.T, collector *harness.Collector, jobs []string) {
	t.Helper()
	var series map[string]string
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		series = seriesByJob(t, c, collector)
		for _, job := range jobs {
			// The recorded worker counts no tokens.
			if assert.NotEmpty(c, series[job]) && job != "dynamo-worker" {
				assert.Contains(c, series[job], "ml_token_throughput_per_second", job)
			}
		}
	}, arrival, poll)
	for _, job := range jobs {
		require.NoError(t, os.WriteFile(filepath.Join("testdata", "servers", job+".txt"), []byte(series[job]), 0o600))
	}
}

// seriesByJob returns the collector's series of each job, sorted, without the time
// that the scrapes took and without addresses.
func seriesByJob(t *testing.T, c *assert.CollectT, collector *harness.Collector) map[string]string {
	samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
	require.NoError(c, err)
	lines := make(map[string][]string)
	for _, sample := range samples {
		name := sample.Labels["__name__"]
		if strings.HasPrefix(name, "scrape_") || name == "target_info" {
			continue
		}
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(sample.Labels)) {
			if key != "__name__" && key != "instance" && key != "job" {
				labels = append(labels, key+"="+strconv.Quote(sample.Labels[key]))
			}
		}
		job := sample.Labels["job"]
		lines[job] = append(lines[job], name+"{"+strings.Join(labels, ",")+"} "+strconv.FormatFloat(sample.Value, 'f', -1, 64)+"\n")
	}
	series := make(map[string]string, len(lines))
	for job, of := range lines {
		slices.Sort(of)
		series[job] = strings.Join(of, "")
	}
	return series
}
