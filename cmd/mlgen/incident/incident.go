// Package incident plays incidents: a site that is well, and after Onset steps
// something goes wrong. Each incident is a file with the function that makes its
// site. What goes wrong stays wrong until the end.
package incident

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
)

// Onset is the number of steps before something goes wrong: enough for what is
// usual to be known. It is also the time that a reader has to see a healthy
// page.
const Onset = 200

var incidents = map[string]func(*fleet.Site){
	"hang":          hang,
	"slow-input":    slowInput,
	"bad-version":   badVersion,
	"held-idle":     heldIdle,
	"hang-at-start": hangAtStart,
}

// Names lists the incidents in alphabetical order.
func Names() []string {
	return slices.Sorted(maps.Keys(incidents))
}

// New returns the named incident, or an error that lists the names.
func New(name string, settings scenario.Settings) (*fleet.Site, error) {
	play, ok := incidents[name]
	if !ok {
		return nil, fmt.Errorf("unknown incident %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	site := fleet.NewSite(name, settings)
	play(site)
	return site, nil
}
