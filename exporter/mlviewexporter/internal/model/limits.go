package model

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

const (
	// maxRefused limits the rows beyond a limit that are counted.
	maxRefused = 10_000
	// refusedFor is how long a row beyond a limit is counted.
	refusedFor = time.Hour
)

// searchAgain is when something that can be replaced is looked for again.
const searchAgain = time.Second

// limits say what leaves a full list first, and count what lists have no room for.
type limits struct {
	// shares has since when senders and their services have sent data.
	shares *share.History
	// refused has the rows beyond the limit of each list by their keys, dropped counts
	// what was not kept, by what it is.
	refused map[string]map[string]time.Time
	dropped map[string]int64
}

func newLimits() *limits {
	return &limits{
		shares: share.NewHistory(), refused: make(map[string]map[string]time.Time), dropped: make(map[string]int64),
	}
}

// refuse counts a row beyond the limit of a list.
func (l *limits) refuse(list, key string, now time.Time) {
	rows := l.refused[list]
	if rows == nil {
		rows = make(map[string]time.Time)
		l.refused[list] = rows
	}
	if _, known := rows[key]; known || len(rows) < maxRefused {
		rows[key] = now
	}
}

// accept notes that there is room for a row.
func (l *limits) accept(list, key string) { delete(l.refused[list], key) }

// drop counts something that was not kept.
func (l *limits) drop(what string) { l.dropped[what]++ }

// leave returns the indices of the rows that leave a full list first, a sixteenth: those of
// senders and services that have more than their share, of each the last. row returns where
// a row comes from and what it weighs.
func (l *limits) leave(n int, row func(i int) (share.Origin, int)) []int {
	items := make([]share.Item, n)
	room := int64(1)
	for i := range items {
		origin, weight := row(i)
		items[i] = share.Item{Path: l.shares.Path(origin), Weight: int64(weight)}
		room += int64(weight)
	}
	return share.Leaving(items, room/16+1)
}

// hidden returns the number of rows beyond the limit of each list.
func (l *limits) hidden() map[string]int {
	hidden := make(map[string]int)
	for list, rows := range l.refused {
		if len(rows) > 0 {
			hidden[list] = len(rows)
		}
	}
	return hidden
}

// prune forgets the rows that were refused long ago.
func (l *limits) prune(now time.Time) {
	for _, rows := range l.refused {
		maps.DeleteFunc(rows, func(_ string, last time.Time) bool { return now.Sub(last) > refusedFor })
	}
}

// limitFixes are the settings that raise the limits of lists.
var limitFixes = map[string]string{
	"runs": "ml_view: {max_runs: <more>}",
	"gpus": "ml_view: {max_gpus: <more>}",
}

// missing returns the limits that hide something.
func (l *limits) missing() (rows []Missing) {
	add := func(kind, what string, n int64, fix string) {
		rows = append(rows, Missing{
			Key: "limit " + kind, Kind: "limit", What: what + " " + kind,
			Why: "The page has reached its limit of " + kind + ".", Count: n, Fix: fix,
		})
	}
	hidden := l.hidden()
	for _, kind := range slices.Sorted(maps.Keys(hidden)) {
		add(kind, strconv.Itoa(hidden[kind])+" more", int64(hidden[kind]), limitFixes[kind])
	}
	for _, kind := range slices.Sorted(maps.Keys(l.dropped)) {
		add(kind, "Data of more", l.dropped[kind], "")
	}
	return rows
}
