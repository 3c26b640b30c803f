package mlsampleprocessor

import (
	"fmt"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// notices returns how many spans were lost, and how many units did not wait.
func (s *sampling) notices() []shared.Notice {
	return s.left.Notices(func(reason string) (shared.Notice, bool) {
		n := shared.Notice{Kind: "limit", Fix: fmt.Sprintf("%s: {max_bytes: %d}", s.id.String(), 2*s.cfg.MaxBytes)}
		switch reason {
		case lostRefused:
			n.What, n.Why = "Spans that were to be stored", "The next component refused them; the log says why."
			n.Fix = "Give its exporter a longer sending_queue."
		case lostOverflow:
			n.What = "Spans of steps and calls"
			n.Why = fmt.Sprintf("The next component refused spans, or was slow, until max_bytes (%d) was reached.", s.cfg.MaxBytes)
		default:
			n.What = "Late spans of steps and calls"
			n.Why = fmt.Sprintf("The steps and calls were decided before wait was over, because max_bytes (%d) was reached.", s.cfg.MaxBytes)
		}
		return n, true
	})
}
