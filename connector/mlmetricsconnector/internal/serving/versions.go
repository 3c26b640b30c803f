package serving

import (
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

// Versions has the newest versions of a service. Index 0 is for none.
type Versions struct {
	names [shift.Versions]string
	seen  [shift.Versions]time.Time
}

// index returns that of a version. Beyond the limit the version that was seen
// longest ago is forgotten.
func (v *Versions) index(name string, now time.Time) uint8 {
	if name == "" {
		return 0
	}
	oldest := 1
	for i := 1; i < len(v.names); i++ {
		if v.names[i] == name {
			v.seen[i] = now
			return uint8(i) // #nosec G115 -- below shift.Versions
		}
		if v.seen[i].Before(v.seen[oldest]) {
			oldest = i
		}
	}
	v.names[oldest], v.seen[oldest] = strings.Clone(name), now
	return uint8(oldest) // #nosec G115 -- below shift.Versions
}

// Name returns a version as evidence names it.
func (v *Versions) Name(index int) string {
	if v.names[index] == "" {
		return "no version"
	}
	return "version " + v.names[index]
}
