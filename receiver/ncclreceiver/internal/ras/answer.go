package ras

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
)

const (
	// maxSize is the largest accepted number of ranks of a communicator.
	maxSize = 1 << 20
	// maxHash is the length of two hashes and three numbers of 64 bits.
	maxHash = 64
	// minEntry is less than a rank or a communicator has in an answer, in bytes.
	minEntry = 64
)

// Collectives are the operations that NCCL counts, in the order of Rank.Counts.
var Collectives = [...]string{"broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"}

// Answer is what a process says about the communicators of its job.
type Answer struct {
	// Communicators are ordered by size, the largest first.
	Communicators []Communicator
	// Dropped is the number of communicators that were left out because their
	// numbers are impossible.
	Dropped int
}

// Communicator is a group of ranks.
type Communicator struct {
	// Hash has the communicator's hash and secondary hash, which identify it.
	Hash string
	// Size is the number of ranks that it was made with.
	Size int
	// Ranks have responded, Missing have not. Both are ordered by Number.
	Ranks, Missing []Rank
}

// Rank is one rank of a communicator.
type Rank struct {
	// Number is the rank in the communicator.
	Number int
	// Host is the address of its host. It is not valid if unknown.
	Host netip.Addr
	// PID is its process in the process's PID namespace, -1 if unknown.
	PID int
	// Device is the index of its CUDA device in the process.
	Device int
	// Running reports, of a rank that has responded, whether it is neither being
	// made, destroyed nor aborted.
	Running bool
	// Counts has the operations that it has launched.
	Counts [len(Collectives)]uint64
	// Unresponsive and Dead are, of a missing rank, whether its process has not
	// responded, and whether NCCL has given it up.
	Unresponsive, Dead bool
}

// The answer as NCCL writes it.
type (
	wireAnswer struct {
		Communicators wireList[wireCommunicator] `json:"communicators"`
	}
	wireCommunicator struct {
		Hash          string             `json:"hash"`
		SecondaryHash string             `json:"secondary_hash"`
		Size          int                `json:"size"`
		Ranks         wireList[wireRank] `json:"ranks"`
		Missing       wireList[wireRank] `json:"missing_ranks"`
	}
	wireRank struct {
		Rank   int        `json:"rank"`
		Host   string     `json:"host"`
		PID    int        `json:"pid"`
		Device int        `json:"cuda_dev"`
		Status wireStatus `json:"status"`
		Counts struct {
			Broadcast, Reduce, AllGather, ReduceScatter, AllReduce uint64
		} `json:"collective_counts"`
	}
	wireStatus struct {
		InitState    int  `json:"init_state"`
		Finalize     bool `json:"finalize_called"`
		Destroy      bool `json:"destroy_flag"`
		Abort        bool `json:"abort_flag"`
		Unresponsive bool `json:"unresponsive"`
		Dead         bool `json:"considered_dead"`
	}
)

// wireList is a list whose memory is bounded by the length of its text, which hostile
// lists of small entries would exceed many times.
type wireList[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *wireList[T]) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if first, err := decoder.Token(); err != nil || first == nil {
		return err
	} else if first != json.Delim('[') {
		return errors.New("it is no list")
	}
	for decoder.More() {
		if len(*l) > len(raw)/minEntry {
			return errors.New("the entries of a list are too short")
		}
		var one T
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

// Parse reads an answer. It also reads that of NCCL 2.28.9, which leaves out commas.
func Parse(raw []byte) (*Answer, error) {
	var wire wireAnswer
	err := json.Unmarshal(raw, &wire)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		wire = wireAnswer{}
		err = json.Unmarshal(insertCommas(raw), &wire)
	}
	if err != nil {
		return nil, err
	}
	if wire.Communicators == nil {
		return nil, errors.New(`the answer has no "communicators"`)
	}
	answer := &Answer{}
	seen := make(map[string]bool, len(wire.Communicators))
	for i := range wire.Communicators {
		// Two with one hash would be two series with one name.
		c, ok := wire.Communicators[i].read()
		if !ok || seen[c.Hash] {
			answer.Dropped++
			continue
		}
		seen[c.Hash] = true
		answer.Communicators = append(answer.Communicators, c)
	}
	slices.SortFunc(answer.Communicators, func(a, b Communicator) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Hash, b.Hash))
	})
	return answer, nil
}

// read returns the communicator, and false if its numbers are impossible.
func (w *wireCommunicator) read() (Communicator, bool) {
	c := Communicator{Hash: w.Hash + ":" + w.SecondaryHash, Size: w.Size}
	if len(c.Hash) > maxHash || !isHash(c.Hash) || c.Size < 1 || c.Size > maxSize || len(w.Ranks)+len(w.Missing) > c.Size {
		return c, false
	}
	seen := make(map[int]struct{}, len(w.Ranks)+len(w.Missing))
	c.Ranks, c.Missing = make([]Rank, 0, len(w.Ranks)), make([]Rank, 0, len(w.Missing))
	for i := range w.Ranks {
		c.Ranks = append(c.Ranks, w.Ranks[i].read())
		seen[w.Ranks[i].Rank] = struct{}{}
	}
	for i := range w.Missing {
		c.Missing = append(c.Missing, w.Missing[i].read())
		seen[w.Missing[i].Rank] = struct{}{}
	}
	for number := range seen {
		if number < 0 || number >= c.Size {
			return c, false
		}
	}
	byNumber := func(a, b Rank) int { return cmp.Compare(a.Number, b.Number) }
	slices.SortFunc(c.Ranks, byNumber)
	slices.SortFunc(c.Missing, byNumber)
	return c, len(seen) == len(w.Ranks)+len(w.Missing)
}

func (w *wireRank) read() Rank {
	host, _ := netip.ParseAddr(w.Host) // "unknown" is none
	s := &w.Status
	return Rank{
		Number: w.Rank, Host: host.Unmap().WithZone(""), PID: max(w.PID, -1), Device: w.Device,
		Running:      s.InitState == 0 && !s.Finalize && !s.Destroy && !s.Abort,
		Counts:       [...]uint64{w.Counts.Broadcast, w.Counts.Reduce, w.Counts.AllGather, w.Counts.ReduceScatter, w.Counts.AllReduce},
		Unresponsive: s.Unresponsive, Dead: s.Dead,
	}
}

// isHash reports whether s has only characters of NCCL's hashes.
func isHash(s string) bool {
	return len(s) > 1 && strings.Trim(s, "0123456789abcdefx:") == ""
}

// insertCommas puts a comma wherever a value follows another one without. It leaves
// valid JSON as it is.
func insertCommas(raw []byte) []byte {
	fixed := make([]byte, 0, len(raw)+len(raw)/16)
	afterValue := false
	for i := 0; i < len(raw); {
		end := i + 1
		begins, ends := false, false
		switch raw[i] {
		case ' ', '\t', '\r', '\n':
			fixed = append(fixed, raw[i])
			i = end
			continue
		case ',', ':':
		case '}', ']':
			ends = true
		case '{', '[':
			begins = true
		case '"':
			begins, ends = true, true
			end = afterString(raw, i)
		default:
			begins, ends = true, true
			for end < len(raw) && !strings.ContainsRune(" \t\r\n,:{}[]\"", rune(raw[end])) {
				end++
			}
		}
		if begins && afterValue {
			fixed = append(fixed, ',')
		}
		fixed = append(fixed, raw[i:end]...)
		afterValue, i = ends, end
	}
	return fixed
}

// afterString returns the index after the string that begins at i.
func afterString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}
