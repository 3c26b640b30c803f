package shared

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Notice says what a component left out, why, and what changes it.
type Notice struct {
	// Key tells the notices of a component apart.
	Key string
	// Kind groups notices with similar causes, such as limit or content.
	Kind string
	// What was left out, in a few words, and Why in a sentence.
	What, Why string
	// Count is how often, since the component started. 0 means that it cannot be
	// counted.
	Count int64
	// Since is when it began, if it goes on and somebody has to know now. Such
	// notices stand at the top of the page. It is zero for all others.
	Since time.Time
	// Fix is the line of configuration, or the command, that changes it.
	Fix string
}

// notices are the readers of all components of the process.
var notices struct {
	mu      sync.Mutex
	readers map[*noticeReader]struct{}
}

type noticeReader struct {
	owner string
	read  func() []Notice
}

// PublishNotices lets Notices call read, until withdraw is called. owner is the id
// of the component; its instances may each publish their own. read must be safe for
// concurrent use and must not block. Publishing costs nothing until somebody reads.
func PublishNotices(owner string, read func() []Notice) (withdraw func()) {
	reader := &noticeReader{owner, read}
	notices.mu.Lock()
	defer notices.mu.Unlock()
	if notices.readers == nil {
		notices.readers = make(map[*noticeReader]struct{})
	}
	notices.readers[reader] = struct{}{}
	return func() {
		notices.mu.Lock()
		defer notices.mu.Unlock()
		delete(notices.readers, reader)
	}
}

// Notices returns the notices of all components of the process by owner, ordered
// by Key. Of equal keys, counts are added up and the earliest Since stays.
func Notices() map[string][]Notice {
	notices.mu.Lock()
	readers := slices.Collect(maps.Keys(notices.readers))
	notices.mu.Unlock()
	merged := make(map[string]map[string]Notice)
	for _, reader := range readers {
		for _, notice := range reader.read() {
			byKey := merged[reader.owner]
			if byKey == nil {
				byKey = make(map[string]Notice)
				merged[reader.owner] = byKey
			}
			other := byKey[notice.Key]
			notice.Count += other.Count
			if notice.Since.IsZero() || !other.Since.IsZero() && other.Since.Before(notice.Since) {
				notice.Since = other.Since
			}
			byKey[notice.Key] = notice
		}
	}
	all := make(map[string][]Notice, len(merged))
	for owner, byKey := range merged {
		all[owner] = slices.SortedFunc(maps.Values(byKey), func(a, b Notice) int { return cmp.Compare(a.Key, b.Key) })
	}
	return all
}

// Tally counts by reason what a component leaves out. The zero value is ready. It
// is safe for concurrent use. It is meant for what is rare: Add takes a lock.
type Tally struct {
	mu     sync.Mutex
	counts map[string]int64
}

// Add adds n to the count of a reason.
func (t *Tally) Add(reason string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]int64)
	}
	t.counts[reason] += n
}

// Notices returns a notice for each counted reason that describe knows, with its
// count and with the reason as its key.
func (t *Tally) Notices(describe func(reason string) (notice Notice, ok bool)) []Notice {
	t.mu.Lock()
	counts := maps.Clone(t.counts)
	t.mu.Unlock()
	var all []Notice
	for reason, n := range counts {
		if notice, ok := describe(reason); ok {
			notice.Key, notice.Count = reason, n
			all = append(all, notice)
		}
	}
	return all
}
