package problem

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxText limits a text that Decode reads, in bytes.
const maxText = 4096

// saved is an open problem as it is kept over a restart.
type saved struct {
	Kind     string     `json:"kind"`
	Subject  Subject    `json:"subject"`
	Onset    time.Time  `json:"onset"`
	Detected time.Time  `json:"detected"`
	Evident  time.Time  `json:"evident"`
	Interval float64    `json:"interval,omitempty"`
	Value    *float64   `json:"value,omitempty"`
	Usual    *float64   `json:"usual,omitempty"`
	Unit     string     `json:"unit,omitempty"`
	Rank     string     `json:"rank,omitempty"`
	Host     string     `json:"host,omitempty"`
	GPU      string     `json:"gpu,omitempty"`
	GPUs     float64    `json:"gpus,omitempty"`
	Held     []gpus.Key `json:"held,omitempty"`
	Holder   gpus.Owner `json:"holder"`
	OfRun    string     `json:"holder_run,omitempty"`
	Evidence []string   `json:"evidence,omitempty"`
	Next     string     `json:"next,omitempty"`
	Before   []Change   `json:"before,omitempty"`
}

// known returns a number that JSON can have, or nil.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func number(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// Encode returns open problems as JSON, for Decode after a restart.
func Encode(open []Entry) ([]byte, error) {
	all := make([]saved, 0, len(open))
	for i := range open {
		e := &open[i]
		all = append(all, saved{
			Kind: e.Kind, Subject: e.Subject, Onset: e.Onset.UTC(), Detected: e.Detected.UTC(), Evident: e.Evident.UTC(), Interval: e.Interval.Seconds(),
			Value: known(e.Value), Usual: known(e.Usual), Unit: e.Unit, Rank: e.Rank, Host: e.Host, GPU: e.GPU, GPUs: e.GPUs,
			Held: e.Held, Holder: e.Holder, OfRun: e.HolderRun, Evidence: e.Evidence, Next: e.Next, Before: e.Before,
		})
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("write the open problems: %w", err)
	}
	return data, nil
}

// Decode reads what Encode wrote. It leaves out what is no problem, and returns an
// error for what Encode has not written.
func Decode(data []byte) ([]Entry, error) {
	var all []saved
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("read the open problems: %w", err)
	}
	open := make([]Entry, 0, len(all))
	for i := range all[:min(len(all), maxOpen)] {
		s := &all[i]
		kind, ok := mlattr.ProblemNamed(s.Kind)
		if !ok || kind.Moment || !s.plausible() {
			continue
		}
		e := Entry{Detected: s.Detected, Found: s.Evident, Before: s.Before[:min(len(s.Before), maxPhrases)]}
		e.Problem = Problem{
			Kind: s.Kind, Subject: s.Subject, Onset: s.Onset, Evident: s.Evident, Interval: time.Duration(s.Interval * float64(time.Second)),
			Value: number(s.Value), Usual: number(s.Usual), Unit: s.Unit, Telemetry: math.NaN(), Rank: s.Rank, Host: s.Host, GPU: s.GPU,
			GPUs: s.GPUs, Held: s.Held[:min(len(s.Held), MaxHeld)], Holder: s.Holder, HolderRun: s.OfRun, Evidence: s.Evidence[:min(len(s.Evidence), maxPhrases)], Next: s.Next,
		}
		open = append(open, e)
	}
	return open, nil
}

// plausible reports whether Encode may have written the problem.
func (s *saved) plausible() bool {
	h := &s.Holder
	texts := []string{
		s.Subject.Resource.Namespace, s.Subject.Resource.Service, s.Subject.Run, s.Subject.Host, s.Subject.GPU, s.Unit, s.Rank, s.Host, s.GPU, s.Next, s.OfRun,
		h.Service, h.Rank, h.Job, h.Namespace, h.Pod, h.Container, h.UserID, h.User,
	}
	for _, change := range s.Before {
		texts = append(texts, change.Text)
	}
	for _, key := range s.Held {
		texts = append(texts, key.Host, key.ID)
	}
	long := func(text string) bool { return len(text) > maxText }
	return !slices.ContainsFunc(texts, long) && !slices.ContainsFunc(s.Evidence, long) &&
		s.Onset.Unix() > 0 && !s.Evident.Before(s.Onset) && s.Interval >= 0 && s.Interval <= (24*time.Hour).Seconds() && s.GPUs >= 0 && s.GPUs <= maxGPUs
}

// maxGPUs limits the GPUs of a problem that Decode believes.
const maxGPUs = 1e6

// Restore opens the problems that were open before a restart, and that are not open
// now. Their detectors have forgotten what they knew: until one reports it again, a
// problem ends only when it has been gone for 10 minutes, and without a verdict.
func (b *Board) Restore(open []Entry, now time.Time) {
	defer b.Withhold(b.withholds)
	b.withholds = false
	for i := range open {
		was := &open[i]
		id := key{was.Kind, was.Subject}
		if was.Onset.After(now) || b.open[id] != nil {
			continue
		}
		entry := b.begin(id, &was.Problem, now)
		if entry == nil {
			continue
		}
		entry.Detected, entry.Found, entry.Before = earlier(was.Detected, now), earlier(was.Found, now), was.Before
		entry.back, entry.Restored = true, true
		b.restored = append(b.restored, entry)
	}
}
