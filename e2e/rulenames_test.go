package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// stock are the metrics that rules read and that are in no table of series:
// Prometheus' own, those of the collector's components, and of NCCL's Inspector.
var stock = []string{
	"up",
	"otelcol_exporter_enqueue_failed_spans", "otelcol_exporter_enqueue_failed_metric_points", "otelcol_exporter_enqueue_failed_log_records",
	"otelcol_exporter_send_failed_spans", "otelcol_exporter_send_failed_metric_points", "otelcol_exporter_send_failed_log_records",
	"otelcol_exporter_queue_size", "otelcol_exporter_queue_capacity", "otelcol_extension_ml_guard_endpoints_down", "otelcol_connector_ml_metrics_limit_use",
	"otelcol_exporter_sent_spans", "otelcol_exporter_sent_metric_points", "otelcol_exporter_sent_log_records",
	"otelcol_processor_ml_guard_points_overflowed", "otelcol_processor_ml_guard_spans_overflowed", "otelcol_processor_ml_guard_limit_use",
	// Metrics of clients that have several meanings.
	"nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics", "inference_objective_request_error_total",
	"nccl_bus_bandwidth_gbs_GB_per_second", "nccl_bus_bandwidth_gbs", "nccl_collective_exec_time_microseconds",
}

// TestRulesReadWhatIsWritten holds the rules, and the made-up series of their
// unit tests, against the tables of what the receiver and the connector write, and
// of what the vocabulary knows of clients. A rule that reads another name has no
// value, and nobody sees why.
func TestRulesReadWhatIsWritten(t *testing.T) {
	written, offByDefault := writtenNames(t)
	files, err := filepath.Glob(harness.Path("docker", "prometheus", "rules", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	written = append(written, clientNames(t)...)
	type rules struct {
		Groups []struct {
			Rules []struct {
				Record, Alert, Expr string
				Annotations         map[string]string
			}
		}
		Tests []struct {
			Series []struct{ Series string } `yaml:"input_series"`
		}
	}
	contents := map[string]rules{}
	var recorded []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var content rules
		require.NoError(t, yaml.Unmarshal(text, &content))
		contents[filepath.Base(file)] = content
		for _, group := range content.Groups {
			for _, rule := range group.Rules {
				recorded = append(recorded, rule.Record)
			}
		}
	}
	for file, content := range contents {
		for _, group := range content.Groups {
			for _, rule := range group.Rules {
				read := metricsOf(rule.Expr)
				for _, name := range read {
					assert.Contains(t, slices.Concat(written, recorded, stock), name, "%s: %s%s reads it", file, rule.Record, rule.Alert)
					// DCGM's names are offered as far as there is something to
					// compute them from; what runs.yaml needs must be there.
					if file != "dcgm.yaml" {
						assert.NotContains(t, offByDefault, name, "%s: %s%s reads what is off by default", file, rule.Record, rule.Alert)
					}
				}
				for _, text := range rule.Annotations {
					for _, name := range lookAt.FindAllString(template.ReplaceAllString(text, ""), -1) {
						histogram := slices.Contains(written, name+"_count")
						assert.True(t, histogram || slices.Contains(slices.Concat(written, recorded), name), "%s: %s says to look at %s", file, rule.Alert, name)
					}
				}
			}
		}
		for _, test := range content.Tests {
			for _, series := range test.Series {
				name, _, _ := strings.Cut(series.Series, "{")
				assert.Contains(t, slices.Concat(written, stock), name, "%s makes it up", file)
			}
		}
	}
}

// writtenNames reads the tables of series and the list of optional metrics: the names in
// Prometheus, and of these
// the ones that have to be turned on.
func writtenNames(t *testing.T) (names, offByDefault []string) {
	t.Helper()
	list, err := os.ReadFile(harness.Path("receiver", "gpureceiver", "documentation.md"))
	require.NoError(t, err)
	_, optional, found := strings.Cut(string(list), "\n## Optional Metrics\n")
	require.True(t, found)
	optional, _, _ = strings.Cut(optional, "\n## ")
	row := regexp.MustCompile("(?m)^- \\[`([^`]+)`\\]\\([^)]*\\): `([^`]+)`(?:, (counter|up-down counter|gauge|histogram)[,;]|$)")
	for _, page := range []string{"receiver/gpureceiver/series.md", "connector/mlmetricsconnector/series.md"} {
		text, err := os.ReadFile(harness.Path(page))
		require.NoError(t, err)
		rows := row.FindAllStringSubmatch(string(text), -1)
		require.Len(t, rows, strings.Count(string(text), "\n- [`"), "%s has rows that are not understood", page)
		require.NotEmpty(t, rows, page)
		for _, row := range rows {
			if row[3] == "histogram" {
				names = append(names, row[2]+"_bucket", row[2]+"_sum", row[2]+"_count")
				continue
			}
			names = append(names, row[2])
			if strings.Contains(optional, "\n### "+row[1]+"\n") {
				offByDefault = append(offByDefault, row[2])
			}
		}
	}
	require.NotEmpty(t, offByDefault)
	return names, offByDefault
}

// clientNames returns what the metrics of the vocabulary's clients are called in Prometheus.
func clientNames(t *testing.T) (names []string) {
	t.Helper()
	for _, client := range vocabulary.Tables() {
		for _, metric := range client.Metrics {
			switch name := metric.Source; metric.Instrument {
			case table.Counter:
				names = append(names, name+"_total")
			case table.Histogram:
				names = append(names, name+"_bucket", name+"_sum", name+"_count")
			default:
				names = append(names, name)
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}

// What of a query is no name of a metric, in the order in which it is taken out.
var notMetrics = []*regexp.Regexp{
	regexp.MustCompile(`"[^"]*"`),
	regexp.MustCompile(`#.*`),
	regexp.MustCompile(`\{[^}]*\}`),
	regexp.MustCompile(`\[[^\]]*\]`),
	regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`),
}

// lookAt finds the metrics that an annotation names, outside of its templates.
var lookAt = regexp.MustCompile(`\b(?:ml|hw|nvidia|gen_ai|run|rank)(?:_|:)\w+(?::\w+)*`)

var template = regexp.MustCompile(`\{\{[^}]*\}\}`)

var (
	word     = regexp.MustCompile(`[0-9][\w.]*|[a-zA-Z_:][\w:]*`)
	keywords = []string{"and", "or", "unless", "bool", "offset", "group_left", "group_right"}
)

// metricsOf returns the names of the metrics that a query reads: the words that
// are neither numbers nor keywords nor functions, outside of labels.
func metricsOf(query string) (names []string) {
	for _, not := range notMetrics {
		query = not.ReplaceAllString(query, "")
	}
	for _, at := range word.FindAllStringIndex(query, -1) {
		name, rest := query[at[0]:at[1]], strings.TrimLeft(query[at[1]:], " \n")
		if name[0] < '0' || name[0] > '9' {
			if !slices.Contains(keywords, name) && !strings.HasPrefix(rest, "(") {
				names = append(names, name)
			}
		}
	}
	return names
}

func TestMetricsOfAQuery(t *testing.T) {
	assert.Equal(t, []string{"run:a:rate5m", "b_total", "c", "d"}, metricsOf(`
		# not_this one
		sum by (job, x) (run:a:rate5m{y="{z}", w=~"not|this"} offset 1h) * 0.3e2
		/ on (job) group_left () rate(b_total[1h:15s]) > 0 unless on (h) c
		or label_replace(d, "to", "$1", "from", "(.+)")`))
}
