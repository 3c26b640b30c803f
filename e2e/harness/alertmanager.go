package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
)

// Alertmanager is a running Alertmanager.
type Alertmanager struct {
	*Process
	url string
}

// Alert is an alert as Alertmanager knows it.
type Alert struct {
	Labels Labels `json:"labels"`
	Status struct {
		// State is active, or suppressed if something inhibits the alert.
		State       string   `json:"state"`
		InhibitedBy []string `json:"inhibitedBy"`
	} `json:"status"`
}

// StartAlertmanager starts Alertmanager with docker/alertmanager/alertmanager.yaml,
// in which each key of instead is replaced by its value.
func StartAlertmanager(tb testing.TB, instead map[string]string) *Alertmanager {
	tb.Helper()
	path := Path("docker", "alertmanager", "alertmanager.yaml")
	dir := tb.TempDir()
	file := filepath.Join(dir, "alertmanager.yaml")
	writeConfig(tb, path, instead, file)
	address := fmt.Sprintf("127.0.0.1:%d", FreePort(tb))
	am := &Alertmanager{
		Process: Start(tb, Command{
			Name: "alertmanager", Path: serverBinary(tb, "alertmanager"), Dir: dir,
			Args: []string{
				"--config.file=" + file, "--storage.path=" + filepath.Join(dir, "data"),
				"--web.listen-address=" + address, "--log.level=warn",
				// One server, without a cluster.
				"--cluster.listen-address=",
			},
		}),
		url: "http://" + address,
	}
	am.await(tb, func() error { return expectOK(tb.Context(), am.url+"/-/ready") })
	return am
}

// Fire sends alerts with these labels.
func (a *Alertmanager) Fire(ctx context.Context, alerts ...Labels) error {
	type alert struct {
		Labels Labels `json:"labels"`
	}
	all := make([]alert, 0, len(alerts))
	for _, labels := range alerts {
		all = append(all, alert{labels})
	}
	body, err := json.Marshal(all)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/api/v2/alerts", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	status, answer, err := do(request)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("send alerts: status %d: %.500s", status, answer)
	}
	return err
}

// Alerts returns all alerts that fire.
func (a *Alertmanager) Alerts(ctx context.Context) (all []Alert, err error) {
	body, err := fetch(ctx, a.url+"/api/v2/alerts")
	if err == nil {
		err = json.Unmarshal(body, &all)
	}
	return all, err
}
