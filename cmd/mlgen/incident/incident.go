// Package incident plays incidents: a site that is well, and after Onset steps
// something goes wrong. Each incident is a file with the function that makes its
// site.
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

// apart is the number of steps between the onsets of incidents that end.
const apart = 150

// course is what goes wrong at a site, and how it is mended. Both can happen again.
type course struct{ begins, ends func() }

var incidents = map[string]func(*fleet.Site) course{
	"hang":          hang,
	"slow-input":    slowInput,
	"bad-version":   badVersion,
	"held-idle":     heldIdle,
	"hang-at-start": hangAtStart,
	"gpu-failed":    gpuFailed,
}

// Names lists the incidents in alphabetical order.
func Names() []string {
	return slices.Sorted(maps.Keys(incidents))
}

// New returns the named incident, or an error that lists the names. What goes wrong lasts
// for a number of steps, is well for at least half as many, and comes again; with 0 it
// stays wrong until the end.
func New(name string, settings scenario.Settings, lasts int) (*fleet.Site, error) {
	play, ok := incidents[name]
	if !ok {
		return nil, fmt.Errorf("unknown incident %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	site := fleet.NewSite(name, settings)
	of := play(site)
	if lasts == 0 {
		site.Before(Onset+1, of.begins)
		return site, nil
	}
	place := slices.Index(Names(), name)
	again(site, of, Onset+1+apart*place, lasts, lasts/2*(1+place%3))
	return site, nil
}

// again has a course begin at a step, end after others, and, after a time that is well,
// begin again.
func again(site *fleet.Site, of course, at, lasts, well int) {
	site.Before(at, of.begins)
	site.Before(at+lasts, func() {
		of.ends()
		again(site, of, at+lasts+well, lasts, well)
	})
}
