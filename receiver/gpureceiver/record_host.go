package gpureceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/hoststate"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// mountTimeout is how long a reading waits for file systems.
const mountTimeout = time.Second

// recordHost makes the points of what the runs of a host need besides its GPUs: its ports, its
// PCIe links and its network file systems.
func (s *gpuScraper) recordHost(ctx context.Context, now pcommon.Timestamp, host string) {
	ports, devices := hoststate.Links(s.cfg.RootPath)
	for name, port := range ports {
		s.metrics.RecordHwNetworkUpDataPoint(now, shared.OneIf[int64](port.Up), name, host)
		if port.Rate > 0 {
			s.metrics.RecordHwNetworkBandwidthLimitDataPoint(now, port.Rate, name, host)
		}
		for kind, n := range port.Counts {
			if kind == hoststate.Waits {
				s.metrics.RecordInfinibandPortWaitsDataPoint(now, n, name, host)
			} else {
				s.metrics.RecordInfinibandPortErrorsDataPoint(now, n, name, host, metadata.MapAttributeErrorTypePort[kind])
			}
		}
	}
	for address, on := range devices {
		is := metadata.AttributeHwTypeNetwork
		if on.GPU {
			is = metadata.AttributeHwTypeGpu
		}
		for kind, n := range on.Counts {
			s.metrics.RecordPcieErrorsDataPoint(now, n, address, host, is, metadata.MapAttributeErrorTypePcie[kind])
		}
	}
	if !s.cfg.Metrics.HostMountSilence.Enabled {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mountTimeout)
	defer cancel()
	for _, mount := range s.mounts.Look(ctx) {
		s.metrics.RecordHostMountSilenceDataPoint(now, mount.Silent.Seconds(), mount.Point, mount.Type, host)
	}
}
