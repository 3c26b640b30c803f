package mlsampleprocessor

import (
	"fmt"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// notices returns how many spans were lost, and how many units did not wait.
func (s *sampling) notices() []shared.Notice {
	return s.left.Notices(func(reason string) (shared.Notice, bool) {
		more := fmt.Sprintf("%s: {max_bytes: %d}", s.id.String(), 2*s.cfg.MaxBytes)
		switch reason {
		case lostRefused:
			return shared.Notice{
				Kind: "limit", What: "Spans that were to be stored", Why: "The next component refused them; the log says why.",
				Fix: "Give its exporter a longer sending_queue.",
			}, true
		case lostOverflow:
			return shared.Notice{
				Kind: "limit", What: "Spans of steps and calls",
				Why: fmt.Sprintf("The next component refused spans, or was slow, until max_bytes (%d) was reached.", s.cfg.MaxBytes), Fix: more,
			}, true
		default:
			return shared.Notice{
				Kind: "limit", What: "Late spans of steps and calls",
				Why: fmt.Sprintf("The steps and calls were decided before wait was over, because max_bytes (%d) was reached.", s.cfg.MaxBytes), Fix: more,
			}, true
		}
	})
}
