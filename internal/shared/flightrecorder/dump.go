// Package flightrecorder reads the dumps of PyTorch's Flight Recorder, writes what matters of
// them into log records, and finds which rank the others wait for. A dump is a pickle of
// Python: what it may contain is read by a decoder of its own, which runs nothing.
package flightrecorder

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// maxGroups, maxEntries and maxRanks limit what is read of a dump: PyTorch keeps 2,000
	// entries by default.
	maxGroups, maxEntries, maxRanks = 1024, 65_536, 131_072
	// maxText is the length of a text that is kept, in bytes, and maxFrames the number of
	// frames that are looked at.
	maxText, maxFrames = 256, 64
)

// Dump is what one rank was doing.
type Dump struct {
	// Rank is the rank in the job, -1 if unknown.
	Rank int64
	// Groups are the process groups.
	Groups []Group

	at   time.Time // when it was written, in Jobs
	size int       // what it takes in memory there, about, in bytes
}

// Group is a process group as one of its ranks knows it.
type Group struct {
	Name        string
	Description string
	// Ranks are its ranks in the job, such as "0-6:2" for 0, 2, 4 and 6, or "0,3,4"; "" if they
	// are not known.
	Ranks string
	// Waits is the first collective that the rank has called and not completed, nil without one,
	// and Newest the newest that it has called.
	Waits  *Entry
	Newest *Entry
}

// Entry is a collective operation.
type Entry struct {
	// Number counts the collectives of the group.
	Number int64
	// Operation is its name, such as all_reduce.
	Operation string
	// Shape has its sizes and types, as text.
	Shape string
	// Frame is where the program called it: the file's name, the line and the function.
	Frame string
}

// calls are the collectives of a group that a dump has.
type calls struct {
	*Group
	// completed is the number of the newest that the rank has completed, open are those that it
	// has not.
	completed int64
	open      []*Entry
}

// Read reads a dump of a rank.
func Read(data []byte, rank int64) (*Dump, error) {
	value, err := decode(data)
	if err != nil {
		return nil, err
	}
	top, ok := value.(dict)
	if !ok {
		return nil, errors.New("it is no dictionary")
	}
	if top.text("version") == "" {
		return nil, errors.New("it has no version")
	}
	config, _ := top["pg_config"].(dict)
	entries, _ := top["entries"].(*list)
	groups := make(map[string]*calls)
	for _, v := range entries.all(maxEntries) {
		e, _ := v.(dict)
		addEntry(groups, e, config)
	}
	d := &Dump{Rank: rank}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		of := groups[name]
		for _, e := range of.open {
			if e.Number > of.completed && (of.Waits == nil || e.Number < of.Waits.Number) {
				of.Waits = e
			}
		}
		d.Groups = append(d.Groups, *of.Group)
	}
	return d, nil
}

// addEntry adds a collective. Operations between two ranks have another order.
func addEntry(groups map[string]*calls, e, config dict) {
	p2p, _ := e["is_p2p"].(bool)
	number, ok := e["collective_seq_id"].(int64)
	of, _ := e["process_group"].(*list)
	if p2p || !ok || number < 0 || of == nil || len(of.items) < 2 {
		return
	}
	name, _ := of.items[0].(string)
	description, _ := of.items[1].(string)
	name = cut(name)
	g := groups[name]
	if g == nil {
		if len(groups) >= maxGroups {
			return
		}
		g = &calls{Group: &Group{Name: name, Description: cut(description), Ranks: readRanks(config, name)}, completed: -1}
		groups[name] = g
	}
	operation := e.text("profiling_name")
	operation = operation[strings.IndexByte(operation, ':')+1:]
	// Gloo retires what is completed, and leaves its state.
	retired, _ := e["retired"].(bool)
	entry := &Entry{
		Number: number, Operation: operation, Frame: readFrame(e["frames"]),
		Shape: cut(shape(e["input_sizes"], 0) + " " + shape(e["input_dtypes"], 0)),
	}
	if retired || e.text("state") == "completed" {
		g.completed = max(g.completed, number)
	} else {
		g.open = append(g.open, entry)
	}
	if g.Newest == nil || number >= g.Newest.Number {
		g.Newest = entry
	}
}

// all returns the items of a list, none of a nil list.
func (l *list) all(limit int) []any {
	if l == nil {
		return nil
	}
	return l.items[:min(len(l.items), limit)]
}

func (d dict) text(key string) string {
	text, _ := d[key].(string)
	return cut(text)
}

// cut bounds a text that anybody has written, of which each sentence has one line.
func cut(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxText)], "?"))
}

// readRanks reads the ranks of a group. Gloo has no name for the only group.
func readRanks(config dict, name string) string {
	group, ok := config[name].(dict)
	if !ok && len(config) == 1 {
		group, _ = config[""].(dict)
	}
	text, _ := group["ranks"].(string)
	return writeRanks(parseRanks(strings.Trim(text, "[]")), maxOwnList)
}

// shape writes nested lists of numbers and texts.
func shape(v any, depth int) string {
	switch v := v.(type) {
	case *list:
		if depth > 2 {
			return "…"
		}
		var parts []string
		size := 0
		for _, item := range v.items {
			part := shape(item, depth+1)
			if size += len(part); size > maxText {
				break
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return cut(v)
	case int64:
		return strconv.FormatInt(v, 10)
	default:
		return ""
	}
}

// readFrame returns the innermost frame that is not PyTorch's own, "" without one.
func readFrame(v any) string {
	frames, _ := v.(*list)
	for _, item := range frames.all(maxFrames) {
		f, _ := item.(dict)
		file := f.text("filename")
		if file == "" || strings.Contains(file, "/torch/") || strings.HasPrefix(file, "<") {
			continue
		}
		line, _ := f["line"].(int64)
		return fmt.Sprintf("%s:%d in %s", file[strings.LastIndexByte(file, '/')+1:], line, f.text("name"))
	}
	return ""
}
