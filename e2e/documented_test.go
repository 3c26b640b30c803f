package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// withoutAnswer are documented queries to which the main job need not have an
// answer, by how they begin, and why. Prometheus has to read them all the same.
var withoutAnswer = map[string]string{
	`run:state{ml_run_state="stalled"}`:                                      "a run is stalled after five minutes",
	`max by (UUID) (DCGM_FI_DEV_FB_USED{job="dcgm-exporter"})`:               "no dcgm-exporter runs",
	`problem:onset_timestamp_seconds:max`:                                    "no problem has to be there",
	`max by (job, ml_run_id) (ml_run_step_time_seconds{ml_window="recent"})`: "the usual time needs 70 steps",
	`increase(ml_nonfinite_total`:                                            "no loss of the workload is NaN",
	`hw_status{hw_state!="ok"} == 1`:                                         "the GPUs of the recording are well",
	`increase(nvidia_gpu_xid_errors_total`:                                   "the recording has its first error after a while",
	`sum by (host_name, hw_id) (nvidia_gpu_workload_memory_usage_bytes) > 0`: "the GPUs of the recording are busy",
	`sum by (exporter) (increase(otelcol_exporter_send_failed_spans`:         "nothing is lost",
	`sum by (track, exporter) (increase(otelcol_exporter_send_failed_spans`:  "nothing is lost",
	`sum by (host_name, hw_id, label_team) (`:                                "kube-state-metrics is not there: promtool tries the query",
	`sum by (reason) (otelcol_processor_ml_enrich_rates_skipped)`:            "each rate of the workload can be derived",
}

// reasonWithout returns why a query need not have an answer, and which of the
// reasons it is.
func reasonWithout(query string) (begin, reason string) {
	for begin, reason := range withoutAnswer {
		if strings.HasPrefix(query, begin) {
			return begin, reason
		}
	}
	return "", ""
}

// testDocumentedQueries runs every query that a document has, and what it asks
// Prometheus and Jaeger on a command line.
func testDocumentedQueries(t *testing.T, j *job) {
	blocks, err := documents.All(harness.Path())
	require.NoError(t, err)
	queries := documents.Of(blocks, "promql")
	require.NotEmpty(t, queries)
	used := map[string]bool{}
	for _, block := range queries {
		query := strings.TrimSpace(block.Text)
		begin, reason := reasonWithout(query)
		used[begin] = true
		t.Run(fmt.Sprintf("%s:%d", block.File, block.Line), func(t *testing.T) {
			if reason != "" {
				_, err := j.prometheus.Query(t.Context(), query)
				require.NoError(t, err, query)
				return
			}
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				samples, err := j.prometheus.Query(t.Context(), query)
				assert.NoError(c, err)
				assert.NotEmpty(c, samples, "no answer to %s", query)
			}, harness.ArrivalTimeout, harness.ArrivalPoll)
		})
	}
	for begin := range withoutAnswer {
		assert.True(t, used[begin], "no document has a query that begins with %s", begin)
	}

	for _, block := range documents.Of(blocks, "console") {
		for _, command := range block.Commands() {
			match := regexp.MustCompile("^" + documents.ServerCommand.String() + "$").FindStringSubmatch(command)
			if match == nil {
				continue
			}
			t.Run(command, func(t *testing.T) {
				url := strings.NewReplacer("http://127.0.0.1:9090", j.prometheus.URL(), "http://127.0.0.1:16686", j.jaeger.URL()).Replace(match[1])
				require.EventuallyWithT(t, func(c *assert.CollectT) {
					answer, err := harness.Get(t.Context(), url)
					assert.NoError(c, err)
					assert.Regexp(c, match[2], answer)
				}, harness.ArrivalTimeout, harness.ArrivalPoll)
			})
		}
	}
}
