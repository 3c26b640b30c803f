package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// gpuGroup are the GPUs of a host that do the same for the same holders. It is
// not empty.
type gpuGroup = []*api.GPU

// alike returns a text that GPUs of a group have in common.
func alike(g *api.GPU) string {
	holders := mlattr.Mapped(g.Holders, func(h api.Holder) []string {
		return []string{h.Run, h.RunID, h.Service, h.Owner, cmp.Or(h.Service, h.Name)}
	})
	return fmt.Sprintf("%q %q %q %t %t %t %q", []string{g.Host, g.Name, g.Activity, g.LastActivity, g.Health}, g.Throttle,
		api.Value(g.XID).Code, g.XID != nil, g.Simulated, g.Recorded, holders)
}

func (d *document) gpus() {
	section(d, "gpus", api.Grouped(d.state.GPUs, alike), func(g *gpuGroup) []string {
		first := (*g)[0]
		return []string{
			indexes(g), Printable(first.Name), d.simulated(first.Simulated, first.Recorded), d.activity(first),
			each(g, func(g *api.GPU) *float64 { return g.Utilization }, Percent),
			each(g, func(g *api.GPU) *float64 { return g.Power }, limited(first.PowerLimit, "W", Count)),
			each(g, func(g *api.GPU) *float64 { return g.MemoryUsed }, limited(first.MemoryLimit, "GiB", gib)),
			each(g, func(g *api.GPU) *float64 { return g.Temperature }, limited(nil, "°C", Count)),
			age(d.state.Time, first.IdleSince), holders(g),
		}
	}, d.gpuDetails, func(groups []gpuGroup) int { return len(slices.Concat(groups...)) })
	d.paragraph(0, prefixed("hosts of which no GPU is known: ", Printable(strings.Join(d.state.Collector.HostsWithoutGPU, ", ")), ""))
}

// activity says what a GPU does, or did when it was last read.
func (d *document) activity(g *api.GPU) string {
	if g.NoDataSince == nil {
		return Words(g.Activity)
	}
	return "no data since " + clock(d.state.Time, *g.NoDataSince) + prefixed(", was ", Words(g.LastActivity), "")
}

// gpuDetails writes what is out of the ordinary.
func (d *document) gpuDetails(g *gpuGroup) {
	first, notes := (*g)[0], []string(nil)
	if first.Health != "" && first.Health != "ok" {
		notes = append(notes, "health: "+Words(first.Health))
	}
	if first.XID != nil {
		last := slices.MaxFunc(*g, func(a, b *api.GPU) int { return a.XID.Time.Compare(b.XID.Time) })
		notes = append(notes, joined(" ", "last error of the driver: XID", Printable(last.XID.Code), ago(d.state.Time, &last.XID.Time)))
	}
	if len(first.Throttle) > 0 {
		notes = append(notes, "throttled by "+Words(strings.Join(first.Throttle, ", ")))
	}
	if held := each(g, func(g *api.GPU) *float64 { return g.MemoryUnattributed }, GiB); held != "" && held != "0.0 GiB" {
		notes = append(notes, held+" held by no known process")
	}
	d.detail("", strings.Join(notes, "; "))
}

// each writes the least and the most of a number of the GPUs.
func each(g *gpuGroup, number func(*api.GPU) *float64, write func(*float64) string) string {
	var values []float64
	for _, one := range *g {
		if value := number(one); value != nil && one.NoDataSince == nil {
			values = append(values, *value)
		}
	}
	if len(values) == 0 {
		return ""
	}
	return between(write(new(slices.Min(values))), write(new(slices.Max(values))))
}

// indexes names the GPUs of a group.
func indexes(g *gpuGroup) string {
	names := mlattr.Mapped(*g, func(one *api.GPU) string { return cmp.Or(one.Index, shortID(one.ID)) })
	return joined(":", Printable((*g)[0].Host), Printable(ranges(names)))
}

// ranges writes numbers that follow each other as the first and the last.
func ranges(names []string) string { return joined(",", api.Ranges(names, 2)...) }

// holders names the workloads that hold memory of the GPUs, with their ranks in
// the order of the GPUs.
func holders(g *gpuGroup) string {
	var texts []string
	for i, h := range (*g)[0].Holders {
		var ranks []string
		for _, one := range *g {
			if rank := one.Holders[i].Rank; rank != "" && !slices.Contains(ranks, rank) {
				ranks = append(ranks, rank)
			}
		}
		rank := "rank "
		if len(ranks) > 1 {
			rank = "ranks "
		}
		held := ""
		if len((*g)[0].Holders) > 1 {
			held = GiB(h.Memory)
		}
		texts = append(texts, joined(" ", Printable(cmp.Or(h.Service, h.Name)), prefixed(rank, Printable(ranges(ranks)), ""), prefixed("(", Printable(h.Owner), ")"), held))
	}
	return strings.Join(texts, ", ")
}
