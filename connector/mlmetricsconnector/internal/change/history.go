// Package change notices what is new of programs, runs and hosts: the first time
// that a value is another one than before. It does not use pdata.
package change

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// maxItems limits what is compared, maxChanges the changes that are
	// remembered, and maxOfOne those of one run or program.
	maxItems, maxChanges, maxOfOne = 8192, 2000, 50
	// maxOfProgram limits the items of one program with its runs, or of one host, so
	// that a client that invents names does not fill all.
	maxOfProgram = 1024
	// maxRanks limits the runs that are known, and the ranks of them together.
	maxRanks = 8192
	// spareHosts are the hosts of a run that are remembered beyond two for each
	// rank, and maxNames limits the list of hosts of one change, in bytes.
	spareHosts, maxNames = 64, 512
	// keptFor is how long an item is remembered that is not seen, if there is
	// room; beyond the limit it is outOfUse.
	keptFor = 7 * 24 * time.Hour
	// sameRestart is how far apart a new attempt and its new hosts are seen.
	sameRestart = 2 * time.Minute
)

// Limits of the changes before a problem.
const (
	maxBefore    = 5
	beforeWithin = 6 * time.Hour
	// OnsetTolerance is how much later than the onset a change may be seen that
	// came before it: telemetry arrives at intervals.
	OnsetTolerance = 30 * time.Second
)

// Subject is what changes, or has a problem: a program, or a run of it; a GPU of a host, or
// a host.
type Subject struct {
	Resource       streams.Resource
	Run, Host, GPU string
}

// Clone returns a copy that shares no memory.
func (s Subject) Clone() Subject {
	return Subject{s.Resource.Clone(), strings.Clone(s.Run), strings.Clone(s.Host), strings.Clone(s.GPU)}
}

// Observation is a value that telemetry shows.
type Observation struct {
	Of Subject
	// Run is the run of the program in which it was seen, or "".
	Run string
	// Kind is one of the mlattr.Change values, Name distinguishes items of it:
	// the setting, the framework, or the model that was asked for.
	Kind, Name string
	// Value is the value, at most mlattr.MaxText bytes; for nodes it is the host
	// and Name the rank.
	Value string
}

// Change is something new.
type Change struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Of   Subject   `json:"of"`
	// Run is the run of a program in which it was first seen, or "".
	Run string `json:"run,omitempty"`
	// Setting is the name of a setting.
	Setting string `json:"setting,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to"`
	// Text is one phrase, such as "version 1.8.2 (was 1.8.1)".
	Text string `json:"text"`
}

// RunID returns the run that the change is of, or in which it was first seen.
func (c *Change) RunID() string { return cmp.Or(c.Of.Run, c.Run) }

// item is what has one value at a time.
type item struct {
	Of   Subject `json:"of"`
	Kind string  `json:"kind"`
	Name string  `json:"name,omitempty"`
}

// run is what is known of a run: its hosts, and how often it was attempted.
type run struct {
	// Ranks has the host of each rank, Hosts are those in order that it used.
	Ranks map[string]string `json:"ranks,omitempty"`
	Hosts []string          `json:"hosts,omitempty"`
	Seen  time.Time         `json:"seen"`
	// attempts are those that were seen since the start, 0 if none was.
	attempts int64
}

// History remembers values and changes. It is safe for concurrent use.
type History struct {
	mu    sync.Mutex
	key   [32]byte
	items map[item]*values
	// ofProgram counts the items of each program and host.
	ofProgram map[Subject]int
	runs      map[Subject]*run
	// ranks counts those of all runs.
	ranks        int
	all, pending []*Change
	left         int64
}

// NewHistory returns an empty History with a random key.
func NewHistory() *History {
	h := &History{items: make(map[item]*values), ofProgram: make(map[Subject]int), runs: make(map[Subject]*run)}
	_, _ = rand.Read(h.key[:]) // never fails
	return h
}

// Hash returns a short hash of a text that must not be kept. Without the key of the
// History nobody can compare it with the hash of a guess.
func (h *History) Hash(text string) string {
	h.mu.Lock()
	key := h.key
	h.mu.Unlock()
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

// See notes values that were seen at now. It keeps none of their memory.
func (h *History) See(observations []Observation, now time.Time) {
	if len(observations) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range observations {
		o := &observations[i]
		if o.Kind == mlattr.ChangeNodes {
			h.place(o, now)
			continue
		}
		known := h.items[item{o.Of, o.Kind, o.Name}]
		if known == nil {
			if !h.hasRoom(o.Of) {
				h.left++
				continue
			}
			known = &values{}
			h.addItem(item{o.Of.Clone(), strings.Clone(o.Kind), strings.Clone(o.Name)}, known)
		}
		if from, to, changed := known.see(o.Value, now, slices.Contains(settlingKinds, o.Kind)); changed {
			c := &Change{Time: now, Kind: o.Kind, Of: o.Of.Clone(), Run: strings.Clone(o.Run), From: from, To: to}
			if o.Kind == mlattr.ChangeSettings {
				c.Setting = strings.Clone(o.Name)
			}
			h.add(c, o.Name)
		}
	}
}

// Versions returns the versions of a host and of a program, each after the name of what has it and
// "=". What has several at the same time is left out.
func (h *History) Versions(host string, program streams.Resource, now time.Time) (all []string) {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	add := func(of item, name string) {
		if v := h.items[of]; v != nil && !slices.ContainsFunc(v.Known[1:], func(other value) bool { return now.Sub(other.Seen) < outOfUse }) {
			all = append(all, name+"="+strings.TrimPrefix(v.Known[0].Text, name+" "))
		}
	}
	for _, kind := range [...]string{mlattr.ChangeDriver, mlattr.ChangeFirmware} {
		add(item{Of: Subject{Host: host}, Kind: kind}, kind)
	}
	for _, name := range mlattr.Frameworks() {
		add(item{Subject{Resource: program}, mlattr.ChangeFramework, name}, name)
	}
	return all
}

// program returns the program of a subject, or the host.
func (s Subject) program() Subject { return Subject{Resource: s.Resource, Host: s.Host} }

// hasRoom reports whether one more item of a subject may be compared.
func (h *History) hasRoom(of Subject) bool {
	return len(h.items) < maxItems && h.ofProgram[of.program()] < maxOfProgram
}

func (h *History) addItem(id item, v *values) {
	if h.items[id] == nil {
		h.ofProgram[id.Of.program()]++
	}
	h.items[id] = v
}

// settlingKinds are the kinds of which an item may have several values from the beginning.
var settlingKinds = []string{mlattr.ChangeModel, mlattr.ChangeAnsweringModel, mlattr.ChangePrompt, mlattr.ChangeTools, mlattr.ChangeSettings}

// place notes on which host a rank of a run is. It is a change if the run did not
// use the host before.
func (h *History) place(o *Observation, now time.Time) {
	run := h.run(o.Of, now)
	if run == nil || h.ranks >= maxRanks && run.Ranks[o.Name] == "" {
		h.left++
		return
	}
	was, known := run.Ranks[o.Name]
	if known && was == o.Value {
		return
	}
	if !known {
		h.ranks++
	}
	host := strings.Clone(o.Value)
	mlattr.Put(&run.Ranks, strings.Clone(o.Name), host)
	at, used := slices.BinarySearch(run.Hosts, host)
	if used {
		return
	}
	if len(run.Hosts) >= 2*len(run.Ranks)+spareHosts {
		run.Hosts = slices.Compact(slices.Sorted(maps.Values(run.Ranks)))
	} else {
		run.Hosts = slices.Insert(run.Hosts, at, host)
	}
	if !known {
		return
	}
	c := &Change{Time: now, Kind: mlattr.ChangeNodes, Of: o.Of.Clone(), From: was, To: host}
	for _, other := range h.pending {
		if other.Kind == mlattr.ChangeNodes && other.Of == c.Of {
			other.From, other.To = listed(other.From, was), listed(other.To, host)
			other.Text = phrase(other, "")
			return
		}
	}
	h.add(c, "")
}

// run returns a run that was seen at now, or nil beyond the limit.
func (h *History) run(of Subject, now time.Time) *run {
	known := shared.Bounded(&h.runs, of, maxRanks, Subject.Clone)
	if known != nil {
		known.Seen = now
	}
	return known
}

// listed adds a name to a list, which ends with "…" beyond its limit.
func listed(list, name string) string {
	switch {
	case list == "":
		return name
	case strings.HasSuffix(list, ", …"):
		return list
	case len(list)+len(name) > maxNames:
		return list + ", …"
	}
	return list + ", " + name
}

// Attempts notes how many attempts of a run there were. A run that is first seen
// at its second attempt has not changed. New hosts of an attempt are part of it.
func (h *History) Attempts(of Subject, attempts int64, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	run := h.run(of, now)
	if run == nil || attempts <= run.attempts {
		return
	}
	was := run.attempts
	run.attempts = attempts
	if was < 1 {
		return
	}
	c := &Change{
		Time: now, Kind: mlattr.ChangeAttempt, Of: of.Clone(),
		From: strconv.FormatInt(was, 10), To: strconv.FormatInt(attempts, 10),
	}
	moved := func(other *Change) bool {
		return other.Kind == mlattr.ChangeNodes && other.Of == of && now.Sub(other.Time) <= sameRestart
	}
	hosts := ""
	for _, other := range h.all {
		if moved(other) {
			hosts = listed(hosts, other.To)
		}
	}
	// The attempt says it.
	h.pending = slices.DeleteFunc(h.pending, moved)
	h.all = slices.DeleteFunc(h.all, moved)
	h.add(c, hosts)
}

// add remembers a change of an item, or of an attempt with new hosts. It forgets the
// oldest one of the same run or program if these are too many, else the oldest of all.
func (h *History) add(c *Change, about string) {
	c.Text = phrase(c, about)
	h.all = shared.AppendBounded(h.all, c, maxChanges, maxOfOne, func(other *Change) bool { return other.Of == c.Of })
	if len(h.pending) < maxChanges {
		h.pending = append(h.pending, c)
	}
}

// Take returns the changes since the last call.
func (h *History) Take() []Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := mlattr.Mapped(h.pending, func(c *Change) Change { return *c })
	h.pending = nil
	return taken
}

// Left returns how many values were left out since the last call, because there
// are too many others.
func (h *History) Left() (left int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left, h.left = h.left, 0
	return left
}

// Before returns the changes of a run, program or host within the 6 hours before a
// time, the newest first, at most 5.
func (h *History) Before(of Subject, at time.Time) []Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []Change
	for _, c := range slices.Backward(h.all) {
		if !c.Time.After(at.Add(OnsetTolerance)) && at.Sub(c.Time) <= beforeWithin && h.concerns(c, of) {
			found = append(found, *c)
		}
	}
	slices.SortStableFunc(found, func(a, b Change) int { return b.Time.Compare(a.Time) })
	return found[:min(len(found), maxBefore)]
}

// concerns reports whether a change may matter to a subject.
func (h *History) concerns(c *Change, of Subject) bool {
	if c.Of.Host != "" {
		run := h.runs[Subject{Resource: of.Resource, Run: of.Run}]
		return c.Of.Host == of.Host || run != nil && slices.Contains(run.Hosts, c.Of.Host)
	}
	run := c.RunID()
	if run != "" && of.Run != "" {
		return run == of.Run && (c.Of.Resource == of.Resource || of.Resource.Service == "")
	}
	return c.Of.Run == "" && c.Of.Resource == of.Resource && of.Resource.Service != ""
}

// Tidy forgets what was not seen for long.
func (h *History) Tidy(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := keptFor
	if len(h.items) >= maxItems || len(h.runs) >= maxRanks || h.ranks >= maxRanks {
		kept = outOfUse
	}
	for id, v := range h.items {
		silent, program := now.Sub(v.seen()), id.Of.program()
		if silent > kept || silent > outOfUse && h.ofProgram[program] >= maxOfProgram {
			delete(h.items, id)
			if h.ofProgram[program]--; h.ofProgram[program] == 0 {
				delete(h.ofProgram, program)
			}
		}
	}
	for id, run := range h.runs {
		if now.Sub(run.Seen) > kept {
			h.ranks -= len(run.Ranks)
			delete(h.runs, id)
		}
	}
	h.all = slices.DeleteFunc(h.all, func(c *Change) bool { return now.Sub(c.Time) > keptFor })
}
