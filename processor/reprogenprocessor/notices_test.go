package reprogenprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// published returns what the world's processor publishes, by key.
func (w *world) published() map[string]shared.Notice {
	byKey := map[string]shared.Notice{}
	for _, notice := range w.host.State().Notices()[w.traces.Shared.id.Value.AsString()] {
		byKey[notice.Key] = notice
	}
	return byKey
}

func TestNotices(t *testing.T) {
	cfg := testConfig(t)
	cfg.MinFreeBytes, cfg.AllowedModules, cfg.CaptureContent = 1<<60, nil, false
	w := newWorld(t, cfg)
	id := w.traces.Shared.id.Value.AsString()
	assert.NotContains(t, w.published(), "allowed_modules", "nothing has failed")
	w.span(mean())
	w.pass(0)
	assert.Equal(t, map[string]shared.Notice{
		"no_space": {
			Key: "no_space", Kind: "disk", Count: 1, What: "Failures without a reproduction, or with an incomplete one",
			Why: "The disk of directory has less than min_free_bytes (1152921504606846976) free.", Fix: "Make room on the disk of " + cfg.Directory,
		},
		"allowed_modules": {
			Key: "allowed_modules", Kind: "reproduction", What: "Reproductions that call recorded functions without a flag",
			Why: "allowed_modules is empty, so each script asks at a terminal, and needs --allow-module elsewhere.", Fix: id + ": {allowed_modules: [<module>]}",
		},
		"capture_content": {
			Key: "capture_content", Kind: "content", What: "Arguments, messages and stack traces in reproductions",
			Why: "capture_content is false.", Fix: id + ": {capture_content: true}",
		},
	}, w.published())
	w.shutdown()
	assert.Empty(t, w.published())
}

func TestNoticeOfABudget(t *testing.T) {
	cfg := testConfig(t)
	cfg.ArtifactsPerMinute, cfg.limits.burst = 1, 1
	w := newWorld(t, cfg)
	for i := range 4 {
		w.span(unlike(i))
	}
	notice := w.published()["rate_limited"]
	assert.Positive(t, notice.Count)
	assert.Equal(t, "The budget of artifacts_per_minute (1) is used up.", notice.Why)
	assert.Equal(t, w.traces.Shared.id.Value.AsString()+": {artifacts_per_minute: 2}", notice.Fix)
}
