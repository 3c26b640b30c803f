package price

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxHours limits the names whose price is remembered. A fleet has a dozen models of
// GPUs.
const maxHours = 256

// GPUs are prices of GPUs in US dollars an hour, by the name of the model or a
// part of it that consists of whole words. They are not safe for concurrent use.
type GPUs struct {
	// of has the longest parts of names first.
	of    []hour
	known map[string]hour
}

// hour is what an hour of a GPU costs, if known, whose name matches.
type hour struct {
	name  *regexp.Regexp
	mig   bool
	price float64
	known bool
}

// NewGPUs returns these prices.
func NewGPUs(of map[string]float64) *GPUs {
	g := &GPUs{known: make(map[string]hour)}
	longest := func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }
	for _, name := range slices.SortedFunc(maps.Keys(of), longest) {
		g.of = append(g.of, hour{words(name), mig.MatchString(name), of[name], true})
	}
	return g
}

// words returns what matches texts that have a part which begins and ends where words do.
func words(part string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^0-9a-z])` + regexp.QuoteMeta(part) + `(?:$|[^0-9a-z])`)
}

// mig matches the names of MIG devices.
var mig = words("mig")

// Hour returns the price of an hour of a GPU, by its name such as NVIDIA H100
// 80GB HBM3. Of the keys that are in the name, the longest counts. ok is false if
// none is. Case does not matter. A MIG device has the price of a key with the word
// MIG only, because the others are those of whole GPUs.
func (g *GPUs) Hour(gpu string) (price float64, ok bool) {
	is, seen := g.known[gpu]
	if seen || len(g.of) == 0 {
		return is.price, is.known
	}
	device := mig.MatchString(gpu)
	if i := slices.IndexFunc(g.of, func(of hour) bool { return (of.mig || !device) && of.name.MatchString(gpu) }); i >= 0 {
		is = g.of[i]
	}
	if len(g.known) >= maxHours {
		clear(g.known)
	}
	g.known[strings.Clone(gpu)] = is
	return is.price, is.known
}
