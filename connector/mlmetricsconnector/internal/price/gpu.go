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
