package job_test

import (
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/job"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/ras"
)

var here, there = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")

// table describes processes by their ids.
type table map[uint32]workload.Process

func (t table) Describe(pid uint32) (workload.Process, bool) {
	p, found := t[pid]
	return p, found
}

// process is one of a run of four ranks, which sees itself as pid.
func process(pid uint32, run string, rank int64) workload.Process {
	known := func(n int64) workload.Number { return workload.Number{Value: n, Known: true} }
	return workload.Process{
		Details:  workload.Details{NamespacePID: known(int64(pid))},
		Workload: workload.Workload{RunID: run, RankGlobal: known(rank), RankLocal: known(rank), WorldSize: known(4), UserID: "1000"},
	}
}

// world has four ranks on two hosts, the last of which is missing.
func world(hash string, pids ...int) ras.Communicator {
	return ras.Communicator{Hash: hash, Size: 4, Ranks: []ras.Rank{
		{Number: 0, Host: here, PID: pids[0]}, {Number: 1, Host: here, PID: pids[1]}, {Number: 2, Host: there, PID: 100},
	}, Missing: []ras.Rank{{Number: 3, Host: there, PID: 101}}}
}

func of(processes table, communicators ...ras.Communicator) (*job.Job, *ras.Answer) {
	answer := &ras.Answer{Communicators: communicators}
	return job.Of(answer, job.Host{Addresses: map[netip.Addr]bool{here: true}, Describe: processes.Describe}), answer
}

// A communicator of two ranks has the ranks of the run by their processes.
func TestRanksOfTheRun(t *testing.T) {
	pair := ras.Communicator{Hash: "0x2", Size: 2, Ranks: []ras.Rank{{Number: 0, Host: here, PID: 101}}, Missing: []ras.Rank{{Number: 1, Host: there, PID: 101}}}
	j, answer := of(table{100: process(100, "run-a", 0), 101: process(101, "run-a", 1)}, world("0x1", 100, 101), pair)
	assert.Equal(t, "run-a", j.RunID)
	assert.Equal(t, "1000", j.UserID)
	assert.False(t, j.RankGlobal.Known, "which is of one process")
	assert.True(t, j.Leads)
	for want, at := range map[int64]*ras.Rank{1: &answer.Communicators[1].Ranks[0], 3: &answer.Communicators[1].Missing[0]} {
		assert.Equal(t, workload.Number{Value: want, Known: true}, j.Rank(&answer.Communicators[1], at))
	}
	rank := j.Rank(&answer.Communicators[0], &ras.Rank{Number: 3, PID: -1})
	assert.Equal(t, workload.Number{Value: 3, Known: true}, rank, "also without a process")
	mine := map[netip.Addr]bool{here: true}
	assert.True(t, j.Has(1, mine))
	assert.False(t, j.Has(3, mine))
}

// A process id alone does not name a process.
func TestWhichProcessItIs(t *testing.T) {
	contained := process(100, "run-a", 0)
	contained.NamespacePID.Value = 7
	self := uint32(os.Getpid()) // #nosec G115 -- an id of a process
	for name, tt := range map[string]struct {
		processes table
		pids      [2]int
		run       string
	}{
		"both are of one run":                   {table{100: process(100, "run-a", 0), 101: process(101, "run-a", 1)}, [2]int{100, 101}, "run-a"},
		"one has ended":                         {table{101: process(101, "run-a", 1)}, [2]int{100, 101}, "run-a"},
		"they are of two runs":                  {table{100: process(100, "run-a", 0), 101: process(101, "run-b", 1)}, [2]int{100, 101}, ""},
		"one has no run":                        {table{100: process(100, "run-a", 0), 101: process(101, "", 1)}, [2]int{100, 101}, ""},
		"the id is of another PID namespace":    {table{100: contained}, [2]int{100, 101}, ""},
		"the id is unknown":                     {table{0: process(0, "run-a", 0)}, [2]int{-1, 0}, ""},
		"the id is the collector's":             {table{self: process(self, "run-a", 0)}, [2]int{int(self), 101}, ""},
		"the process runs there, not here":      {table{7: process(7, "run-a", 0)}, [2]int{100, 101}, ""},
		"the id is larger than any":             {table{100: process(100, "run-a", 0)}, [2]int{1<<32 + 100, 101}, ""},
		"its namespace is unknown, as its proc": {table{100: {Workload: contained.Workload}}, [2]int{100, 101}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := of(tt.processes, world("0x1", tt.pids[0], tt.pids[1]))
			assert.Equal(t, tt.run, j.RunID)
		})
	}
}

// A communicator that is as large as the run and numbers it in another way does not
// have the ranks of the run.
func TestAnotherNumbering(t *testing.T) {
	j, answer := of(table{100: process(100, "run-a", 2), 101: process(101, "run-a", 3)}, world("0x1", 100, 101))
	rank := j.Rank(&answer.Communicators[0], &answer.Communicators[0].Ranks[0])
	assert.Equal(t, workload.Number{Value: 2, Known: true}, rank, "by its environment")
	assert.False(t, j.Rank(&answer.Communicators[0], &answer.Communicators[0].Missing[0]).Known)
}

func TestWhichHostLeads(t *testing.T) {
	at := func(host netip.Addr) ras.Communicator {
		return ras.Communicator{Hash: "0x1", Size: 2, Ranks: []ras.Rank{{Number: 1, Host: host}}, Missing: []ras.Rank{{Number: 0, Host: here}}}
	}
	for name, tt := range map[string]struct {
		communicators []ras.Communicator
		want          bool
	}{
		"the first rank that responds is here":  {[]ras.Communicator{at(here), at(there)}, true},
		"it is there":                           {[]ras.Communicator{at(there), at(here)}, false},
		"it is somewhere":                       {[]ras.Communicator{at(netip.Addr{})}, true},
		"none responds in the largest":          {[]ras.Communicator{{Hash: "0x2", Size: 9}, at(there)}, false},
		"there is no communicator that matters": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := of(nil, tt.communicators...)
			assert.Equal(t, tt.want, j.Leads)
		})
	}
}
