package price

import "strings"

// GPUs are prices of GPUs in US dollars an hour, by the name of the model or a
// part of it that consists of whole words.
type GPUs map[string]float64

// Hour returns the price of an hour of a GPU, by its name such as NVIDIA H100
// 80GB HBM3. Of the keys that are in the name, the longest counts. ok is false if
// none is. Case does not matter. A MIG device has the price of a key with the word
// MIG only, because the others are those of whole GPUs.
func (g GPUs) Hour(gpu string) (price float64, ok bool) {
	best, gpu := "", strings.ToLower(gpu)
	for key, of := range g {
		longer := len(key) > len(best) || len(key) == len(best) && key < best
		part := strings.ToLower(key)
		if longer && hasWords(gpu, part) && (hasWords(part, "mig") || !hasWords(gpu, "mig")) {
			best, price, ok = key, of, true
		}
	}
	return price, ok
}

// maxHours limits the names whose price is remembered. A fleet has a dozen models of
// GPUs.
const maxHours = 256

// Hours remembers the prices of GPUs by their names. It is not safe for concurrent use.
type Hours struct {
	of    GPUs
	known map[string]hour
}

// hour is what an hour of a GPU costs, if known.
type hour struct {
	price float64
	known bool
}

// NewHours returns Hours by these prices.
func NewHours(of GPUs) *Hours { return &Hours{of: of, known: make(map[string]hour)} }

// Of returns what GPUs.Hour does.
func (h *Hours) Of(gpu string) (price float64, ok bool) {
	cost, known := h.known[gpu]
	if !known && len(h.of) > 0 {
		cost.price, cost.known = h.of.Hour(gpu)
		if len(h.known) >= maxHours {
			clear(h.known)
		}
		h.known[strings.Clone(gpu)] = cost
	}
	return cost.price, cost.known
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

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z'
}
