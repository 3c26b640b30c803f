package detect_test

import (
	"encoding/json"
	"flag"
	"math"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// fleetsOfEach is 100 for the figures of docs/evidence/anomalies.md.
var fleetsOfEach = flag.Int("fleets", 6, "how many fleets of each kind live for 20 days")

// site is a fleet whose hosts have versions, and people who change their programs now and then.
type site struct {
	*fleet
	// versions are those of each host by their kind, own is how many times as long a step takes
	// on it than on others.
	versions map[string]map[string]string
	own      map[string]float64
	// work is how long a step of somebody takes.
	work map[string]float64
	// costs is how many times as long it takes with a version, and fails how likely a GPU of a
	// host fails in a run.
	costs, fails map[string]float64
}

// newSite returns a fleet of 32 hosts with random versions.
func newSite(seed uint64) *site {
	s := &site{newFleet(seed, 32), map[string]map[string]string{}, map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]float64{}}
	s.pace = s.step
	several := 2 + s.random.IntN(2)
	for _, host := range s.hosts {
		s.own[host] = math.Exp(0.015 * s.random.NormFloat64())
		s.versions[host] = map[string]string{
			mlattr.ChangeDriver:   "570." + strconv.Itoa(s.random.IntN(several)),
			mlattr.ChangeFirmware: "96." + strconv.Itoa(s.random.IntN(2)),
		}
	}
	return s
}

// halves has every other host have one of two drivers.
func (s *site) halves() {
	for i, host := range s.hosts {
		s.versions[host][mlattr.ChangeDriver] = "570." + strconv.Itoa(i%2)
	}
}

// step returns how long a step of a run takes: as long as on the slowest of its hosts.
func (s *site) step(r *trained) float64 {
	if s.work[r.who] == 0 || s.random.Float64() < 0.02 {
		s.work[r.who] = 2 * math.Exp(0.3*s.random.NormFloat64())
	}
	longest := 0.0
	for i := range r.Ranks {
		host := r.Ranks[i].Host
		longest = max(longest, s.own[host]*max(1, s.costs[s.versions[host][mlattr.ChangeDriver]]))
	}
	torch := "torch 2." + strconv.Itoa(s.started/20%2)
	s.history.See([]change.Observation{{Of: change.Subject{Resource: r.Key.Resource}, Kind: mlattr.ChangeFramework, Name: "torch", Value: torch}}, s.now)
	return s.work[r.who] * longest * math.Exp(0.02*s.random.NormFloat64())
}

// day has people train for a day. upgrade changes versions at some hours.
func (s *site) day(number int, upgrade func(hour int)) {
	for hour := range 24 {
		upgrade(24*number + hour)
		for host, versions := range s.versions {
			for kind, version := range versions {
				s.history.See([]change.Observation{{Of: change.Subject{Host: host}, Kind: kind, Value: version}}, s.now)
			}
		}
		begun := s.started
		s.hours(1)
		for _, r := range s.running {
			if number, _ := strconv.Atoi(r.Key.ID[len("run-"):]); number > begun {
				s.failSome(r)
			}
		}
	}
}

// failSome has GPUs of a run fail.
func (s *site) failSome(r *trained) {
	for i := 0; i < len(r.Ranks); i += 2 {
		if host := r.Ranks[i].Host; s.random.Float64() < s.fails[s.versions[host][mlattr.ChangeDriver]] {
			s.failed = map[gpus.Key]gpus.GPU{}
			s.breaks(r, host)
			s.emit()
		}
	}
}

func never(int) {}

// rolls returns an upgrade of one host after the other, over some days.
func (s *site) rolls(days int) func(int) {
	first := s.random.IntN(24 * 12)
	return func(hour int) {
		for i, host := range s.hosts {
			if hour == first+i*24*days/len(s.hosts) {
				s.versions[host][mlattr.ChangeDriver] = "580.1"
			}
		}
	}
}

// lives returns what was said of a version on the first of 20 days on which one was worse, nil
// if none was.
func (s *site) lives(upgrade func(int)) []string {
	for number := range 20 {
		s.day(number, upgrade)
		if p, found := s.found[mlattr.ProblemLemonVersion]; found {
			return p.Evidence
		}
	}
	return nil
}

// No version is worse where none is: with random versions on hosts that differ, people who
// change what they do, and hosts that get another driver or are slow for other reasons.
func TestNoVersionIsWorse(t *testing.T) {
	for name, upgrade := range map[string]func(*site) func(int){
		"none changes":         func(*site) func(int) { return never },
		"another in four days": func(s *site) func(int) { return s.rolls(4) },
		"another at once":      func(s *site) func(int) { return s.rolls(0) },
		"two slow hosts": func(s *site) func(int) {
			s.own["n03"], s.own["n12"] = 1.3, 1.1
			return never
		},
		"GPUs fail": func(s *site) func(int) {
			s.fails["570.0"], s.fails["570.1"], s.fails["570.2"] = 0.1, 0.1, 0.1
			return never
		},
	} {
		for seed := range uint64(*fleetsOfEach) { // #nosec G115 -- not negative
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newSite(seed)
				assert.Empty(t, s.lives(upgrade(s)))
			})
		}
	}
}

// A driver of half of the hosts with which runs are worse is found in most fleets.
func TestAVersionIsWorse(t *testing.T) {
	for name, tt := range map[string]struct {
		plant func(*site)
		says  string
		least float64
	}{
		"5 % longer":           {func(s *site) { s.costs["570.1"] = 1.05 }, `^driver 570\.1: a step takes 1\.0\d* times as long as without it`, 0.5},
		"10 % longer":          {func(s *site) { s.costs["570.1"] = 1.1 }, `^driver 570\.1: a step takes 1\.(0\d*|1\d?) times as long as without it`, 0.8},
		"20 % longer":          {func(s *site) { s.costs["570.1"] = 1.2 }, `^driver 570\.1: a step takes 1\.[12]\d? times as long as without it`, 0.8},
		"three times failures": {func(s *site) { s.fails["570.0"], s.fails["570.1"] = 0.08, 0.24 }, `^driver 570\.1: \d+ times .*, [0-9.]+ are to be expected by those without it`, 0.8},
		"three times as many":  {func(s *site) { s.fails["570.0"], s.fails["570.1"] = 0.04, 0.12 }, `^driver 570\.1: \d+ times .*, [0-9.]+ are to be expected by those without it`, 0.4},
	} {
		t.Run(name, func(t *testing.T) {
			var found atomic.Int64
			t.Run("fleets", func(t *testing.T) {
				for seed := range uint64(*fleetsOfEach) { // #nosec G115 -- not negative
					t.Run("", func(t *testing.T) {
						t.Parallel()
						s := newSite(seed)
						s.halves()
						tt.plant(s)
						if evidence := s.lives(never); evidence != nil && regexp.MustCompile(tt.says).MatchString(evidence[0]) {
							found.Add(1)
							assert.Regexp(t, `^\d+ runs on \d+ hosts with it, compared with those of the same [3-6] people or programs on \d+ without it`, evidence[1])
						}
					})
				}
			})
			t.Logf("found in %d of %d", found.Load(), *fleetsOfEach)
			assert.GreaterOrEqual(t, float64(found.Load()), tt.least*float64(*fleetsOfEach))
		})
	}
}

// A version that is worse is known after a restart, too.
func TestAWorseVersionIsKept(t *testing.T) {
	s := newSite(1)
	s.halves()
	s.costs["570.1"] = 1.2
	before := s.lives(never)
	require.NotEmpty(t, before)
	data, err := json.Marshal(s.lemons)
	require.NoError(t, err)
	kept := new(detect.Lemons)
	require.NoError(t, json.Unmarshal(data, kept))
	s.keep(kept)
	s.emit()
	require.Contains(t, s.found, mlattr.ProblemLemonVersion)
	assert.Equal(t, before[0], s.found[mlattr.ProblemLemonVersion].Evidence[0])
}
