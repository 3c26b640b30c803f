package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Prometheus is a running Prometheus server.
type Prometheus struct {
	*Process
	url, data string
}

// StartPrometheus starts Prometheus with the configuration of the compose
// stack, docker/prometheus/prometheus.yaml. That file names its targets as the
// stack's network knows them; targets has the loopback address for each.
func StartPrometheus(tb testing.TB, targets map[string]string) *Prometheus {
	tb.Helper()
	return StartPrometheusWith(tb, "prometheus.yaml", targets)
}

// StartPrometheusWith starts Prometheus with another configuration of
// docker/prometheus, beside which are the rules.
func StartPrometheusWith(tb testing.TB, name string, targets map[string]string) *Prometheus {
	tb.Helper()
	return StartPrometheusAt(tb, Path("docker", "prometheus", name), targets)
}

// StartPrometheusAt starts Prometheus with any configuration file and with further
// flags. The file may name the rules of docker/prometheus as that folder's own do.
func StartPrometheusAt(tb testing.TB, path string, targets map[string]string, flags ...string) *Prometheus {
	tb.Helper()
	dir := tb.TempDir()
	file := filepath.Join(dir, "prometheus.yaml")
	writeConfig(tb, path, targets, file)
	if err := os.CopyFS(filepath.Join(dir, "rules"), os.DirFS(Path("docker", "prometheus", "rules"))); err != nil {
		tb.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", FreePort(tb))
	prometheus := &Prometheus{
		Process: Start(tb, Command{
			Name: "prometheus",
			Path: serverBinary(tb, "prometheus"),
			Args: append([]string{
				"--config.file=" + file,
				"--storage.tsdb.path=" + filepath.Join(dir, "data"),
				// For snapshots.
				"--web.enable-admin-api",
				"--web.listen-address=" + address,
				"--log.level=warn",
				// As the compose stack does, so that graphs lead to traces.
				"--enable-feature=exemplar-storage",
			}, flags...),
			Dir: dir,
		}),
		url:  "http://" + address,
		data: filepath.Join(dir, "data"),
	}
	prometheus.await(tb, func() error { return expectOK(tb.Context(), prometheus.url+"/-/ready") })
	return prometheus
}

// URL returns where Prometheus answers.
func (p *Prometheus) URL() string { return p.url }

// Data returns the folder of Prometheus' database.
func (p *Prometheus) Data() string { return p.data }

// ConnectPrometheus returns a Prometheus that something else has started and
// that answers at the URL. It has no process of its own.
func ConnectPrometheus(url string) *Prometheus { return &Prometheus{url: url} }

// Promtool runs promtool in docker/prometheus and returns what it printed, and
// an error where it is not content.
func Promtool(tb testing.TB, arguments ...string) (string, error) {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), serverBinary(tb, "promtool"), arguments...) //nolint:gosec // the test's own arguments
	command.Dir = Path("docker", "prometheus")
	output, err := command.CombinedOutput()
	return string(output), err
}

// Labels are the labels of one series, its name under "__name__" included.
type Labels map[string]string

// Sample is one element of an instant query's answer.
type Sample struct {
	Labels Labels
	Value  float64
}

// Query evaluates a PromQL expression that gives a vector, now.
func (p *Prometheus) Query(ctx context.Context, expression string) ([]Sample, error) {
	var data struct {
		ResultType string `json:"resultType"`
		Result     []struct {
			Metric Labels `json:"metric"`
			Value  [2]any `json:"value"`
		} `json:"result"`
	}
	if err := p.get(ctx, "/api/v1/query", url.Values{"query": {expression}}, &data); err != nil {
		return nil, err
	}
	if data.ResultType != "vector" {
		return nil, fmt.Errorf("%s is a %s, not a vector", expression, data.ResultType)
	}
	samples := make([]Sample, 0, len(data.Result))
	for _, result := range data.Result {
		text, _ := result.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: value %q: %w", expression, text, err)
		}
		samples = append(samples, Sample{Labels: result.Metric, Value: value})
	}
	return samples, nil
}

// Scalar evaluates an expression that gives exactly one sample.
func (p *Prometheus) Scalar(ctx context.Context, expression string) (float64, error) {
	samples, err := p.Query(ctx, expression)
	if err != nil {
		return math.NaN(), err
	}
	if len(samples) != 1 {
		return math.NaN(), fmt.Errorf("%s has %d samples, not one: %v", expression, len(samples), samples)
	}
	return samples[0].Value, nil
}

// Series returns every series that matches a selector and had a sample within
// the last hour, also those that have ended.
func (p *Prometheus) Series(ctx context.Context, selector string) ([]Labels, error) {
	now := time.Now()
	var data []Labels
	err := p.get(ctx, "/api/v1/series", url.Values{
		"match[]": {selector},
		"start":   {now.Add(-time.Hour).Format(time.RFC3339)},
		"end":     {now.Add(time.Minute).Format(time.RFC3339)},
	}, &data)
	return data, err
}

// Rule is a recording rule or an alert.
type Rule struct {
	Name      string `json:"name"`
	Health    string `json:"health"`
	LastError string `json:"lastError"`
	Type      string `json:"type"`
}

// Rules returns all rules as they were last evaluated.
func (p *Prometheus) Rules(ctx context.Context) ([]Rule, error) {
	var data struct {
		Groups []struct {
			Rules []Rule `json:"rules"`
		} `json:"groups"`
	}
	if err := p.get(ctx, "/api/v1/rules", nil, &data); err != nil {
		return nil, err
	}
	var rules []Rule
	for _, group := range data.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, nil
}

// UnhealthyTargets describes the targets whose last scrape failed or that have
// not been scraped yet.
func (p *Prometheus) UnhealthyTargets(ctx context.Context) ([]string, error) {
	var data struct {
		ActiveTargets []struct {
			ScrapeURL string `json:"scrapeUrl"`
			LastError string `json:"lastError"`
			Health    string `json:"health"`
		} `json:"activeTargets"`
	}
	if err := p.get(ctx, "/api/v1/targets", nil, &data); err != nil {
		return nil, err
	}
	if len(data.ActiveTargets) == 0 {
		return nil, errors.New("Prometheus has no active target")
	}
	var unhealthy []string
	for _, target := range data.ActiveTargets {
		if target.Health != "up" {
			unhealthy = append(unhealthy, fmt.Sprintf("%s is %s: %s", target.ScrapeURL, target.Health, target.LastError))
		}
	}
	return unhealthy, nil
}

// get decodes the data of an answer of Prometheus' API.
func (p *Prometheus) get(ctx context.Context, path string, query url.Values, data any) error {
	body, err := fetch(ctx, p.url+path+"?"+query.Encode())
	if err != nil {
		return err
	}
	var answer struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

// writeConfig writes the configuration at path to file, with each key of instead
// replaced by its value. A key that the configuration does not have fails the test.
func writeConfig(tb testing.TB, path string, instead map[string]string, file string) {
	tb.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // the tests name the file
	if err != nil {
		tb.Fatal(err)
	}
	config := string(text)
	for from, to := range instead {
		if !strings.Contains(config, from) {
			tb.Fatalf("%s has no %q", path, from)
		}
		config = strings.ReplaceAll(config, from, to)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil { //nolint:gosec // a path below the test's own folder
		tb.Fatal(err)
	}
}
