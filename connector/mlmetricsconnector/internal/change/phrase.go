package change

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxPhraseValue is the length at which a value is cut in a phrase, maxCommit that
// of a commit, in bytes.
const (
	maxPhraseValue = 64
	maxCommit      = 12
)

// phrase says a change in a few words. about is the name of the item, and for a new
// attempt its new hosts.
func phrase(c *Change, about string) string {
	limit := maxPhraseValue
	if c.Kind == mlattr.ChangeCommit {
		limit = maxCommit
	}
	from, to := short(c.From, limit), short(c.To, limit)
	was := " (was " + from + ")"
	switch c.Kind {
	case mlattr.ChangeVersion, mlattr.ChangeCommit, mlattr.ChangeImage, mlattr.ChangeModel, mlattr.ChangeTools, mlattr.ChangeDriver:
		return c.Kind + " " + to + was
	case mlattr.ChangePrompt:
		if about != "" {
			return "prompt " + about + " " + to + was
		}
		return "prompt " + to + was
	case mlattr.ChangeAnsweringModel:
		return "model " + to + " answers for " + short(about, limit) + was
	case mlattr.ChangeSettings:
		return "setting " + short(about, limit) + " " + to + was
	case mlattr.ChangeWorldSize:
		return "world size " + to + was
	case mlattr.ChangeNodes:
		return plural("host", to) + " " + to + was
	case mlattr.ChangeAttempt:
		if about == "" {
			return "attempt " + to
		}
		return "attempt " + to + ": new " + plural("host", about) + " " + short(about, limit)
	default:
		return to + was
	}
}

// plural returns the word for one thing, or for several that are listed.
func plural(word, list string) string {
	if strings.Contains(list, ", ") {
		return word + "s"
	}
	return word
}

// short cuts a text between characters.
func short(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xc0 == 0x80 {
		limit--
	}
	return text[:limit] + "…"
}
