package flightrecorder

import (
	"maps"
	"slices"
	"time"
)

const (
	// together is how far apart the dumps of a hang are written at most, and maxJobs and
	// maxDumps limit those that are remembered.
	together          = 10 * time.Minute
	maxJobs, maxDumps = 64, 4096
)

// Jobs remembers the dumps of jobs: those of one name but for the rank at its end. The zero
// Jobs is ready to use. It is not safe for concurrent use.
type Jobs struct{ byName map[string]map[int64]written }

type written struct {
	dump *Dump
	at   time.Time
}

// Add adds a dump of a job that was written at a time.
func (j *Jobs) Add(name string, d *Dump, at time.Time) {
	of := j.byName[name]
	if of == nil {
		if j.byName == nil {
			j.byName = make(map[string]map[int64]written)
		}
		if len(j.byName) >= maxJobs {
			clear(j.byName)
		}
		of = make(map[int64]written)
		j.byName[name] = of
	}
	maps.DeleteFunc(of, func(_ int64, w written) bool { return at.Sub(w.at) > together })
	if len(of) < maxDumps {
		of[d.Rank] = written{d, at}
	}
}

// Conclude compares the dumps of a job.
func (j *Jobs) Conclude(name string) []Verdict {
	var dumps []*Dump
	for _, rank := range slices.Sorted(maps.Keys(j.byName[name])) {
		dumps = append(dumps, j.byName[name][rank].dump)
	}
	return Conclude(dumps)
}
