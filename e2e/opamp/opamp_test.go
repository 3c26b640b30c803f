package opamp_test

import (
	"context"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/open-telemetry/opamp-go/protobufs"
	"github.com/open-telemetry/opamp-go/server"
	"github.com/open-telemetry/opamp-go/server/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// inClear are the secrets of testdata/secrets.yaml that are reported as they are, which
// docs/operations.md says.
var inClear = []string{
	"SECRET_ATTRIBUTE", "SECRET_HEADERS_SETTER", "SECRET_HTPASSWD", "SECRET_KAFKA_PASSWORD", "SECRET_RESOURCE", "SECRET_URL",
}

// console is an OpAMP server, with the newest of all that one collector has reported.
type console struct {
	endpoint string

	mu         sync.Mutex
	authorized string
	able       protobufs.AgentCapabilities
	agent      map[string]string
	health     *protobufs.ComponentHealth
	config     string
	components map[string]*protobufs.ComponentDetails
}

// startConsole starts a server that ends with the test.
func startConsole(t *testing.T) *console {
	t.Helper()
	c := &console{agent: make(map[string]string)}
	s := server.New(nil)
	require.NoError(t, s.Start(server.StartSettings{
		ListenEndpoint: "127.0.0.1:0",
		Settings: server.Settings{Callbacks: types.Callbacks{OnConnecting: func(request *http.Request) types.ConnectionResponse {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.authorized = request.Header.Get("Authorization")
			return types.ConnectionResponse{Accept: true, ConnectionCallbacks: types.ConnectionCallbacks{OnMessage: c.take}}
		}}},
	}))
	t.Cleanup(func() { assert.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	c.endpoint = "ws://" + s.Addr().String() + "/v1/opamp"
	return c
}

// take keeps what a message has, and asks for the components where it has their hash only.
func (c *console) take(_ context.Context, _ types.Connection, m *protobufs.AgentToServer) *protobufs.ServerToAgent {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range [][]*protobufs.KeyValue{m.GetAgentDescription().GetIdentifyingAttributes(), m.GetAgentDescription().GetNonIdentifyingAttributes()} {
		for _, attribute := range of {
			c.agent[attribute.GetKey()] = attribute.GetValue().GetStringValue()
		}
	}
	c.able |= protobufs.AgentCapabilities(m.GetCapabilities())
	if m.GetHealth() != nil {
		c.health = m.GetHealth()
	}
	for _, file := range m.GetEffectiveConfig().GetConfigMap().GetConfigMap() {
		c.config += string(file.GetBody())
	}
	answer := &protobufs.ServerToAgent{InstanceUid: m.GetInstanceUid()}
	if available := m.GetAvailableComponents(); len(available.GetComponents()) > 0 {
		c.components = available.GetComponents()
	} else if available != nil {
		answer.Flags = uint64(protobufs.ServerToAgentFlags_ServerToAgentFlags_ReportAvailableComponents)
	}
	return answer
}

// await waits until all that a collector reports is there.
func (c *console) await(t *testing.T, config bool) {
	t.Helper()
	require.EventuallyWithT(t, func(poll *assert.CollectT) {
		c.mu.Lock()
		defer c.mu.Unlock()
		assert.True(poll, c.health.GetHealthy(), "health")
		assert.NotEmpty(poll, c.agent, "the agent's description")
		assert.NotEmpty(poll, c.components, "components")
		assert.True(poll, !config || c.config != "", "configuration")
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
}

// collect starts production.yaml with a secret in each place that has one.
func collect(t *testing.T, c *console, overrides map[string]any) (secrets map[string]string) {
	t.Helper()
	overlay := harness.Path("e2e", "opamp", "testdata", "secrets.yaml")
	text, err := os.ReadFile(overlay)
	require.NoError(t, err)
	secrets = map[string]string{"OTELCOL_ML_HASH_KEY": "value-of-hash-key"}
	for _, name := range regexp.MustCompile(`SECRET_[A-Z_]+`).FindAllString(string(text), -1) {
		secrets[name] = "value-of-" + strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	}
	var env []string
	for name, value := range secrets {
		env = append(env, name+"="+value)
	}
	overrides["extensions::opamp::server::ws::endpoint"] = c.endpoint
	harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "production.yaml"), Merged: []string{overlay},
		Overrides: overrides, Env: env, Dir: t.TempDir(),
	})
	return secrets
}

// TestReports has a collector report to an OpAMP server who it is, how it is and what its
// configuration is, in which secrets are hidden but for those that docs/operations.md names.
func TestReports(t *testing.T) {
	c := startConsole(t)
	secrets := collect(t, c, map[string]any{})
	c.await(t, true)

	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Equal(t, secrets["SECRET_OPAMP_HEADER"], c.authorized)
	assert.Equal(t, "otelcol-ml", c.agent["service.name"])
	for _, key := range []string{"service.version", "service.instance.id", "host.name", "os.type", "os.description", "host.arch"} {
		assert.NotEmpty(t, c.agent[key], key)
	}
	assert.NotContains(t, c.agent, "token", "resource attributes are not in it by default")
	assert.Contains(t, slices.Collect(maps.Keys(c.health.GetComponentHealthMap())), "pipeline:traces/in")
	assert.Contains(t, c.components["processors"].GetSubComponentMap(), "ml_enrich")
	assert.Contains(t, c.config, "ml_enrich:")
	for name, value := range secrets {
		assert.Equal(t, slices.Contains(inClear, name), strings.Contains(c.config, value), "%s is reported in clear", name)
	}
	// The key of hashes is in two places.
	assert.Equal(t, len(secrets)-len(inClear)+1, strings.Count(c.config, "[REDACTED]")+strings.Count(c.config, "<secret>"))
	const reports = protobufs.AgentCapabilities_AgentCapabilities_ReportsStatus | protobufs.AgentCapabilities_AgentCapabilities_ReportsHealth |
		protobufs.AgentCapabilities_AgentCapabilities_ReportsEffectiveConfig | protobufs.AgentCapabilities_AgentCapabilities_ReportsAvailableComponents
	assert.Equal(t, reports, c.able&^protobufs.AgentCapabilities_AgentCapabilities_ReportsHeartbeat, "it accepts nothing from the server")
}

// TestReportsNoConfiguration has the setting that keeps the configuration back.
func TestReportsNoConfiguration(t *testing.T) {
	c := startConsole(t)
	collect(t, c, map[string]any{"extensions::opamp::capabilities": map[string]any{"reports_effective_config": false}})
	c.await(t, false)

	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Empty(t, c.config)
}
