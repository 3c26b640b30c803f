package page

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

// Each of these would set window.ran, if it were anything but text.
const (
	script   = `<script>ran=1</script>`
	image    = `"'><img src=x onerror=ran=1>`
	template = `{{constructor.constructor('ran=1')()}}${ran=1}`
	link     = `javascript:ran=1`
	bidi     = "\u202etxt.exe\u2066"
	ansi     = "\x1b[31mred\x1b[0m\x1b]0;title\x07"
)

var long = strings.Repeat("0123456789", 1000)

// TestHostileTelemetry has each name that a sender chooses be an attack.
func TestHostileTelemetry(t *testing.T) {
	t.Parallel()
	c := startCollector(t, nil)
	sendHostile(t, c)
	tab := visit(t, address(t, c), "")
	tab.Await(row("needs", script))
	tab.Await(openAll)
	tab.Await(unfoldAll)
	tab.Await(row("runs", image))
	text := browser.Eval[string](tab, "document.body.textContent")
	for name, attack := range map[string]string{
		"script": script, "image": image, "template": template, "bidi": "txt.exe", "ansi": `red\u001b]0;title\u0007`,
	} {
		assert.Contains(t, text, attack, "%s is shown as text", name)
	}
	assert.NotContains(t, text, "\x1b")
	assert.NotContains(t, text, "[31mred", "colors are no content")
	assert.NotContains(t, text, long, "no name is shown whole that is as long as a page")
	assert.False(t, browser.Eval[bool](tab, `"ran" in window`), "telemetry ran")
	assert.Equal(t, 0, browser.Eval[int](tab, `document.querySelectorAll("main script, main img, main iframe, main [onerror]").length`))
	assert.Empty(t, browser.Eval[[]string](tab, `[...document.querySelectorAll("a[href]")].map(a => a.href).filter(href => !/^https?:/.test(href))`))
	for _, width := range widths {
		tab.Resize(width, 900)
		// Columns leave a narrow window after it is drawn.
		tab.Await("(" + widest + ") === ''")
	}
	assert.Empty(t, tab.Violations())
}

// sendHostile sends a minute of telemetry.
func sendHostile(t *testing.T, c *harness.Collector) {
	t.Helper()
	settings := scenario.Settings{Seed: 3, Rate: 5, Ranks: 2, MetricsInterval: time.Second}
	site := fleet.NewSite("hostile", settings)
	hangs := site.Train(fleet.Training{Service: "a" + script, Job: 1, User: 1, Places: fleet.Places(site.AddHost("gpu-"+image, 4))})
	site.Train(fleet.Training{Service: "b" + image, Job: 2, User: 2, Places: fleet.Places(site.AddHost("gpu-"+bidi+ansi, 2))})
	site.Train(fleet.Training{Service: "c" + long, Job: 3, User: 3, Places: fleet.Places(site.AddHost("gpu-"+long, 2))})
	agent := site.Serve(fleet.Service{
		Name: "d" + template, Version: "1" + ansi, Host: "svc" + bidi, Model: script + long, Tool: link, Requests: 2,
	})
	agent.Fail(0.3, "Error"+script, image+bidi+ansi+template)
	site.Before(200, func() { hangs.Hang(1) })
	pool, err := scenario.New("snakepit", settings)
	require.NoError(t, err)

	sender, err := harness.NewGRPCSender(c.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()
	start := time.Now().Add(-time.Minute)
	for step := range 300 {
		at := start.Add(time.Duration(step) * time.Second / 5)
		for _, batch := range append(site.Step(at), pool.Step(at)...) {
			send(t, sender, batch)
		}
	}
}

// send sends a request, with attacks in the names of calls.
func send(t *testing.T, sender *harness.GRPCSender, batch scenario.Batch) {
	t.Helper()
	var err error
	switch batch.Signal {
	case sentlog.SignalTraces:
		for _, resource := range batch.Traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					attack(span.Attributes())
					for _, event := range span.Events().All() {
						attack(event.Attributes())
					}
				}
			}
		}
		err = sender.Traces(t.Context(), batch.Traces)
	case sentlog.SignalMetrics:
		err = sender.Metrics(t.Context(), batch.Metrics)
	case sentlog.SignalLogs:
		err = sender.Logs(t.Context(), batch.Logs)
	}
	require.NoError(t, err)
}

// attack changes what names a call.
func attack(attributes pcommon.Map) {
	for key, suffix := range map[string]string{
		"library": script, "function": image, "pool": template, "worker_id": bidi,
		"snakepit.command": ansi, "snakepit.session_id": long, "snakepit.correlation_id": link,
	} {
		if value, ok := attributes.Get(key); ok && value.Type() == pcommon.ValueTypeStr {
			value.SetStr(value.Str() + suffix)
		}
	}
}
