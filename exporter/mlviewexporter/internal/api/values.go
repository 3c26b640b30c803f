package api

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// HexID returns an id as text, "" for the empty one.
func HexID(id []byte) string {
	for _, b := range id {
		if b != 0 {
			return hex.EncodeToString(id)
		}
	}
	return ""
}

// Key returns the key of a row: a hash, so that it fits into an address and is
// the same in every collector and after a restart.
func Key(kind string, parts ...string) string {
	h := sha256.New()
	for _, part := range append([]string{kind}, parts...) {
		// The length keeps "a", "bc" apart from "ab", "c".
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hex.EncodeToString(h.Sum(nil)[:10])
}

// Finite returns a pointer to a number, nil if it is not finite.
func Finite(v float64) *float64 {
	if v-v != 0 {
		return nil
	}
	return &v
}

// TimeOf returns a pointer to a time in UTC, nil for the zero time.
func TimeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// TraceURL returns the address of a trace in Jaeger, "" if there is none.
func TraceURL(jaeger, trace string) string {
	if trace == "" || jaeger == "" {
		return ""
	}
	return strings.TrimSuffix(jaeger, "/") + "/trace/" + trace
}

// Exact returns the number with the digits that a float32 has.
func Exact(v float32) float64 {
	exact, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	return exact
}

// MakeLists makes the lists that are nil and that JSON must have, so that they
// are [] there and not null. The State must not be in use yet.
func (s *State) MakeLists() {
	MakeList(&s.Needs)
	MakeList(&s.Resolved)
	MakeList(&s.Runs)
	MakeList(&s.GPUs)
	MakeList(&s.Failures)
	MakeList(&s.Calls)
	MakeList(&s.Pools)
	MakeList(&s.Models)
	MakeList(&s.Changes)
	MakeList(&s.Missing)
	MakeList(&s.Collectors)
	if s.Collector.GPUs == nil {
		s.Collector.GPUs = map[string]int{}
	}
	makeListsOfNeeds(s.Needs)
	makeListsOfNeeds(s.Resolved)
	for i := range s.GPUs {
		MakeList(&s.GPUs[i].Holders)
	}
}

// MakeLists does for a RunDetail what it does for a State.
func (d *RunDetail) MakeLists() {
	MakeList(&d.Needs)
	MakeList(&d.Ranks)
	MakeList(&d.Settings)
	MakeList(&d.Changes)
	MakeList(&d.Phases)
	MakeList(&d.Curves)
	MakeList(&d.Marks)
	MakeList(&d.Calls)
	MakeList(&d.Failures)
	MakeList(&d.Traces)
	makeListsOfNeeds(d.Needs)
	for i := range d.Curves {
		MakeList(&d.Curves[i].Times)
		MakeList(&d.Curves[i].Values)
	}
	for i := range d.Traces {
		MakeList(&d.Traces[i].Spans)
	}
}

func makeListsOfNeeds(needs []Need) {
	for i := range needs {
		MakeList(&needs[i].Evidence)
		MakeList(&needs[i].Before)
	}
}

// TrueFirst orders rows of which something is true before others.
func TrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// MakeList makes a list that is nil an empty one.
func MakeList[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

// Limited returns the first rows of a list, and counts the others as hidden.
func Limited[T any](state *State, list string, rows []T, limit int) []T {
	if more := len(rows) - limit; more > 0 {
		state.Collector.Hidden[list] += more
		return rows[:limit]
	}
	return rows
}
