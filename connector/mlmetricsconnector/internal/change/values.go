package change

import (
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxValues limits the values of one item that are remembered.
	maxValues = 16
	// outOfUse is the time after which a value that was not seen makes room for
	// another one, and is a change when it returns.
	outOfUse = time.Hour
	// settling is how long the values of a new item are its first ones, if it may
	// have several at the same time.
	settling = time.Minute
	// maxAnHour and maxADay limit the changes of one item. What has another value
	// for each request is no change.
	maxAnHour, maxADay = 3, 10
)

// value is a value of an item.
type value struct {
	Text string    `json:"text"`
	Seen time.Time `json:"seen"`
}

// values are those of one item. The zero value is ready.
type values struct {
	// First is when the item was first seen, Fresh when each of the newest values
	// that were new was, the oldest first.
	First time.Time `json:"first"`
	// Known are its values, the one that was seen last first.
	Known []value     `json:"values"`
	Fresh []time.Time `json:"fresh,omitempty"`
}

// see notes that a value was seen. If it is a change, it returns the value before,
// and ok. It allocates only for a value that is not known. settles reports whether an item
// may have several values from the beginning, as a service that uses two models. Else a
// value that returns after outOfUse is a change, as a version that is rolled back.
func (v *values) see(text string, now time.Time, settles bool) (from, to string, ok bool) {
	was, at := "", slices.IndexFunc(v.Known, func(one value) bool { return one.Text == text })
	if len(v.Known) > 0 {
		was = v.Known[0].Text
	}
	known := at >= 0
	if !known {
		if at = len(v.Known); at == 0 {
			v.First = now
		}
		if !v.makeRoom(now) {
			return "", "", false
		}
		at = len(v.Known)
		v.Known = append(v.Known, value{Text: strings.Clone(text)})
	}
	before := v.Known[at].Seen
	v.Known[0], v.Known[at] = v.Known[at], v.Known[0]
	v.Known[0].Seen = now
	switch {
	case known && (settles || at == 0 || now.Sub(before) < outOfUse), !known && len(v.Known) == 1, !known && settles && now.Sub(v.First) < settling:
		return "", "", false
	}
	return was, v.Known[0].Text, v.mayChange(now)
}

// makeRoom reports whether there is room for one more value. As many values that
// are in use at the same time are no changes.
func (v *values) makeRoom(now time.Time) bool {
	if len(v.Known) < maxValues {
		return true
	}
	oldest := slices.MinFunc(v.Known, func(a, b value) int { return a.Seen.Compare(b.Seen) })
	if now.Sub(oldest.Seen) < outOfUse {
		return false
	}
	v.Known = slices.DeleteFunc(v.Known, func(one value) bool { return one == oldest })
	return true
}

// mayChange notes one more change, and reports whether there were few of them
// before it.
func (v *values) mayChange(now time.Time) bool {
	n := len(v.Fresh)
	few := (n < maxAnHour || now.Sub(v.Fresh[n-maxAnHour]) >= time.Hour) && (n < maxADay || now.Sub(v.Fresh[n-maxADay]) >= 24*time.Hour)
	v.Fresh = append(v.Fresh[max(0, n-maxADay+1):], now)
	return few
}

// seen returns when any value was seen last.
func (v *values) seen() time.Time { return v.Known[0].Seen }

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
	kind, to, was := strings.ReplaceAll(c.Kind, "_", " "), short(c.To, limit), " (was "+short(c.From, limit)+")"
	switch c.Kind {
	case mlattr.ChangeFramework:
		return to + was
	case mlattr.ChangeAnsweringModel:
		return "model " + to + " answers for " + short(about, limit) + was
	case mlattr.ChangeSettings:
		return "setting " + short(about, limit) + " " + to + was
	case mlattr.ChangeNodes:
		return plural("host", to) + " " + to + was
	case mlattr.ChangeAttempt:
		if about == "" {
			return "attempt " + to
		}
		return "attempt " + to + ": new " + plural("host", about) + " " + short(about, limit)
	case mlattr.ChangePrompt:
		if about != "" {
			kind += " " + about
		}
	}
	return kind + " " + to + was
}

// plural returns the word for one thing, or for several that are listed.
func plural(word, list string) string {
	if strings.Contains(list, ", ") {
		return word + "s"
	}
	return word
}

// short cuts a text, and shows that it did.
func short(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return mlattr.CutText(text, limit) + "…"
}
