package image

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// A service of the stock image becomes one of this image by its name alone:
// whoever mounted a configuration where the stock image looks for its own, or
// named one in the command, changes nothing else.
func TestStockConfiguration(t *testing.T) {
	project := harness.LoadCompose(t, harness.ComposeOptions{Files: []string{harness.StackFile()}})
	image := project.Services["otelcol-ml"].Image
	s := &stack{Stack: harness.NewStack(t, engine, project)}
	s.startJaeger(t)

	config := harness.Path("e2e", "stacks", "testdata", "taskweaver", "collector.yaml")
	for number, test := range []struct {
		name, target string
		command      []string
	}{
		{name: "otelcol", target: "/etc/otelcol/config.yaml"},
		{name: "contrib", target: "/etc/otelcol-contrib/config.yaml"},
		{name: "command", target: "/etc/otel-collector-config.yaml", command: []string{"--config=/etc/otel-collector-config.yaml"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			collector := s.RunImage(t, test.name, image,
				[]string{"--read-only", "--cap-drop", "ALL", "--volume", config + ":" + test.target + ":ro"},
				test.command, 4317, 9464)
			collector.AwaitOutput(t, "Everything is ready.")
			assert.Contains(t, collector.Output(), "4317")

			sender, err := harness.NewGRPCSender(collector.Address(t, 4317))
			require.NoError(t, err)
			defer func() { assert.NoError(t, sender.Close()) }()
			traces, span := oneSpan("stock-"+test.name, byte(number+16))
			require.NoError(t, sender.Traces(t.Context(), traces))
			s.jaeger.AwaitSpans(t, []*sentlog.Span{span})

			// The configuration's own port for metrics, which the image's has not.
			_, err = harness.Scrape(t.Context(), collector.Address(t, 9464))
			require.NoError(t, err)
			assert.Zero(t, collector.Stop(t), "exit code after SIGTERM")
			assert.Empty(t, harness.LogErrors(collector.Output()))
		})
	}
}

// The names of the stock images' programs start this one, for charts and files
// that name the program.
func TestStockPrograms(t *testing.T) {
	project := harness.LoadCompose(t, harness.ComposeOptions{Files: []string{harness.StackFile()}})
	for _, program := range []string{"/otelcol", "/otelcol-contrib"} {
		engine.Adapt(t, project.Services["otelcol-ml"].Image, program, "--version")
	}
}
