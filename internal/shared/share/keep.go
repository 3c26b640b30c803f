package share

import (
	"cmp"
	"slices"
)

// Item is something that takes room.
type Item struct {
	Path   Path
	Weight int64
}

// Keep reports which of the items may stay where all of them together may
// weigh limit. Branches of one node get equal shares, and what one
// does not need goes to the others. Within one path the items that
// come first stay.
func Keep(items []Item, limit int64) []bool {
	kept := make([]bool, len(items))
	all := make([]int, len(items))
	for i := range items {
		all[i] = i
	}
	divide(items, all, 0, limit, kept)
	return kept
}

// KeepWithRoom is Keep for a limit that is passed again and again: of many items
// it leaves a sixteenth of the limit free, so that not each further one costs
// as much.
func KeepWithRoom(items []Item, limit int64) []bool {
	if len(items) > 64 {
		limit -= limit / 16
	}
	return Keep(items, limit)
}

// Leaving returns the indices of the items that leave first if some have to make room: as
// many as weigh room together, or less. Of the branches that have more than their share
// the items that come last leave first.
func Leaving(items []Item, room int64) []int {
	limit := -room
	for _, item := range items {
		limit += item.Weight
	}
	var leave []int
	for i, kept := range slices.Backward(Keep(items, max(limit, 0))) {
		if !kept {
			leave = append(leave, i)
		}
	}
	return leave
}

// branch is what has the same path down to a level.
type branch struct {
	items  []int
	weight int64
}

// divide marks the items of one branch that may stay, and returns their weight.
func divide(items []Item, among []int, level int, limit int64, kept []bool) (used int64) {
	if level == len(Path{}) {
		for _, i := range among {
			if items[i].Weight <= limit-used {
				kept[i] = true
				used += items[i].Weight
			}
		}
		return used
	}
	branches := branchesOf(items, among, level)
	for i, b := range branches {
		share := (limit - used) / int64(len(branches)-i)
		if b.weight <= share {
			for _, j := range b.items {
				kept[j] = true
			}
			used += b.weight
			continue
		}
		used += divide(items, b.items, level+1, share, kept)
	}
	return used
}

// branchesOf returns the branches at a level, the lightest first. Of equal
// ones the one whose first item comes last is first: a remainder goes to those
// whose items come first.
func branchesOf(items []Item, among []int, level int) []*branch {
	byKey := make(map[uint64]*branch)
	var out []*branch
	for _, i := range among {
		b := byKey[items[i].Path[level]]
		if b == nil {
			b = &branch{}
			byKey[items[i].Path[level]] = b
			out = append(out, b)
		}
		b.items = append(b.items, i)
		b.weight += items[i].Weight
	}
	slices.SortFunc(out, func(a, b *branch) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(b.items[0], a.items[0]))
	})
	return out
}
