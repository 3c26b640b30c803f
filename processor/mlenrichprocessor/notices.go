package mlenrichprocessor

import "github.com/otelcol-ml/otelcol-ml/internal/shared"

// notices returns how many requests do not count because another span reports them,
// and how many entries of each index were removed because it was full.
func (s *store) notices() (all []shared.Notice) {
	for _, joined := range [...]struct {
		key, why string
		count    int64
	}{
		{"joined by id", "Another instrumentation of the service reports the same response id at the same time.", s.keys.Joined().ByID},
		{"joined by times", "Another instrumentation of the process reports the same model and usage at the same time.", s.keys.Joined().ByTimes},
	} {
		if joined.count > 0 {
			all = append(all, shared.Notice{
				Key: joined.key, Kind: "joined", Count: joined.count, What: "Requests to models that were reported twice, and count once", Why: joined.why,
				Fix: "Set ml.usage.counted to true on the spans of an instrumentation that has requests of its own, before ml_enrich.",
			})
		}
	}
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
