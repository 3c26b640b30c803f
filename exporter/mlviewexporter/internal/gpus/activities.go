package gpus

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// Activities of GPUs, besides the kinds LooksHung, Slow and HeldIdle of their problems.
const (
	Working = "working"
	Failed  = "failed"
	Free    = "free"
	NoData  = "no_data"
)

// Count counts the GPUs by what they do. A MIG device counts for the GPU that
// it is part of, which does what the worst of them does.
func Count(state *api.State) {
	turns := []string{Failed, api.LooksHung, api.Slow, api.HeldIdle, NoData, Working, Free}
	counts := make(map[string]int)
	parts := make(map[Ref]int)
	whole := make(map[Ref]bool)
	for _, row := range state.GPUs {
		whole[Ref{Host: row.Host, ID: row.ID}] = true
	}
	for _, row := range state.GPUs {
		if parent := (Ref{Host: row.Host, ID: row.Parent}); row.Parent != "" && whole[parent] {
			turn := slices.Index(turns, row.Activity)
			if worst, known := parts[parent]; !known || turn < worst {
				parts[parent] = turn
			}
		}
	}
	for i := range state.GPUs {
		row := &state.GPUs[i]
		state.Collector.Simulated = state.Collector.Simulated || row.Simulated
		if row.Parent != "" && whole[Ref{Host: row.Host, ID: row.Parent}] {
			continue
		}
		if turn, divided := parts[Ref{Host: row.Host, ID: row.ID}]; divided && turn < slices.Index(turns, row.Activity) {
			row.Activity = turns[turn]
		}
		counts[row.Activity]++
		if since := state.Collector.NoDataSince; row.NoDataSince != nil && (since == nil || row.NoDataSince.Before(*since)) {
			state.Collector.NoDataSince = row.NoDataSince
		}
	}
	state.Collector.GPUs = counts
}
