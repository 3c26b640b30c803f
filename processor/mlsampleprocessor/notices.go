package mlsampleprocessor

import "github.com/otelcol-ml/otelcol-ml/internal/shared"

// decidedEarly is the reason of the notice about units that were decided early. The
// other reasons are those of lost spans.
const decidedEarly = "early"

// notices returns what was decided early or lost, and what a kill would lose.
func (s *sampling) notices() []shared.Notice {
	id := s.id.String()
	all := s.telemetry.left.Notices(func(reason string) (shared.Notice, bool) {
		n := shared.Notice{Kind: "limit", Fix: id + ": {max_bytes: <more>}"}
		switch reason {
		case decidedEarly:
			n.What, n.Why = "Steps and calls that were decided early", "They exceed max_bytes. A later failure cannot keep them."
		case lostOverflow:
			n.What, n.Why = "Spans that were lost", "Nothing could be sent, and max_bytes was reached."
		default:
			n.What, n.Why, n.Fix = "Kept spans that were lost", "The exporter refused them.", "sending_queue of the exporter"
		}
		return n, true
	})
	if waiting := s.sampler.Bytes(); waiting > 0 && !s.cfg.DryRun {
		all = append(all, shared.Notice{
			Key: "waiting", Kind: "limit", What: "Bytes of spans that wait", Count: waiting,
			Why: "They are acknowledged and not exported yet: a kill loses them, a shutdown does not.", Fix: id + ": {wait: <less>}",
		})
	}
	return all
}
