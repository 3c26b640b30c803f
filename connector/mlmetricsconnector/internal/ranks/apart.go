package ranks

import (
	"slices"
	"time"
)

// clearly is how much earlier than all others a rank stopped if it stands out.
const clearly = 2 * time.Second

// Last is what a rank did last.
type Last struct {
	// What it finished, or "" if that is unknown, and At, by its clock.
	What string
	At   time.Time
}

// Apart returns the indexes of the ranks that finished something else last than
// most ranks did. If all finished the same, it returns the one that stopped
// clearly before the others. It returns none if no rank stands out.
func Apart(all []Last) (apart []int) {
	counts := make(map[string]int)
	known, usual := 0, ""
	for _, last := range all {
		if last.What == "" {
			continue
		}
		known++
		counts[last.What]++
		if n := counts[last.What]; n > counts[usual] || n == counts[usual] && last.What < usual {
			usual = last.What
		}
	}
	switch {
	case known < 2:
		return nil
	case len(counts) == 1:
		return earliest(all)
	case 2*counts[usual] <= known:
		return nil
	}
	for i, last := range all {
		if last.What != "" && last.What != usual {
			apart = append(apart, i)
		}
	}
	return apart
}

// earliest returns the rank that stopped clearly before all others.
func earliest(all []Last) []int {
	order := make([]int, 0, len(all))
	for i, last := range all {
		if last.What != "" {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return all[a].At.Compare(all[b].At) })
	if all[order[1]].At.Sub(all[order[0]].At) < clearly {
		return nil
	}
	return order[:1]
}
