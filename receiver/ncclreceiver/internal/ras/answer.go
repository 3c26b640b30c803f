package ras

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/netip"
	"regexp"
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

// UnmarshalJSON implements json.Unmarshaler.
func (r *Rank) UnmarshalJSON(raw []byte) error {
	var wire struct {
		Rank   int    `json:"rank"`
		Host   string `json:"host"`
		PID    int    `json:"pid"`
		Device int    `json:"cuda_dev"`
		Status struct {
			InitState    int  `json:"init_state"`
			Finalize     bool `json:"finalize_called"`
			Destroy      bool `json:"destroy_flag"`
			Abort        bool `json:"abort_flag"`
			Unresponsive bool `json:"unresponsive"`
			Dead         bool `json:"considered_dead"`
		} `json:"status"`
		Counts struct {
			Broadcast, Reduce, AllGather, ReduceScatter, AllReduce uint64
		} `json:"collective_counts"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	host, _ := netip.ParseAddr(wire.Host) // "unknown" is none
	s, counts := &wire.Status, &wire.Counts
	*r = Rank{
		Number: wire.Rank, Host: host.Unmap().WithZone(""), PID: max(wire.PID, -1), Device: wire.Device,
		Running:      s.InitState == 0 && !s.Finalize && !s.Destroy && !s.Abort,
		Counts:       [...]uint64{counts.Broadcast, counts.Reduce, counts.AllGather, counts.ReduceScatter, counts.AllReduce},
		Unresponsive: s.Unresponsive, Dead: s.Dead,
	}
	return nil
}

// wireCommunicator is a communicator as NCCL writes it.
type wireCommunicator struct {
	Hash          string         `json:"hash"`
	SecondaryHash string         `json:"secondary_hash"`
	Size          int            `json:"size"`
	Ranks         wireList[Rank] `json:"ranks"`
	Missing       wireList[Rank] `json:"missing_ranks"`
}

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
	var wire struct {
		Communicators wireList[wireCommunicator] `json:"communicators"`
	}
	err := json.Unmarshal(raw, &wire)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		wire.Communicators = nil
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
	c := Communicator{Hash: w.Hash + ":" + w.SecondaryHash, Size: w.Size, Ranks: w.Ranks, Missing: w.Missing}
	if len(c.Hash) > maxHash || strings.Trim(c.Hash, "0123456789abcdefx:") != "" || len(c.Hash) < 2 || c.Size < 1 || c.Size > maxSize {
		return c, false
	}
	seen := make(map[int]bool)
	for _, ranks := range [...][]Rank{c.Ranks, c.Missing} {
		for i := range ranks {
			number := ranks[i].Number
			if number < 0 || number >= c.Size || seen[number] {
				return c, false
			}
			seen[number] = true
		}
		slices.SortFunc(ranks, func(a, b Rank) int { return cmp.Compare(a.Number, b.Number) })
	}
	return c, true
}

// jsonToken is white space, a text, or another token of JSON.
var jsonToken = regexp.MustCompile(`[ \t\r\n]+|"(?:[^"\\]|\\(?s:.))*"?|[,:{}\[\]]|[^ \t\r\n,:{}\[\]"]+`)

// insertCommas puts a comma wherever a value follows another one without. It leaves
// valid JSON as it is.
func insertCommas(raw []byte) []byte {
	afterValue := false
	return jsonToken.ReplaceAllFunc(raw, func(token []byte) []byte {
		first := token[0]
		if strings.IndexByte(" \t\r\n", first) >= 0 {
			return token
		}
		if afterValue && strings.IndexByte(",:}]", first) < 0 {
			token = slices.Concat([]byte{','}, token)
		}
		afterValue = strings.IndexByte(",:{[", first) < 0
		return token
	})
}
