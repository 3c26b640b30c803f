package mlstateconverter_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-ml/otelcol-ml/extension/mlstateextension/mlstateconverter"
)

// A configuration gets the extension if it has a component that uses it and does not
// list one. Everything else stays as it is.
func TestConvert(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"a processor": {
			"{processors: {ml_guard/out: }, extensions: {health_check: {path: /}}, service: {extensions: [health_check], telemetry: {logs: {level: warn}}}}",
			"{processors: {ml_guard/out: }, extensions: {health_check: {path: /}, ml_state: }, service: {extensions: [health_check, ml_state], telemetry: {logs: {level: warn}}}}",
		},
		"a connector, no extensions": {
			"{connectors: {ml_metrics: {flush_interval: 1s}}}",
			"{connectors: {ml_metrics: {flush_interval: 1s}}, extensions: {ml_state: }, service: {extensions: [ml_state]}}",
		},
		"an exporter, keys without values": {
			"{exporters: {ml_view: }, processors: , extensions: , service: {extensions: }}",
			"{exporters: {ml_view: }, processors: , extensions: {ml_state: }, service: {extensions: [ml_state]}}",
		},
		"an extension, an empty list": {
			"{extensions: {ml_guard: }, service: {extensions: []}}",
			"{extensions: {ml_guard: , ml_state: }, service: {extensions: [ml_state]}}",
		},
		"an extension that is defined, but not listed": {
			"{processors: {repro_gen: }, extensions: {ml_state: }}",
			"{processors: {repro_gen: }, extensions: {ml_state: }, service: {extensions: [ml_state]}}",
		},
		"an extension that is listed":   {in: "{processors: {ml_enrich: }, extensions: {ml_state/mine: }, service: {extensions: [ml_state/mine]}}"},
		"components that do not use it": {in: "{receivers: {gpu: , otlp: }, processors: {batch: , ml_guardian: }, service: {extensions: [health_check]}}"},
		"components that are none":      {in: "{processors: [ml_enrich], exporters: ml_view}"},
		"nothing":                       {in: "{}"},
		"a list that has what is no id": {in: "{processors: {ml_enrich: }, service: {extensions: [7, ml_state]}}"},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.want
			if want == "" {
				want = test.in
			}
			got := read(t, test.in)
			converter := mlstateconverter.NewFactory().Create(confmap.ConverterSettings{})
			for range 2 { // a second time changes nothing
				require.NoError(t, converter.Convert(t.Context(), got))
				assert.Equal(t, read(t, want).ToStringMap(), got.ToStringMap())
			}
		})
	}
}

func read(t *testing.T, text string) *confmap.Conf {
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	return conf
}
