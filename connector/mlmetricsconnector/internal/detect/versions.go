package detect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// versionChance is how likely on a day any version seems worse by chance, if runs are
	// independent of each other, and hostsChance how likely this one does if hosts are.
	// agreement is how clearly those who run them must agree, as three equal ones do.
	versionChance, hostsChance, agreement = 1e-3, 0.003, 1.6
	// leastLonger and leastMore are how many times as long a step takes, and as many hosts are
	// the cause of a problem, with a version that is worse; leastTroubles are such hosts.
	leastLonger, leastMore, leastTroubles = 1.03, 1.5, 10
	// alike is how many times as long the steps of runs take at most that do the same.
	alike = 2
	// leastPart is the least part of the uses of hosts with a version that is compared: there are
	// at most ten of a thing, which takes seconds a day for the most uses that are remembered.
	leastPart, daysOfWeek = 0.1, 7
)

// alikes are the runs of somebody that do the same, as far as is known, in the same week.
type alikes struct {
	who, work string
	week      int64
}

// hostWith is a host with its version of the thing that is compared.
type hostWith struct{ name, version string }

// trial is a run on hosts, the value of which says how many of those alike take shorter steps,
// less those that take longer; or the use of those of its hosts that have one version, with the
// number of them that were the cause of a problem.
type trial struct {
	hosts []hostWith
	// on has the number of the hosts by their version.
	on    map[string]float64
	value float64
	// step is how long a step takes, weight what the value is in proportion to: 1, or the days
	// of use.
	step, weight float64
}

// with returns which part of the hosts has a version.
func (t *trial) with(version string) float64 { return t.on[version] / float64(len(t.hosts)) }

// groups are trials of runs alike.
type groups map[alikes][]*trial

// The measures are how long steps take, how often a host was the cause of any problem, and that of
// a failed GPU.
const slowSteps, troubles, measures = 0, 1, 3

// saysOf says what was found, from the value and what is usual.
var saysOf = [measures]string{
	"a step takes %.3[1]g times as long as without it",
	"%.3g times a host was the cause of a problem, %.2g are to be expected by those without it",
	"%.3g times a GPU failed, %.2g are to be expected by those without it",
}

// trials returns what shows whether a version of a thing is worse.
func (l *Lemons) trials(thing string, day int64) [measures]groups {
	// part is a run, or its use of the hosts with a version.
	type part struct {
		measure      int
		run, version string
	}
	all, parts := [measures]groups{{}, {}, {}}, make(map[part]*trial)
	add := func(is *use, id part, on hostWith) *trial {
		t := parts[id]
		if t == nil {
			t = &trial{on: make(map[string]float64)}
			like := alikes{is.Who, is.Work, is.Last / daysOfWeek}
			parts[id], all[id.measure][like] = t, append(all[id.measure][like], t)
		}
		t.hosts, t.on[on.version] = append(t.hosts, on), t.on[on.version]+1
		return t
	}
	failed, _ := mlattr.ProblemNamed(mlattr.ProblemGPUFailed)
	for host, uses := range l.uses {
		for run, is := range uses {
			on := hostWith{name: host}
			for _, has := range is.Has {
				if of, version, _ := strings.Cut(has, "="); of == thing {
					on.version = version
				}
			}
			if is.Step > 0 {
				t := add(is, part{slowSteps, run, ""}, on)
				t.step, t.weight = is.Step, 1
			}
			for measure := troubles; measure < measures; measure++ {
				t := add(is, part{measure, run, on.version}, on)
				if t.weight += float64(is.Days); is.blamed(day) && (measure == troubles || is.Kind == failed.Title) {
					t.value++
				}
			}
		}
	}
	for measure, trials := range all {
		for like, group := range trials {
			// Of some nobody knows whether they have the version.
			trials[like] = slices.DeleteFunc(group, func(t *trial) bool { return t.on[""] > 0 })
			if measure == slowSteps {
				rank(trials[like])
			}
		}
	}
	return all
}

// rank sets the values of runs.
func rank(group []*trial) {
	byStep := func(t *trial, step float64) int { return cmp.Compare(t.step, step) }
	slices.SortFunc(group, func(a, b *trial) int { return byStep(a, b.step) })
	for i, t := range group {
		first, _ := slices.BinarySearchFunc(group, t.step/alike, byStep)
		end, _ := slices.BinarySearchFunc(group, t.step*alike, byStep)
		t.value = float64(2*i+1-first-end) / float64(len(group)+1)
	}
}

// difference is how trials with a version differ from those alike without it.
type difference struct {
	// sum is by how much their values are larger, variance that of sum if each may as well be
	// without it.
	sum, variance float64
	// runs, had and all are the trials with the version, their values, and those of all.
	runs, had, all float64
	// people and hosts have what sum is made of.
	people map[string]float64
	hosts  map[hostWith]float64
	// times is how many times as long a step takes as the median of those without it.
	times []float64
}

// compare returns how trials with a version differ from those alike without it.
func (g groups) compare(version string) (d difference) {
	d.people, d.hosts = make(map[string]float64), make(map[hostWith]float64)
	for of, group := range g {
		var with, had, value, weight, sum, parts, spread float64
		for _, t := range group {
			with, value, weight = with+t.with(version), value+t.value, weight+t.weight
		}
		n, without := float64(len(group)), []float64{}
		for _, t := range group {
			if t.with(version) == 0 {
				without = append(without, t.step)
			}
			x, y := t.with(version)-with/n, t.value-value*t.weight/weight
			sum, parts, spread, had = sum+x*y, parts+x*x, spread+y*y, had+t.with(version)*t.value
		}
		if !(parts > 1e-9) {
			continue // all have it, or none
		}
		d.sum, d.variance = d.sum+sum, d.variance+spread*parts/(n-1)
		d.runs, d.had, d.all = d.runs+with, d.had+had, d.all+value
		d.people[of.who] += sum
		usual := shared.Median(without)
		for _, t := range group {
			if times := t.step / usual; t.with(version) > 0 && times <= alike && times >= 1.0/alike {
				d.times = append(d.times, times)
			}
			for _, host := range t.hosts {
				d.hosts[host] += (t.value - value*t.weight/weight) / float64(len(t.hosts))
			}
		}
	}
	return d
}

// shown returns how many standard deviations the sum is; 0 if the hosts, each of which counts
// once, or the people do not show it too. It returns how many hosts have the version, too.
func (d *difference) shown(version string) (z float64, having, hosts int) {
	var own, all, squares, people float64
	for host, score := range d.hosts {
		if all, squares = all+score, squares+score*score; host.version == version {
			having, own = having+1, own+score
		}
	}
	for _, sum := range d.people {
		people += sum * sum
	}
	n, part := float64(len(d.hosts)), float64(having)/float64(len(d.hosts))
	ofHosts := (own - all*part) / math.Sqrt(part*(1-part)*n/(n-1)*(squares-all*all/n))
	if above(ofHosts) < hostsChance && d.sum > agreement*math.Sqrt(people) {
		z = d.sum / math.Sqrt(d.variance)
	}
	return z, having, len(d.hosts)
}

// above returns the probability of a value above one of the standard normal distribution.
func above(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// findVersion finds the version with which the same people's runs are most clearly worse than
// without it, if there is one.
func (l *Lemons) findVersion(day int64) {
	uses, trials := make(map[string]float64), make(map[string][measures]groups)
	for _, ofHost := range l.uses {
		for _, is := range ofHost {
			for _, has := range is.Has {
				thing, _, _ := strings.Cut(has, "=")
				uses[thing], uses[has] = uses[thing]+1, uses[has]+1
			}
		}
	}
	tests, most := 0.0, 0.0
	for has, n := range uses {
		thing, version, is := strings.Cut(has, "=")
		if !is || n == uses[thing] || n < leastPart*uses[thing] {
			continue
		}
		of := shared.Entry(trials, thing, func() [measures]groups { return l.trials(thing, day) })
		for measure, of := range of {
			tests++
			d := of.compare(version)
			if z, having, hosts := d.shown(version); z > most {
				if p, ok := d.describe(strings.Replace(has, "=", " ", 1), measure, having, hosts-having); ok {
					most, l.worse = z, p
				}
			}
		}
	}
	if above(most)*tests >= versionChance {
		l.worse = problem.Problem{}
	}
	l.worse.Evident = time.Unix(day*daySeconds, 0)
}

// describe describes a version that is worse; ok is false if it is so by too little.
func (d *difference) describe(version string, measure, having, others int) (p problem.Problem, ok bool) {
	p = problem.Problem{Kind: mlattr.ProblemLemonVersion, Measure: measured(d.had, "{host}"), Interval: daySeconds * time.Second}
	// As many a day as without it, also where there was none.
	expected := d.had - d.sum
	p.Usual = expected * (d.all - d.had + 0.5) / (d.all - expected + 0.5)
	ok = d.had >= leastTroubles && d.had >= leastMore*p.Usual
	if measure == slowSteps {
		p.Value, p.Usual, p.Unit = shared.Median(d.times), 1, "1"
		ok = p.Value >= leastLonger
	}
	p.Count = int64(math.Round(d.runs))
	p.Evidence = []string{
		version + ": " + fmt.Sprintf(saysOf[measure], p.Value, p.Usual),
		fmt.Sprintf("%d runs on %s with it, compared with those of the same %d people or programs on %d without it, with the same work in the same weeks",
			p.Count, quantity(having, "host", "hosts"), len(d.people), others),
	}
	return p, ok
}
