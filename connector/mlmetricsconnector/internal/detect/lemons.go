package detect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// lemonDays is for how many days uses are remembered.
	lemonDays = 28
	// lemonRuns and lemonPeople are the least runs, and the people who ran them, in which a
	// lemon was the cause: one program, or one user, may have reasons of its own.
	lemonRuns, lemonPeople = 3, 2
	// lemonChance is how likely any host may have as many by chance, notLemonChance from which
	// chance on a lemon is none any more.
	lemonChance, notLemonChance = 1e-3, 0.1
	// fleetDays is the weight, in days of a run on a host, of all people's rate in that of one.
	fleetDays = 20
	// maxUses limits the uses that are remembered. Those go first that ended first.
	maxUses    = 32_768
	daySeconds = 24 * 60 * 60
	// inHostNames are the characters of a name in a command.
	inHostNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
)

// Lemons remembers which runs used which hosts, and where a host was the cause of a problem. It
// finds lemons: hosts that cause problems more often than others, whoever uses them. It is safe for
// concurrent use, and the zero Lemons is ready.
type Lemons struct {
	mu sync.Mutex
	// uses has those of each host, by the run.
	uses map[string]map[string]*use
	n    int
	// found are the lemons as of the day judged, 0 if there is new evidence.
	found  []problem.Problem
	judged int64
	// worse is the version that was clearly worse than others on the day of its Evident, with
	// no Kind if none was.
	worse problem.Problem
}

// use is that of a host by a run. Days are since 1970.
type use struct {
	// Who is the user, or the namespace and service of a pod, or the program. Kind is the first
	// problem of which the host is the cause, and GPU its GPU, "" if unknown or there is none.
	Who, Kind, GPU string
	// Days is the number of days of it, Last the last one, and At when the host was the cause, in
	// seconds since 1970.
	Days, Last, At int64
	// Work tells apart what runs do: the program, its ranks, the tokens of a step, and the model of
	// the GPUs, as far as they are known. Step is how long a step takes, in seconds, 0 if unknown.
	Work string  `json:",omitempty"`
	Step float64 `json:",omitempty"`
	// Has has the versions on the host, each after the name of what has it.
	Has []string `json:",omitempty"`
}

// detect notes what the runs show, and what the detectors report, and reports the lemons.
func (l *Lemons) detect(s *State, all []Detector, report func(problem.Problem)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range s.Runs {
		if !r.State.Over() {
			l.see(s, r)
		}
	}
	for _, detect := range all {
		detect(s, func(p problem.Problem) {
			l.blame(s, &p)
			report(p)
		})
	}
	l.settle(s)
	for i := range l.found {
		report(l.found[i])
	}
}

// see notes which hosts a run uses. Where GPUs are read, names that only clients state do not
// count. A host that a restart has left for another one is the cause, unless these are more than
// a quarter of all, as after a preemption.
func (l *Lemons) see(s *State, r *runs.Run) {
	by, model := new(gpus.Owner), ""
	if len(r.GPUs.All) > 0 {
		by, model = &r.GPUs.All[0].Owner, r.GPUs.All[0].Model
	}
	at, hosts, left := make(map[string]string), make(map[string]bool), make(map[string]bool)
	work, tokens := "", 0.0
	for rank := range present(r) {
		if at[rank.Name], hosts[rank.Host] = rank.Host, true; rank.Host != "" && (len(s.GPUs.GPUs) == 0 || s.GPUs.Hosts[rank.Host].Read) {
			is := l.use(rank.Host, programOf(&r.Key.Resource, r.Key.ID), by, s.Now)
			if is.Has == nil || is.Step == 0 {
				is.Has = s.History.Versions(rank.Host, r.Key.Resource, s.Now)
			}
			if usual := r.Steps.Times.Usual; usual > 0 {
				if work == "" || rank.Program.Tokens != tokens {
					tokens = rank.Program.Tokens // mostly those of all ranks
					work = fmt.Sprint(r.Key.Resource.Service, cmp.Or(r.Members.World, len(r.Ranks)), " ", tokens, model)
				}
				is.Work, is.Step = work, usual
			}
		}
	}
	for _, rank := range r.Ranks {
		if rank.Moved && at[rank.Name] != "" && !hosts[rank.Host] {
			left[rank.Host] = true
		}
	}
	for host := range left {
		if 4*len(left) <= len(hosts) {
			l.cause(l.uses[host][programOf(&r.Key.Resource, r.Key.ID)], "left by a restart", "", s.Now)
		}
	}
}

// use returns the use of a host by a run at now, which is remembered if there is room.
func (l *Lemons) use(host, run string, by *gpus.Owner, now time.Time) *use {
	day := now.Unix() / daySeconds
	is := l.uses[host][run]
	if is == nil {
		for kept := int64(lemonDays); l.n >= maxUses && kept > 0; kept /= 2 {
			l.forget(day - kept)
		}
		if is = (&use{Who: run[:strings.LastIndexByte(run, '/')]}); l.n >= maxUses {
			return is
		}
		if l.uses[host] == nil {
			mlattr.Put(&l.uses, strings.Clone(host), make(map[string]*use))
		}
		l.uses[host][run] = is
		l.n++
	}
	switch {
	case by.Namespace != "":
		is.Who = by.Namespace + "/" + by.Service
	case by.UserID+by.User != "":
		is.Who = cmp.Or(by.UserID, by.User)
	}
	if is.Last != day {
		is.Days, is.Last, is.Has = is.Days+1, day, nil
	}
	return is
}

// forget forgets the uses that ended before a day.
func (l *Lemons) forget(before int64) {
	l.n = 0
	for host, uses := range l.uses {
		maps.DeleteFunc(uses, func(_ string, is *use) bool { return is == nil || is.Last < before })
		if l.n += len(uses); len(uses) == 0 {
			delete(l.uses, host)
		}
	}
}

// cause notes that a host is the cause of a problem, if its use is known.
func (l *Lemons) cause(is *use, kind, gpu string, now time.Time) {
	if is != nil && is.Kind == "" {
		is.Kind, is.GPU, is.At, l.judged = kind, strings.Clone(gpu), now.Unix(), 0
	}
}

// blame notes the host that is the cause of a problem of a run.
func (l *Lemons) blame(s *State, p *problem.Problem) {
	host, gpu := p.Place()
	kind, _ := mlattr.ProblemNamed(p.Kind)
	if host == "" || p.Subject.Run == "" || kind.FromSilence && s.Withheld {
		return
	}
	run := programOf(&p.Subject.Resource, p.Subject.Run)
	switch p.Kind {
	case mlattr.ProblemGPUFailed:
		l.use(host, run, &p.Holder, s.Now) // of a program without ranks, too
	case mlattr.ProblemThrottled, mlattr.ProblemHostSilent:
	case mlattr.ProblemSlow, mlattr.ProblemRankMissing, mlattr.ProblemRunFailed:
		at := slices.IndexFunc(s.Runs, func(r *runs.Run) bool { return r.Key.ID == p.Subject.Run && r.Key.Resource == p.Subject.Resource })
		if at < 0 || !hostsFault(s.Runs[at], p, host) {
			return
		}
		if g := gpuOf(s.Runs[at], &runs.Rank{Name: p.Rank, Host: host}); g != nil {
			gpu = g.ID
		}
	default:
		return
	}
	l.cause(l.uses[host][run], kind.Title, gpu, s.Now)
}

// hostsFault reports whether a problem of a run may be the fault of its host: rank 0 does more than
// others, a stage of a pipeline may have more of the model, and an error of the program is one of
// several hosts.
func hostsFault(r *runs.Run, p *problem.Problem, host string) bool {
	alone := true
	for rank := range present(r) {
		alone = alone && rank.Host == host
		if p.Kind == mlattr.ProblemRunFailed && rank.Host != host && rank.State == runs.Failed && !mlattr.EndedByAnother(rank.Failure.Class, rank.Failure.Message) {
			return false
		}
	}
	if p.Kind != mlattr.ProblemSlow {
		return !alone && p.Rank != "0"
	}
	b := ranksBehind(r)
	other := func(rank *runs.Rank) bool { return rank.Host == host && rank.Name != "0" }
	return len(b.ranks) == 0 || b.stage(r) == "" && slices.ContainsFunc(b.ranks, other)
}

// tally is a number of days in which runs used hosts, and of runs in which these were the cause
// of a problem.
type tally struct{ days, causes float64 }

// and returns the tally with a use more.
func (t tally) and(is *use, day int64) tally {
	if t.days += float64(is.Days); is.blamed(day) {
		t.causes++
	}
	return t
}

func (is *use) blamed(day int64) bool { return is.Kind != "" && day-is.At/daySeconds <= lemonDays }

// rateWithout returns the causes a day without those of another tally, where so many days with a
// rate are known besides.
func (t tally) rateWithout(other tally, days, rate float64) float64 {
	return (t.causes - other.causes + days*rate) / (t.days - other.days + days)
}

// settle finds the lemons: their number of causes is unlikely by Poisson's distribution if they
// have the rate that the same people have on other hosts, or that of all if it is higher.
func (l *Lemons) settle(s *State) {
	day := s.Now.Unix() / daySeconds
	if l.judged == day {
		return
	}
	l.forget(day - lemonDays)
	was := l.found
	l.judged, l.found = day, nil
	all, people := tally{}, make(map[string]tally)
	for _, uses := range l.uses {
		for _, is := range uses {
			all, people[is.Who] = all.and(is, day), people[is.Who].and(is, day)
		}
	}
	for host, uses := range l.uses {
		here, own, chance := tally{}, make(map[string]tally), lemonChance
		for _, is := range uses {
			here, own[is.Who] = here.and(is, day), own[is.Who].and(is, day)
		}
		rate, expected, blaming := all.rateWithout(here, 1, 0.5), 0.0, 0
		for who, mine := range own {
			expected += mine.days * max(rate, people[who].rateWithout(mine, fleetDays, rate))
			if mine.causes > 0 {
				blaming++
			}
		}
		if slices.ContainsFunc(was, func(p problem.Problem) bool { return p.Subject.Host == host }) {
			chance = notLemonChance
		}
		if here.causes >= lemonRuns && blaming >= lemonPeople && atLeast(here.causes, expected)*float64(len(l.uses)) < chance {
			p := l.describe(host, blaming, day)
			p.Value, p.Usual, p.Unit, p.Count = here.causes, expected, "{run}", int64(len(uses))
			p.Evidence = append(p.Evidence, fmt.Sprintf("%.2g such runs are to be expected: %.0f in %.0f days of runs on %s, and %.0f days here",
				expected, all.causes-here.causes, all.days-here.days, quantity(len(l.uses)-1, "other host", "other hosts"), here.days))
			l.found = append(l.found, p)
		}
	}
	if l.worse.Evident.Unix() != day*daySeconds {
		l.findVersion(day)
	}
	if l.worse.Kind != "" {
		l.found = append(l.found, l.worse)
	}
}

// atLeast returns the probability of n or more events where a mean number is to be expected.
func atLeast(n, mean float64) float64 {
	one, below := math.Exp(-mean), 0.0
	for i := range int(n) {
		below, one = below+one, one*mean/float64(i+1)
	}
	return 1 - below
}

// describe describes a lemon.
func (l *Lemons) describe(host string, people int, day int64) problem.Problem {
	first, last, names := int64(math.MaxInt64), int64(0), []string{}
	kinds, onGPU := make(map[string]int), make(map[string]int)
	for run, is := range l.uses[host] {
		if is.blamed(day) {
			first, last, names = min(first, is.At), max(last, is.At), append(names, run)
			kinds[is.Kind]++
			onGPU[is.GPU]++
		}
	}
	slices.Sort(names)
	counts := mlattr.Mapped(slices.Sorted(maps.Keys(kinds)), func(kind string) string {
		return fmt.Sprintf("%s %d", kind, kinds[kind])
	})
	what := strings.Join(counts, ", ")
	date := func(at int64) string { return time.Unix(at, 0).UTC().Format(time.DateOnly) }
	p := problem.Problem{
		Kind: mlattr.ProblemLemonHost, Subject: problem.Subject{Host: host}, Measure: measured(0, ""),
		Onset: time.Unix(last, 0), Evident: time.Unix(last, 0), Interval: daySeconds * time.Second,
		Evidence: []string{
			fmt.Sprintf("the cause in %d of %d runs, of %d people or programs, %s to %s: %s", len(names), len(l.uses[host]), people, date(first), date(last), what),
			"runs: " + listed(names),
		},
		Next: "Drain the host, and test it before others run there.",
	}
	for id, n := range onGPU {
		if id != "" && n+onGPU[""] == len(names) {
			p.GPU, p.Evidence = id, append(p.Evidence, fmt.Sprintf("GPU %s in all %d of which the GPU is known", id, n))
		}
	}
	if strings.Trim(host, inHostNames) == "" && host[0] != '-' {
		p.Next += fmt.Sprintf(" Slurm: scontrol update nodename=%s state=drain reason=%q. Kubernetes: kubectl cordon %[1]s, and when its runs have ended kubectl drain %[1]s --ignore-daemonsets.", host, "lemon host: "+what)
	}
	return p
}

// MarshalJSON returns what is remembered.
func (l *Lemons) MarshalJSON() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return json.Marshal(l.uses)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Lemons) UnmarshalJSON(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judged = 0
	return json.Unmarshal(data, &l.uses)
}
