package problem

import (
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxGPUs limits the GPUs of a problem that is restored.
const maxGPUs = 1e6

// Plausible returns those of the problems that may have been open before a restart.
func Plausible(all []Entry) []Entry {
	return slices.DeleteFunc(all[:min(len(all), maxOpen)], func(e Entry) bool {
		kind, known := mlattr.ProblemNamed(e.Kind)
		return !known || kind.Moment || !e.plausible()
	})
}

// plausible reports whether a Board may have had the problem.
func (e *Entry) plausible() bool {
	return max(len(e.Evidence), len(e.Excluded), len(e.Before)) <= maxPhrases && len(e.Held) <= MaxHeld &&
		e.Onset.Unix() > 0 && !e.Evident.Before(e.Onset) && e.Interval >= 0 && e.Interval <= 24*time.Hour && e.GPUs >= 0 && e.GPUs <= maxGPUs
}

// Restore opens the problems that were open before a restart, and that are not open
// now. Their detectors have forgotten what they knew: until one reports it again, a
// problem ends only when it has been gone for 10 minutes, and without a verdict.
func (b *Board) Restore(open []Entry, now time.Time) {
	for i := range open {
		was := &open[i]
		id := key{was.Kind, was.Subject}
		if was.Onset.After(now) || b.open[id] != nil {
			continue
		}
		if entry := b.begin(id, &was.Problem, now); entry != nil {
			entry.Detected, entry.Found, entry.Before = earlier(was.Detected, now), earlier(was.Evident, now), was.Before
			entry.back, entry.Restored = true, true
			b.restored = append(b.restored, entry)
		}
	}
}
