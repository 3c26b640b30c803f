package reprogenprocessor

import (
	"fmt"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// notices returns why failures have no reproduction, or one that does not run.
func (r *recorder) notices() []shared.Notice {
	id := r.id.Value.AsString()
	all := r.left.Notices(func(reason string) (shared.Notice, bool) {
		notice, ok := r.whyDropped(reason)
		notice.What = "Failures without a reproduction, or with an incomplete one"
		return notice, ok
	})
	if len(r.cfg.AllowedModules) == 0 && r.groups.Len() > 0 {
		all = append(all, shared.Notice{
			Key: "allowed_modules", Kind: "reproduction", What: "Reproductions that call recorded functions without a flag",
			Why: "allowed_modules is empty, so each script asks at a terminal, and needs --allow-module elsewhere.",
			Fix: id + ": {allowed_modules: [<module>]}",
		})
	}
	if !r.cfg.CaptureContent {
		all = append(all, shared.Notice{
			Key: "capture_content", Kind: "content", What: "Arguments, messages and stack traces in reproductions",
			Why: "capture_content is false.", Fix: id + ": {capture_content: true}",
		})
	}
	return all
}

// whyDropped returns why failures were dropped for a reason, and what changes it.
func (r *recorder) whyDropped(reason string) (shared.Notice, bool) {
	full := shared.Notice{
		Kind: "limit", Why: "Failures wait for sibling_wait, and their number or their traces are at a limit.",
		Fix: r.id.Value.AsString() + ": {sibling_wait: 1s}",
	}
	notice, ok := map[string]shared.Notice{
		dropRateLimited: {
			Kind: "limit", Why: fmt.Sprintf("The budget of artifacts_per_minute (%d) is used up.", r.cfg.ArtifactsPerMinute),
			Fix: fmt.Sprintf("%s: {artifacts_per_minute: %d}", r.id.Value.AsString(), 2*r.cfg.ArtifactsPerMinute),
		},
		dropQueueFull: full,
		dropMemory:    full,
		dropNoSpace: {
			Kind: "disk", Why: fmt.Sprintf("The disk of directory has less than min_free_bytes (%d) free.", r.cfg.MinFreeBytes),
			Fix: "Make room on the disk of " + r.cfg.Directory,
		},
		dropWriteError: {
			Kind: "disk", Why: "The files could not be written; the log says why.", Fix: "Check the directory " + r.cfg.Directory,
		},
	}[reason]
	return notice, ok
}
