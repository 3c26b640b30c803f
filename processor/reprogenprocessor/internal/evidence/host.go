package evidence

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/hoststate"
)

// answerWithin is how long file systems may take to answer.
const answerWithin = 3 * time.Second

const unknown = "unknown"

// host says what the host's links have counted, and whether its network file systems answer.
func (g *Gatherer) host(ctx context.Context) (lines []string) {
	ports, devices := hoststate.Links(g.Root)
	for name, port := range ports {
		is := "down"
		if port.Up {
			is = "up"
		}
		lines = append(lines, fmt.Sprintf("port %s: %s, %g Gbit/s%s", name, is, float64(port.Rate)*8/1e9, counted(port.Counts)))
	}
	for address, on := range devices {
		lines = append(lines, fmt.Sprintf("PCIe device %s: %s, at most %s%s", address, cmp.Or(on.Link, unknown), cmp.Or(on.Most, unknown), counted(on.Counts)))
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for _, mount := range g.mounts.Look(ctx) {
		says := "answers"
		if mount.Silent > 0 {
			says = fmt.Sprintf("has not answered for %.0f s", mount.Silent.Seconds())
		}
		lines = append(lines, fmt.Sprintf("file system %s (%s): %s", mount.Point, mount.Type, says))
	}
	slices.Sort(lines)
	return lines
}

// counted says what was counted since the start of the host.
func counted(counts map[string]int64) string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[kind]; n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, kind)
		}
	}
	return b.String()
}
