package problem

import (
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Sentence says what the problem is and of what, and since when or for how long.
func (e *Entry) Sentence() string {
	kind, _ := mlattr.ProblemNamed(e.Kind)
	var b strings.Builder
	b.WriteString(e.subject())
	b.WriteString(": ")
	b.WriteString(kind.Title)
	switch {
	case kind.Moment:
		b.WriteString(" at " + e.Onset.UTC().Format(time.RFC3339))
	case e.Stale:
		b.WriteString(" since " + e.Onset.UTC().Format(time.RFC3339) + ", without new evidence since " + e.Evident.UTC().Format(time.RFC3339))
	case e.Ended.IsZero():
		b.WriteString(" since " + e.Onset.UTC().Format(time.RFC3339))
	case e.EndReason == mlattr.ProblemNoEvidence:
		b.WriteString(" is not known any more, without new evidence since " + e.Evident.UTC().Format(time.RFC3339))
	default:
		b.WriteString(" no longer, after " + e.Ended.Sub(e.Onset).Round(time.Second).String())
	}
	b.WriteString(".")
	return b.String()
}

// subject names what has the problem.
func (e *Entry) subject() string {
	s := e.Subject
	var parts []string
	if s.GPU != "" {
		parts = append(parts, "GPU "+s.GPU)
	}
	if s.Host != "" {
		parts = append(parts, "host "+s.Host)
	}
	if s.Run != "" {
		parts = append(parts, "run "+s.Run)
	}
	if s.Resource.Service != "" {
		parts = append(parts, "service "+s.Resource.Service)
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		return "Unknown"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
