//go:build !cgo || !linux

package gpureceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// Who asks for NVML by name in a build that cannot call it is told so.
func TestNVMLWithoutCgoRefusesToStart(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Source = SourceNVML
	receiver, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	err = receiver.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, `"source" "nvml" needs a collector that was built with cgo`)
	require.NoError(t, receiver.Shutdown(t.Context()))
}
