package points

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/flightrecorder"
)

// maxWaits limits the runs of which is remembered what dumps say, waitsFor for how long.
const maxWaits, waitsFor = 1024, 24 * time.Hour

// dumps is what the dumps of PyTorch's Flight Recorder say about runs, whichever hosts have
// written them.
type dumps struct {
	jobs  flightrecorder.Jobs
	waits map[string]ranks.Wait
	// left is the number of dumps beyond a limit, and of runs whose dumps say more.
	left int64
}

// ReadLogs records the dumps of ranks that log records have. Other records have no effect.
func (s *Seen) ReadLogs(ld plog.Logs, now time.Time) {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if record.EventName() != flightrecorder.Event {
					continue
				}
				if run, d := dumpOf(rl.Resource().Attributes(), record.Attributes()); d != nil {
					s.addDump(strings.Clone(run), d, shared.Earlier(record.Timestamp().AsTime(), now))
				}
			}
		}
	}
}

// dumpOf returns the dump that a log record has, nil without one, and its run.
func dumpOf(resource, attrs pcommon.Map) (run string, d *flightrecorder.Dump) {
	run = cmp.Or(mlattr.IDAt(attrs, mlattr.RunID), mlattr.IDAt(resource, mlattr.RunID))
	rank, known := attrs.Get(mlattr.RankGlobal)
	if run == "" || run == mlattr.Other || !known {
		return "", nil
	}
	n, isInt := mlattr.ReadInt(rank)
	groups, has := attrs.Get(flightrecorder.GroupsKey)
	if !isInt || n < 0 || !has || groups.Type() != pcommon.ValueTypeSlice {
		return "", nil
	}
	if d = flightrecorder.FromRecord(groups.Slice(), n); len(d.Groups) == 0 {
		return "", nil
	}
	return run, d
}

func (s *Seen) addDump(run string, d *flightrecorder.Dump, written time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dumps.jobs.Add(run, d, written) {
		s.dumps.left++
	}
}

// LeftDumps returns how many dumps, or runs with dumps, were left out since the last call.
func (s *Seen) LeftDumps() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, s.dumps.left = s.dumps.left, 0
	return n
}

// settle compares the dumps of the runs that have new ones, and forgets what was said a day ago.
func (d *dumps) settle(now time.Time) {
	maps.DeleteFunc(d.waits, func(_ string, w ranks.Wait) bool { return now.Sub(w.At) > waitsFor })
	d.jobs.Settle(func(run string, verdicts []flightrecorder.Verdict, at time.Time) {
		if _, known := d.waits[run]; len(verdicts) == 0 {
			delete(d.waits, run)
		} else if !known && len(d.waits) >= maxWaits {
			d.left++
		} else {
			mlattr.Put(&d.waits, run, ranks.NewWait(&verdicts[0], at))
		}
	})
}
