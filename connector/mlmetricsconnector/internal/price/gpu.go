package price

import "strings"

// maxHours limits the names whose price is remembered. A fleet has a dozen models of
// GPUs.
const maxHours = 256

// GPUs are prices of GPUs in US dollars an hour, by the name of the model or a
// part of it that consists of whole words. They are not safe for concurrent use.
type GPUs struct {
	of    map[string]float64
	known map[string]hour
}

// hour is what an hour of a GPU costs, if known.
type hour struct {
	price float64
	known bool
}

// NewGPUs returns these prices.
func NewGPUs(of map[string]float64) *GPUs { return &GPUs{of: of, known: make(map[string]hour)} }

// Hour returns the price of an hour of a GPU, by its name such as NVIDIA H100
// 80GB HBM3. Of the keys that are in the name, the longest counts. ok is false if
// none is. Case does not matter. A MIG device has the price of a key with the word
// MIG only, because the others are those of whole GPUs.
func (g *GPUs) Hour(gpu string) (price float64, ok bool) {
	is, seen := g.known[gpu]
	if seen || len(g.of) == 0 {
		return is.price, is.known
	}
	best, name := "", strings.ToLower(gpu)
	for key, of := range g.of {
		longer := len(key) > len(best) || len(key) == len(best) && key < best
		part := strings.ToLower(key)
		if longer && hasWords(name, part) && (hasWords(part, "mig") || !hasWords(name, "mig")) {
			best, is = key, hour{of, true}
		}
	}
	if len(g.known) >= maxHours {
		clear(g.known)
	}
	g.known[strings.Clone(gpu)] = is
	return is.price, is.known
}

// hasWords reports whether a text has a part that begins and ends where words do.
func hasWords(text, part string) bool {
	for from := 0; part != ""; {
		at := strings.Index(text[from:], part)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(part)
		if (at == 0 || !isWord(text[at-1])) && (end == len(text) || !isWord(text[end])) {
			return true
		}
		from = at + 1
	}
	return false
}

func isWord(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }
