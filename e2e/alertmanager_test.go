package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// firing returns the labels of the alerts that a test of
// docker/prometheus/tests/alerts.yaml expects.
func firing(t *testing.T, test string) (alerts []harness.Labels) {
	text, err := os.ReadFile(harness.Path("docker", "prometheus", "tests", "alerts.yaml"))
	require.NoError(t, err)
	var file struct {
		Tests []struct {
			Name   string `yaml:"name"`
			Alerts []struct {
				Name     string `yaml:"alertname"`
				Expected []struct {
					Labels harness.Labels `yaml:"exp_labels"`
				} `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, each := range file.Tests {
		if each.Name != test {
			continue
		}
		for _, alert := range each.Alerts {
			for _, expected := range alert.Expected {
				labels := maps.Clone(expected.Labels)
				labels["alertname"] = alert.Name
				alerts = append(alerts, labels)
			}
		}
	}
	require.NotEmpty(t, alerts)
	return alerts
}

// notified is a notification: the path of its receiver and the labels of its alerts.
type notified struct {
	path   string
	alerts []harness.Labels
}

// webhook receives notifications.
func webhook(t *testing.T) (url string, all <-chan notified) {
	received := make(chan notified, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Alerts []struct {
				Labels harness.Labels `json:"labels"`
			} `json:"alerts"`
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		n := notified{path: r.URL.Path}
		for _, alert := range body.Alerts {
			n.alerts = append(n.alerts, alert.Labels)
		}
		received <- n
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(server.Close)
	return server.URL, received
}

// One XID is one notification: what its run and its GPU do after it is inhibited.
func TestOneXIDIsOneNotification(t *testing.T) {
	url, received := webhook(t)
	am := harness.StartAlertmanager(t, map[string]string{"http://127.0.0.1:9095": url, "group_wait: 30s": "group_wait: 1s"})
	alerts := firing(t, "one XID")
	require.Greater(t, len(alerts), 6)
	require.NoError(t, am.Fire(t.Context(), alerts...))

	// An alert is active until Alertmanager has seen what inhibits it.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all, err := am.Alerts(t.Context())
		require.NoError(c, err)
		require.Len(c, all, len(alerts))
		for _, alert := range all {
			is := alert.Labels["ml_problem"] == "gpu_failed"
			assert.Equal(c, is, alert.Status.State == "active", "%v", alert.Labels)
		}
	}, 10*time.Second, 20*time.Millisecond)
	first := <-received
	assert.Equal(t, "/page", first.path)
	require.Len(t, first.alerts, 1)
	assert.Equal(t, "gpu_failed", first.alerts[0]["ml_problem"])

	// Another run waits as long as they did, and is not inhibited.
	require.NoError(t, am.Fire(t.Context(), harness.Labels{"alertname": "RunSlow", "severity": "ticket", "job": "t", "ml_run_id": "other"}))
	next := <-received
	assert.Equal(t, "/ticket", next.path, "nothing else was sent before")
	require.Len(t, next.alerts, 1)
	assert.Equal(t, "other", next.alerts[0]["ml_run_id"])
}

// An alert is inhibited only by what it follows from.
func TestInhibitions(t *testing.T) {
	url, _ := webhook(t)
	am := harness.StartAlertmanager(t, map[string]string{"http://127.0.0.1:9095": url})
	alert := func(name string, labels ...string) harness.Labels {
		all := harness.Labels{"alertname": name, "severity": "page"}
		for pair := range slices.Chunk(labels, 2) {
			all[pair[0]] = pair[1]
		}
		return all
	}
	require.NoError(t, am.Fire(t.Context(),
		alert("RunStalled", "ml_run_id", "hung", "job", "t"),
		alert("RunSlow", "ml_run_id", "hung", "job", "t", "is", "inhibited"),
		alert("GPUHeldIdle", "ml_run_id", "hung", "host_name", "n", "hw_id", "g", "is", "inhibited"),
		alert("ProblemTicket", "ml_problem", "checkpoint_overdue", "ml_run_id", "hung", "is", "inhibited"),
		alert("ProblemTicket", "ml_problem", "checkpoint_overdue", "ml_run_id", "other"),
		alert("RunLossNotFinite", "ml_run_id", "hung"),
		alert("GPUHeldIdle", "host_name", "n", "hw_id", "free"),
		alert("ServiceFailing", "job", "agent"),
		alert("ProblemTicket", "ml_problem", "retry_storm", "job", "agent", "is", "inhibited"),
		alert("ProblemTicket", "ml_problem", "retry_storm", "job", "another"),
		alert("ProblemTicket", "ml_problem", "truncated", "job", "agent"),
	))
	// Alertmanager looks for what inhibits an alert after it has accepted it.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all, err := am.Alerts(t.Context())
		require.NoError(c, err)
		require.Len(c, all, 11)
		for _, each := range all {
			assert.Equal(c, each.Labels["is"] == "inhibited", each.Status.State == "suppressed", "%v is %s", each.Labels, each.Status.State)
		}
	}, 10*time.Second, 20*time.Millisecond)
}
