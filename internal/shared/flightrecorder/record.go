package flightrecorder

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Event is the name of the log records of dumps.
const Event = "pytorch.flight_recorder.dump"

// GroupsKey is their attribute with the process groups.
const GroupsKey = "pytorch.process_groups"

const (
	// maxRecorded is the number of groups that a log record has, and maxItem the length of one of
	// its texts in bytes, which stays where texts are withheld.
	maxRecorded, maxItem = 128, 255
	// maxName, maxShape, maxFrame and maxList are the lengths of their parts.
	maxName, maxShape, maxFrame, maxList = 50, 80, 100, 120
	// maxOwnList is maxList in a dump that was read here.
	maxOwnList = 4096
)

// Record writes what a log record has of a dump: three texts for each group, with its name,
// description and ranks, the collective that the rank waits in, and the newest that it called. Of more
// groups than 128, those in which it waits come first.
func (d *Dump) Record() (items []any) {
	groups := slices.Clone(d.Groups)
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(b.waits(), a.waits()) })
	for i := range groups[:min(len(groups), maxRecorded)] {
		g := &groups[i]
		list := g.Ranks
		if len(list) > maxList {
			list = writeRanks(parseRanks(list), maxList)
		}
		items = append(items, join(short(g.Name, maxName), short(g.Description, maxName), list), g.Waits.record(), g.Newest.record())
	}
	return items
}

// FromRecord reads what Record has written of a rank. Anybody may have sent it. A group that is not
// as Record writes it is left out.
func FromRecord(items pcommon.Slice, rank int64) *Dump {
	d := &Dump{Rank: rank}
	for i := 0; i+2 < min(items.Len(), 3*maxRecorded); i += 3 {
		of := split(items.At(i), 3)
		waits, known := readEntry(items.At(i + 1))
		newest, latest := readEntry(items.At(i + 2))
		if of != nil && known && latest {
			d.Groups = append(d.Groups, Group{Name: of[0], Description: of[1], Ranks: of[2], Waits: waits, Newest: newest})
		}
	}
	return d
}

// waits is 1 for a group in which the rank waits, else 0.
func (g *Group) waits() int { return shared.OneIf[int](g.Waits != nil) }

func (e *Entry) record() string {
	if e == nil {
		return ""
	}
	return join(strconv.FormatInt(e.Number, 10), short(e.Operation, maxName), short(e.Shape, maxShape), short(e.Frame, maxFrame))
}

func readEntry(item pcommon.Value) (e *Entry, ok bool) {
	if item.Type() == pcommon.ValueTypeStr && item.Str() == "" {
		return nil, true
	}
	of := split(item, 4)
	if of == nil {
		return nil, false
	}
	number, err := strconv.ParseInt(of[0], 10, 64)
	return &Entry{Number: number, Operation: of[1], Shape: of[2], Frame: of[3]}, err == nil && number >= 0
}

// short cuts a text. Different ones stay different.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	sum := fmt.Sprintf("+%08x", crc32.ChecksumIEEE([]byte(text)))
	return text[:most-len(sum)] + sum
}

// join writes parts as one word.
func join(parts ...string) string {
	for i, part := range parts {
		parts[i] = strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '~'
			case r < utf8.RuneSelf && strings.ContainsRune("_-.,:/<>()[]+", r), '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z':
				return r
			}
			return '_'
		}, part)
	}
	return strings.Join(parts, "|")
}

// split returns the parts of what join has written, nil of anything else.
func split(item pcommon.Value, n int) []string {
	parts := strings.Split(strings.ReplaceAll(cut(item.Str()), "~", " "), "|")
	if len(parts) != n || len(item.Str()) > maxItem {
		return nil
	}
	return parts
}

// numberOnly begins what is written of ranks that are too many to list: their number.
const numberOnly = "n"

// writeRanks writes ranks in order, in at most so many bytes. Those of a dimension of parallelism
// are apart by a step.
func writeRanks(ranks []int64, most int) string {
	if n := len(ranks); n > 2 {
		step, regular := ranks[1]-ranks[0], true
		for i := range n - 1 {
			regular = regular && ranks[i+1]-ranks[i] == step
		}
		if regular {
			return fmt.Sprintf("%d-%d:%d", ranks[0], ranks[n-1], step)
		}
	}
	list := strings.Join(mlattr.Mapped(ranks, func(rank int64) string { return strconv.FormatInt(rank, 10) }), ",")
	if len(list) > most {
		return numberOnly + strconv.Itoa(len(ranks))
	}
	return list
}

// parseRanks reads what writeRanks has written, and lists such as "0, 1, 2". It returns none if
// anything else is in it.
func parseRanks(text string) (ranks []int64) {
	var first, last, step int64
	if n, _ := fmt.Sscanf(text, "%d-%d:%d", &first, &last, &step); n == 3 {
		if first < 0 || last < first || last > math.MaxInt32 || step < 1 || (last-first)/step >= maxRanks {
			return nil
		}
		for i := range (last-first)/step + 1 {
			ranks = append(ranks, first+i*step)
		}
		return ranks
	}
	for part := range strings.SplitSeq(text, ",") {
		rank, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32)
		if err != nil || rank < 0 || len(ranks) >= maxRanks {
			return nil
		}
		ranks = append(ranks, rank)
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}
