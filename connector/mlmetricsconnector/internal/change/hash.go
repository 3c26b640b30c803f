package change

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Hash returns a short hash of a text that must not be kept. Without the key of the
// History nobody can compare it with the hash of a guess.
func (h *History) Hash(text string) string {
	h.mu.Lock()
	key := h.key
	h.mu.Unlock()
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil)[:6])
}
