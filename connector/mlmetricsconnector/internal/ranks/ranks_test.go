package ranks_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
)

var begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const patience = 5 * time.Minute

// world has ranks that were last alive so long ago.
func world(ago ...time.Duration) (all []ranks.Rank) {
	for i, d := range ago {
		all = append(all, ranks.Rank{
			Number: i, Alive: begin.Add(-d), Stepped: begin.Add(-d), Silent: d > patience, Patience: patience,
		})
	}
	return all
}

func TestStopped(t *testing.T) {
	const s, m = time.Second, time.Minute
	gone := world(6*m, 0, 0)
	gone[0].Gone = true
	paused := world(0, 6*m, 0)
	paused[0].Resumed, paused[2].Resumed = begin.Add(-m), begin.Add(-10*s)
	goesOn := world(0, 6*m, 0)
	goesOn[0].Resumed = begin.Add(-3 * m)
	evaluates := world(6*m, 6*m, 0)
	evaluates[2].Stepped = begin.Add(-6 * m)
	for name, tt := range map[string]struct {
		ranks []ranks.Rank
		want  []int
	}{
		"none":                            {world(0, s, 2*s), nil},
		"one of three":                    {world(0, 6*m, s), []int{1}},
		"one of two":                      {world(6*m, 0), []int{0}},
		"one alone":                       {world(6 * m), nil},
		"silent, but not for long":        {world(4*m, 0, 0), nil},
		"a hang: the others stopped too":  {world(6*m, 6*m-s, 6*m-10*s), nil},
		"the first of a hang is silent":   {world(5*m+s, 5*m-s, 5*m-2*s), nil},
		"it stopped long before the hang": {world(20*m, 6*m, 6*m), []int{0}},
		"two of four":                     {world(6*m, 6*m, 0, 0), []int{0, 1}},
		"after a pause of all, its first step is on its way": {paused, nil},
		"others have gone on since a pause":                  {goesOn, []int{1}},
		"it has ended":                                       {gone, nil},
		"only one goes on, with no steps":                    {evaluates, nil},
	} {
		t.Run(name, func(t *testing.T) {
			stopped, few := ranks.Stopped(tt.ranks)
			assert.Equal(t, tt.want, stopped)
			assert.True(t, few)
		})
	}
	stopped, few := ranks.Stopped(world(6*m, 6*m, 6*m, 0))
	assert.Len(t, stopped, 3)
	assert.False(t, few)
}

func TestAbsent(t *testing.T) {
	n, lowest := ranks.Absent(world(0, 0, 0, 0), 4)
	assert.Zero(t, n)
	assert.Empty(t, lowest)
	all := world(0, 0, 0, 0, 0)
	all[3].Number = 7
	n, lowest = ranks.Absent(all, 8)
	assert.Equal(t, 3, n)
	assert.Equal(t, []int{3, 5, 6}, lowest)
	n, _ = ranks.Absent(world(0), 8)
	assert.Zero(t, n, "only the first rank sends")
	n, _ = ranks.Absent(world(0, 0, 0, 0), 8)
	assert.Zero(t, n, "only one of two hosts is seen")
	n, lowest = ranks.Absent(world(make([]time.Duration, 600)...), 1000)
	assert.Equal(t, 400, n)
	assert.Len(t, lowest, 64)
}

// timed is a rank, by the newest 10 minutes.
func timed(host string, seconds, step float64) ranks.Timed {
	return ranks.Timed{Host: host, Typical: pace.Typical{Phase: seconds, Step: step, Since: 600}}
}

// fleet compares the hosts of a run each minute.
func fleet(h *ranks.Hosts, run string, minutes int, load func(host, rank, minute int) float64, now time.Time) time.Time {
	for minute := range minutes {
		var all []ranks.Timed
		for rank := range 32 {
			host := rank / 8
			all = append(all, timed("n"+strconv.Itoa(host), load(host, rank, minute), 1))
		}
		now = now.Add(time.Minute)
		h.Compare(run, all, patience, now)
	}
	return now
}

func TestASlowHost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- noise
	slowOne := func(host, _, _ int) float64 {
		seconds := 0.1 + 0.01*r.ExpFloat64()
		if host == 2 {
			seconds *= 3
		}
		return seconds
	}
	var h ranks.Hosts
	now := fleet(&h, "a", 10, slowOne, begin)
	assert.Empty(t, h.Slow(now), "one run")
	later := now.Add(time.Hour)
	now = fleet(&h, "b", 5, slowOne, later)
	assert.Empty(t, h.Slow(now), "too short")
	now = fleet(&h, "b", 1, slowOne, now)
	slow := h.Slow(now)
	require.Len(t, slow, 1)
	assert.Equal(t, "n2", slow[0].Host)
	assert.Equal(t, later.Add(time.Minute-10*time.Minute), slow[0].Since, "of the steps that were slow first")
	assert.Equal(t, []string{"a", "b"}, slow[0].Runs)
	assert.Equal(t, 8, slow[0].Ranks)
	assert.InDelta(t, 3, slow[0].Seconds/slow[0].Usual, 0.5)
	assert.Empty(t, h.Slow(now.Add(10*time.Minute)), "nothing runs there")
	assert.Empty(t, h.Slow(now.Add(25*time.Hour)))
	now = fleet(&h, "b", 1, slowOne, now.Add(25*time.Hour))
	assert.Empty(t, h.Slow(now), "the other run was yesterday")
}

func TestHealthyHosts(t *testing.T) {
	for name, load := range map[string]func(r *rand.Rand, host, rank, minute int) float64{
		"noise":                        func(r *rand.Rand, _, _, _ int) float64 { return 0.1 * (1 + r.ExpFloat64()) },
		"all are slow":                 func(_ *rand.Rand, _, _, minute int) float64 { return 0.1 * float64(1+minute/50) },
		"slow, but a small part":       func(_ *rand.Rand, host, _, _ int) float64 { return 0.001 * float64(1+host) },
		"one rank of a host":           func(_ *rand.Rand, _, rank, _ int) float64 { return 0.1 + 5*float64(rank/31) },
		"now and then":                 func(_ *rand.Rand, host, _, minute int) float64 { return 0.1 * float64(1+5*(host%2)*(minute%3/2)) },
		"hosts of two generations":     func(_ *rand.Rand, host, _, _ int) float64 { return 0.1 * float64(1+host/2) },
		"nothing is loaded, and so on": func(*rand.Rand, int, int, int) float64 { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- noise
			var h ranks.Hosts
			now := begin
			for run := range 20 {
				for range 30 {
					now = fleet(&h, strconv.Itoa(run), 1, func(host, rank, _ int) float64 {
						return load(r, host, rank, int(now.Sub(begin)/time.Minute))
					}, now)
					require.Empty(t, h.Slow(now))
				}
			}
		})
	}
}

// However many hosts and runs there are, few are remembered.
func TestHostsAreBounded(t *testing.T) {
	var h ranks.Hosts
	for run := range 100 {
		for host := range 200 {
			name := strconv.Itoa(host + run*200)
			all := []ranks.Timed{timed(name, 9, 9), timed("same", 9, 9)}
			for fast := range 8 {
				all = append(all, timed("fast"+strconv.Itoa(fast), 1, 9))
			}
			h.Compare(strconv.Itoa(run), all, 0, begin)
		}
	}
	slow := h.Slow(begin)
	assert.Len(t, slow, 1)
	assert.Len(t, slow[0].Runs, 16)
}

func TestApart(t *testing.T) {
	at := func(what string, seconds int) ranks.Last {
		return ranks.Last{What: what, At: begin.Add(time.Duration(seconds) * time.Second)}
	}
	for name, tt := range map[string]struct {
		all  []ranks.Last
		want []int
	}{
		"none":                        {nil, nil},
		"one":                         {[]ranks.Last{at("forward", 0)}, nil},
		"one does something else":     {[]ranks.Last{at("forward", 3), at("data_load", 1), at("forward", 3)}, []int{1}},
		"no majority":                 {[]ranks.Last{at("forward", 3), at("data_load", 1)}, nil},
		"all the same":                {[]ranks.Last{at("forward", 3), at("forward", 2), at("forward", 3)}, nil},
		"one stopped clearly before":  {[]ranks.Last{at("forward", 9), at("forward", 2), at("forward", 9)}, []int{1}},
		"what one did is not known":   {[]ranks.Last{at("forward", 9), at("", 0), at("forward", 9)}, nil},
		"two stand out, one is known": {[]ranks.Last{at("x", 1), at("f", 1), at("f", 1), at("f", 1), at("", 1)}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, ranks.Apart(tt.all)) })
	}
}

// TestManyHosts compares as many hosts as there can be ranks in a short time.
func TestManyHosts(t *testing.T) {
	var h ranks.Hosts
	all := make([]ranks.Timed, 8192)
	for i := range all {
		all[i] = timed("n"+strconv.Itoa(i), 1+float64(i%7)/100, 9)
	}
	all[17].Phase = 9
	start := time.Now()
	h.Compare("a", all, 0, begin)
	h.Compare("b", all, 0, begin)
	assert.Less(t, time.Since(start), 5*time.Second)
	slow := h.Slow(begin)
	require.Len(t, slow, 1)
	assert.Equal(t, "n17", slow[0].Host)
	assert.InDelta(t, 1.03, slow[0].Usual, 0.01)
}
