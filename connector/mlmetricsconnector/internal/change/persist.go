package change

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// exportVersion is the version of what Export writes.
	exportVersion = 1
	// MaxKept limits what Export writes and Import reads, in bytes.
	MaxKept = 16 << 20
)

// exported is what a History keeps over restarts.
type exported struct {
	Version int            `json:"version"`
	Key     []byte         `json:"key"`
	Items   []exportedItem `json:"items,omitempty"`
	Runs    []exportedRun  `json:"runs,omitempty"`
	Changes []Change       `json:"changes,omitempty"`
}

type exportedItem struct {
	item
	values
}

type exportedRun struct {
	Of Subject `json:"of"`
	run
}

// Export returns what is needed after a restart as JSON: the same bytes if nothing
// has changed, at most 16 MiB. Beyond that it leaves out what was seen longest ago.
func (h *History) Export() ([]byte, error) {
	out := h.export()
	for {
		data, err := json.Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("write what changes are compared with: %w", err)
		}
		if len(data) <= MaxKept {
			return data, nil
		}
		out.Items = out.Items[:len(out.Items)/2]
		out.Runs = out.Runs[:len(out.Runs)/2]
		out.Changes = out.Changes[:len(out.Changes)/2]
	}
}

// tenMinutes rounds a time down to ten minutes, so that what is only seen again is not
// written each time.
func tenMinutes(t time.Time) time.Time { return t.UTC().Truncate(10 * time.Minute) }

func (h *History) export() exported {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := exported{Version: exportVersion, Key: slices.Clone(h.key[:])}
	for id, v := range h.items {
		one := exportedItem{id, values{v.First.UTC(), slices.Clone(v.Known), slices.Clone(v.Fresh)}}
		for i := range one.Known {
			one.Known[i].Seen = tenMinutes(one.Known[i].Seen)
		}
		out.Items = append(out.Items, one)
	}
	for of, known := range h.runs {
		if len(known.Ranks) > 0 {
			out.Runs = append(out.Runs, exportedRun{of, run{Ranks: maps.Clone(known.Ranks), Hosts: slices.Clone(known.Hosts), Seen: tenMinutes(known.Seen)}})
		}
	}
	for _, c := range slices.Backward(h.all) {
		one := *c
		one.Time = one.Time.UTC()
		out.Changes = append(out.Changes, one)
	}
	slices.SortFunc(out.Items, func(a, b exportedItem) int {
		return cmp.Or(b.seen().Compare(a.seen()), compareSubjects(a.Of, b.Of), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(out.Runs, func(a, b exportedRun) int {
		return cmp.Or(b.Seen.Compare(a.Seen), compareSubjects(a.Of, b.Of))
	})
	return out
}

func compareSubjects(a, b Subject) int {
	return cmp.Or(a.Resource.Compare(b.Resource), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Host, b.Host))
}

// Import replaces what the History knows by what Export wrote. It returns an error
// and changes nothing if the data is damaged.
func (h *History) Import(data []byte) error {
	if len(data) > MaxKept {
		return fmt.Errorf("%d bytes are more than the limit of %d", len(data), MaxKept)
	}
	var in exported
	err := json.Unmarshal(data, &in)
	switch {
	case err != nil:
	case in.Version != exportVersion:
		err = fmt.Errorf("version %d is not %d", in.Version, exportVersion)
	case len(in.Key) != len(h.key):
		err = fmt.Errorf("a key of %d bytes", len(in.Key))
	}
	if err != nil {
		return fmt.Errorf("read what changes are compared with: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	copy(h.key[:], in.Key)
	clear(h.items)
	clear(h.ofProgram)
	clear(h.runs)
	h.ranks, h.all, h.pending = 0, nil, nil
	for i := range in.Items {
		one := &in.Items[i]
		one.Known = one.Known[:min(len(one.Known), maxValues)]
		if h.hasRoom(one.Of) && len(one.Known) > 0 {
			one.Fresh = one.Fresh[max(0, len(one.Fresh)-maxADay):]
			h.addItem(one.item, &one.values)
		}
	}
	for i := range in.Runs {
		one := &in.Runs[i]
		if one.Ranks == nil || len(h.runs) >= maxRanks || h.ranks+len(one.Ranks) > maxRanks {
			continue
		}
		one.Hosts = slices.Compact(slices.Sorted(slices.Values(one.Hosts[:min(len(one.Hosts), maxRanks)])))
		h.ranks += len(one.Ranks)
		h.runs[one.Of] = &one.run
	}
	for i := range slices.Backward(in.Changes[:min(len(in.Changes), maxChanges)]) {
		h.all = append(h.all, &in.Changes[i])
	}
	return nil
}
