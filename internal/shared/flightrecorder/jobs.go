package flightrecorder

import (
	"maps"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// together is how far apart the dumps of a hang are written at most.
	together = 10 * time.Minute
	// maxDumps and maxBytes limit the dumps of all jobs.
	maxDumps, maxBytes = 16_384, 32 << 20
)

// Jobs remembers the dumps of jobs. The zero Jobs is ready to use. It is not safe for
// concurrent use.
type Jobs struct {
	dumps map[rankOf]*Dump
	size  int
	// tidied is when the dumps of earlier hangs were forgotten.
	tidied time.Time
}

type rankOf struct {
	job  string
	rank int64
}

// Add adds a dump of a job that was written at a time. It reports false beyond the limits.
func (j *Jobs) Add(job string, d *Dump, at time.Time) bool {
	if at.Sub(j.tidied) > time.Minute {
		j.tidied = at
		maps.DeleteFunc(j.dumps, func(_ rankOf, other *Dump) bool {
			old := at.Sub(other.at) > together
			if old {
				j.size -= other.size
			}
			return old
		})
	}
	size, of := j.size+d.size, rankOf{job, d.Rank}
	was := j.dumps[of]
	if was != nil {
		size -= was.size
	}
	if size > maxBytes || was == nil && len(j.dumps) >= maxDumps {
		return false
	}
	d.at, j.size = at, size
	mlattr.Put(&j.dumps, of, d)
	return true
}

// Conclude compares the dumps of a job.
func (j *Jobs) Conclude(job string) []Verdict {
	var dumps []*Dump
	for of, d := range j.dumps {
		if of.job == job {
			dumps = append(dumps, d)
		}
	}
	return Conclude(dumps)
}
