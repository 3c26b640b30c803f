// Package ranks compares the ranks of a run: which of them are missing, and which
// hosts have slow ones.
package ranks

import "time"

// Rank is one rank of a run.
type Rank struct {
	// Number is its global rank, negative if unknown.
	Number int
	// Alive is when its newest span arrived, Stepped when its newest step ended.
	Alive, Stepped time.Time
	// Silent reports whether no span has arrived for Patience.
	Silent   bool
	Patience time.Duration
	// Gone reports whether the rank has ended, or is no longer one of the run.
	Gone bool
}

// Stopped returns the indexes of the ranks that have stopped while others go on: a
// rank has ended a step when they had been silent for half of their patience. In a
// run that hangs, all ranks wait for the one that stopped within a step. few
// reports whether they are no more than half of the ranks: of more, the telemetry
// may be cut off.
func Stopped(all []Rank) (stopped []int, few bool) {
	var newest time.Time
	present := 0
	for i := range all {
		if rank := &all[i]; !rank.Gone {
			present++
			if rank.Stepped.After(newest) {
				newest = rank.Stepped
			}
		}
	}
	for i := range all {
		if rank := &all[i]; !rank.Gone && rank.Silent && newest.Sub(rank.Alive) >= rank.Patience/2 {
			stopped = append(stopped, i)
		}
	}
	return stopped, 2*len(stopped) <= present
}

// maxAbsent limits the ranks that Absent returns.
const maxAbsent = 64

// Absent returns how many ranks of a world have never sent anything, and the
// lowest of their numbers. It returns none unless more than half of the ranks
// have sent: the client may send from one rank only, or from one rank of each
// host, and the collector may receive from one host of two.
func Absent(all []Rank, world int) (n int, lowest []int) {
	seen := make(map[int]bool, len(all))
	for i := range all {
		if number := all[i].Number; number >= 0 && number < world {
			seen[number] = true
		}
	}
	if n = world - len(seen); 2*len(seen) <= world {
		return 0, nil
	}
	for number := 0; len(lowest) < min(n, maxAbsent); number++ {
		if !seen[number] {
			lowest = append(lowest, number)
		}
	}
	return n, lowest
}
