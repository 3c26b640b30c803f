package flightrecorder

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// together is how far apart the dumps of a hang are written at most, and keeps how long
	// dumps are remembered.
	together, keeps = 3 * time.Minute, 10 * time.Minute
	// maxDumps and maxBytes limit the dumps of all jobs.
	maxDumps, maxBytes = 16_384, 64 << 20
	// ofDump and ofGroup are about what they take in memory besides names and ranks, in bytes.
	ofDump, ofGroup = 256, 640
)

// Jobs remembers the dumps of jobs. The zero Jobs is ready to use. It is not safe for
// concurrent use.
type Jobs struct {
	byName       map[string]*job
	number, size int
	// tidied is when old dumps were forgotten.
	tidied time.Time
}

// job has the newest dump of each rank. changed reports whether there are some that were not
// compared.
type job struct {
	dumps   map[int64]*Dump
	newest  time.Time
	changed bool
}

// Add adds a dump of a job that was written at a time, unless a newer one of its rank is there. It
// reports false beyond the limits.
func (j *Jobs) Add(name string, d *Dump, at time.Time) bool {
	if at.Sub(j.tidied) > time.Minute {
		j.tidy(at)
	}
	of := shared.Bounded(&j.byName, name, maxDumps, func(key string) string { return key })
	if of == nil {
		return false
	}
	d.size = ofDump + len(name)
	for i := range d.Groups {
		d.size += ofGroup + len(d.Groups[i].Name) + len(d.Groups[i].Ranks)
	}
	number, size, was := j.number+1, j.size+d.size, of.dumps[d.Rank]
	if was != nil {
		if was.at.After(at) {
			return true
		}
		number, size = number-1, size-was.size
	}
	if number > maxDumps || size > maxBytes {
		return false
	}
	d.at, j.number, j.size = at, number, size
	mlattr.Put(&of.dumps, d.Rank, d)
	of.newest, of.changed = shared.Later(of.newest, at), true
	return true
}

// tidy forgets old dumps, and jobs without any.
func (j *Jobs) tidy(at time.Time) {
	j.tidied = at
	maps.DeleteFunc(j.byName, func(_ string, of *job) bool {
		maps.DeleteFunc(of.dumps, func(_ int64, d *Dump) bool {
			old := at.Sub(d.at) > keeps
			if old {
				j.number, j.size = j.number-1, j.size-d.size
			}
			return old
		})
		return len(of.dumps) == 0
	})
}

// Settle compares the dumps of each job that has new ones, as far as they were written together with
// the newest, and tells what they say and when the newest was written.
func (j *Jobs) Settle(tell func(name string, verdicts []Verdict, newest time.Time)) {
	for _, name := range slices.Sorted(maps.Keys(j.byName)) {
		if of := j.byName[name]; of.changed {
			of.changed = false
			tell(name, Conclude(mlattr.Where(maps.Values(of.dumps), func(d *Dump) bool { return of.newest.Sub(d.at) <= together })), of.newest)
		}
	}
}
