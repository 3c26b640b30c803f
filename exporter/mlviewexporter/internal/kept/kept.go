// Package kept bounds what is held of what clients send: texts, times and rows of lists, and says
// what leaves a full list first.
package kept

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Lengths at which texts are cut, in characters.
const (
	MaxLabel   = 128
	MaxMessage = 512
	// maxMessageWithoutContent is how much of a message repro_gen's groups show.
	maxMessageWithoutContent = 200
)

// Texts has one copy of equal texts. It forgets all of them when it has grown too large.
type Texts struct {
	// content reports whether whole messages of errors are held.
	content bool
	all     map[string]string
	bytes   int
}

// NewTexts returns Texts. content reports whether whole messages of errors are held.
func NewTexts(content bool) *Texts { return &Texts{content: content} }

// maxTexts is the size of the texts that are known, in bytes.
const maxTexts = 8 << 20

// Of returns a copy of a text that shares no memory with it, cut to maxLabel
// characters.
func (t *Texts) Of(text string) string {
	if text == "" {
		return ""
	}
	if known, ok := t.all[text]; ok {
		return known
	}
	own := strings.Clone(Cut(text, MaxLabel))
	// A text that is cut would have to be kept whole to be found.
	if len(own) != len(text) {
		return own
	}
	if t.all == nil || t.bytes+len(own) > maxTexts {
		t.all, t.bytes = make(map[string]string), 0
	}
	t.all[own], t.bytes = own, t.bytes+len(own)+32
	return own
}

// Set replaces a text that is held by another one, unless that is empty.
func (t *Texts) Set(held *string, text string) {
	if text != "" && text != *held {
		*held = t.Of(text)
	}
}

// Message returns what is held of the message of an error.
func (t *Texts) Message(text string) string {
	limit := maxMessageWithoutContent
	if t.content {
		limit = MaxMessage
	}
	return strings.Clone(Cut(text, limit))
}

// Cut returns at most limit characters of a text, as valid UTF-8. The result may
// share memory with the text.
func Cut(text string, limit int) string {
	// A character that is cut there is beyond the limit.
	text = strings.ToValidUTF8(text[:min(len(text), utf8.UTFMax*limit)], "\uFFFD")
	n := 0
	for i := range text {
		if n == limit {
			return text[:i]
		}
		n++
	}
	return text
}

// Earlier returns the time of a client's clock, which may be far ahead, or now.
func Earlier(at, now time.Time) time.Time {
	if at.After(now) {
		return now.UTC()
	}
	return at
}

// Plausible returns a time that was saved, or the later one if it is after that or
// more than ten years before.
func Plausible(at, later time.Time) time.Time {
	if at.After(later) || at.Before(later.AddDate(-10, 0, 0)) {
		return later
	}
	return at
}

// MaxNoted limits the text of a change or of a mark, in bytes.
const MaxNoted = 256

// Shorten makes texts as long as a limit of characters permits, without the memory that they
// were cut from.
func Shorten(limit int, texts ...*string) {
	for _, text := range texts {
		*text = strings.Clone(Cut(*text, limit))
	}
}

// Clones returns copies of the first texts that share no memory with them, of bounded
// length.
func Clones(texts []string, most, length int) []string {
	return mlattr.Mapped(texts[:min(len(texts), most)], func(text string) string { return strings.Clone(Cut(text, length)) })
}

// Week is how long changes and failures are kept, over restarts too.
const Week = 7 * 24 * time.Hour

const (
	// maxRefused limits the rows beyond a limit that are counted.
	maxRefused = 10_000
	// refusedFor is how long a row beyond a limit is counted.
	refusedFor = time.Hour
)

// SearchAgain is when something that can be replaced is looked for again.
const SearchAgain = time.Second

// Leaving are the rows of a list that make room for others, in the order in which they
// leave.
type Leaving[T any] struct {
	next []T
	// ordered is when they were put in order, vain when there was none.
	ordered, vain time.Time
}

// Next takes out the next row that may leave. Where there is none, order returns others in
// their order, but not again within SearchAgain after it has returned none that may.
func (l *Leaving[T]) Next(now time.Time, may func(T) bool, order func() []T) (next T, ok bool) {
	if now.Sub(l.ordered).Abs() >= SearchAgain {
		l.next = nil // the order is another one since
	}
	for {
		for len(l.next) > 0 {
			one := l.next[0]
			clear(l.next[:1])
			if l.next = l.next[1:]; may(one) {
				return one, true
			}
		}
		if now.Sub(l.vain).Abs() < SearchAgain {
			return next, false
		}
		if l.next, l.ordered = order(), now; !slices.ContainsFunc(l.next, may) {
			l.vain = now
			return next, false
		}
	}
}

// Forget forgets the order.
func (l *Leaving[T]) Forget() { l.next = nil }

// RemoveOldest removes the row that was seen longest ago of those that may leave, and reports
// whether there is one.
func (l *Leaving[T]) RemoveOldest(now time.Time, all iter.Seq[T], may func(T) bool, seen func(T) time.Time, remove func(T)) bool {
	oldest, ok := l.Next(now, may, func() []T {
		rows := mlattr.Where(all, may)
		slices.SortFunc(rows, func(a, b T) int { return seen(a).Compare(seen(b)) })
		return rows
	})
	if ok {
		remove(oldest)
	}
	return ok
}

// Counts say what leaves a full list first, and count what lists have no room for.
type Counts struct {
	// Shares has since when senders and their services have sent data.
	Shares *share.History
	// refused has the rows beyond the limit of each list by their keys, dropped counts
	// what was not kept, by what it is.
	refused map[string]map[string]time.Time
	dropped map[string]int64
}

// NewCounts returns Counts of nothing.
func NewCounts() *Counts {
	return &Counts{
		Shares: share.NewHistory(), refused: make(map[string]map[string]time.Time), dropped: make(map[string]int64),
	}
}

// Refuse counts a row beyond the limit of a list.
func (l *Counts) Refuse(list, key string, now time.Time) {
	rows := shared.Entry(l.refused, list, func() map[string]time.Time { return make(map[string]time.Time) })
	if _, known := rows[key]; known || len(rows) < maxRefused {
		rows[key] = now
	}
}

// Accept notes that there is room for a row.
func (l *Counts) Accept(list, key string) { delete(l.refused[list], key) }

// Drop counts something that was not kept.
func (l *Counts) Drop(what string) { l.dropped[what]++ }

// First returns the rows that leave a full list first, a quarter: those of senders and
// services that have more than their share, of each the last. of returns where a row comes
// from and what it weighs.
func First[T any](l *Counts, rows []T, of func(T) (from share.Origin, weight int)) []T {
	items := make([]share.Item, len(rows))
	room := int64(1)
	for i, row := range rows {
		from, weight := of(row)
		items[i] = share.Item{Path: l.Shares.Path(from), Weight: int64(weight)}
		room += int64(weight)
	}
	return mlattr.Mapped(share.Leaving(items, room/4+1), func(i int) T { return rows[i] })
}

// Hidden returns the number of rows beyond the limit of each list.
func (l *Counts) Hidden() map[string]int {
	hidden := make(map[string]int)
	for list, rows := range l.refused {
		if len(rows) > 0 {
			hidden[list] = len(rows)
		}
	}
	return hidden
}

// Prune forgets the rows that were refused long ago.
func (l *Counts) Prune(now time.Time) {
	for _, rows := range l.refused {
		maps.DeleteFunc(rows, func(_ string, last time.Time) bool { return now.Sub(last) > refusedFor })
	}
}

// limitFixes are the settings that raise the limits of lists.
var limitFixes = map[string]string{
	"runs": "ml_view: {max_runs: <more>}",
	"gpus": "ml_view: {max_gpus: <more>}",
}

// Missing returns the limits that hide something.
func (l *Counts) Missing() (rows []api.Missing) {
	add := func(kind, what string, n int64, fix string) {
		rows = append(rows, api.Missing{
			Key: "limit " + kind, Kind: "limit", What: what + " " + kind,
			Why: "The page has reached its limit of " + kind + ".", Count: n, Fix: fix,
		})
	}
	hidden := l.Hidden()
	for _, kind := range slices.Sorted(maps.Keys(hidden)) {
		add(kind, strconv.Itoa(hidden[kind])+" more", int64(hidden[kind]), limitFixes[kind])
	}
	for _, kind := range slices.Sorted(maps.Keys(l.dropped)) {
		add(kind, "Data of more", l.dropped[kind], "")
	}
	return rows
}
