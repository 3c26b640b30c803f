package mlenrichprocessor

import "github.com/otelcol-ml/otelcol-ml/internal/shared"

// notices returns how many entries of each index were removed because it was full.
func (s *store) notices() (all []shared.Notice) {
	for _, size := range s.sizes() {
		if size.Evicted > 0 {
			all = append(all, shared.Notice{
				Key: "evicted " + size.Index, Kind: "limit", Count: size.Evicted,
				What: "What telemetry has in common: the index of " + size.Index,
				Why:  "The index is full, so its oldest entries were removed early.",
				Fix:  "Send a part of the clients to another collector.",
			})
		}
	}
	return all
}
