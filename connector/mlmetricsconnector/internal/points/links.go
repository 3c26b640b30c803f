package points

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/links"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// hasFaults says what has the faults that a metric counts.
var hasFaults = map[string]string{
	mlattr.PortErrors: links.Port, mlattr.PCIeErrors: links.PCIe, mlattr.GPUNVLinkErrors: links.NVLink, mlattr.MountSilence: links.Mount,
}

// noteLinks records errors of links, and file systems that do not answer, as the gpu receiver
// sends them. Other metrics have no effect.
func (s *Seen) noteLinks(m pmetric.Metric, now time.Time) {
	what, ok := hasFaults[m.Name()]
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, point := range mlattr.NumberPoints(m).All() {
		attrs := point.Attributes()
		id := cmp.Or(mlattr.IDAt(attrs, mlattr.HardwareID), mlattr.IDAt(attrs, mlattr.Mountpoint))
		if value, ok := mlattr.Number(point); ok && id != "" {
			s.links.Count(mlattr.IDAt(attrs, mlattr.HostName), links.Key{What: what, ID: id, Kind: mlattr.IDAt(attrs, mlattr.ErrorType)}, value, now)
		}
	}
}
