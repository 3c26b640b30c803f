package logwait

import (
	"fmt"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// lost is the reason for records that were refused after they had waited. The
// others are those of reason.
const lost = "lost"

// Notices returns how many log records went on without what their spans say.
func (w *Waiter[S]) Notices() []shared.Notice {
	id := w.processor.Value.AsString()
	return w.left.Notices(func(why string) (shared.Notice, bool) {
		notice := shared.Notice{Kind: "logs", What: "The run of log records"}
		switch why {
		case string(reasonTimeout):
			notice.Why = fmt.Sprintf("No span of their trace arrived within log_wait (%s).", w.config.Wait)
			notice.Fix = fmt.Sprintf("%s: {log_wait: %s}", id, 2*w.config.Wait)
		case string(reasonOverflow):
			notice.Kind, notice.Why = "limit", fmt.Sprintf("max_waiting_bytes (%d) of records wait already.", w.config.MaxBytes)
			notice.Fix = fmt.Sprintf("%s: {max_waiting_bytes: %d}", id, 2*w.config.MaxBytes)
		case lost:
			notice.What, notice.Why = "Log records", "The next component refused them after they had waited; the log says why."
			notice.Fix = id + ": {log_wait: 0s}"
		}
		return notice, notice.Why != ""
	})
}
