package problem

import (
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Sentence says what the problem is and of what, and since when or for how long.
func (e *Entry) Sentence() string {
	kind, _ := mlattr.ProblemNamed(e.Kind)
	onset, evident := e.Onset.UTC().Format(time.RFC3339), e.Evident.UTC().Format(time.RFC3339)
	text := e.subject() + ": " + kind.Title
	switch {
	case kind.Moment:
		text += " at " + onset
	case e.Stale:
		text += " since " + onset + ", without new evidence since " + evident
	case e.Ended.IsZero():
		text += " since " + onset
	case e.EndReason == mlattr.ProblemNoEvidence:
		text += " is not known any more, without new evidence since " + evident
	default:
		text += " no longer, after " + e.Ended.Sub(e.Onset).Round(time.Second).String()
	}
	return text + "."
}

// subject names what has the problem.
func (e *Entry) subject() string {
	s := e.Subject
	var parts []string
	for _, part := range [...]struct{ of, name string }{{"GPU ", s.GPU}, {"host ", s.Host}, {"run ", s.Run}, {"service ", s.Resource.Service}} {
		if part.name != "" {
			parts = append(parts, part.of+part.name)
		}
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		return "Unknown"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
