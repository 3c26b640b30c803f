package mlguardextension

import "sync"

// progress is the estimated memory of the requests that are being processed, from
// decoding to the answer.
type progress struct {
	limit int64

	mu   sync.Mutex
	used int64
}

// begin takes the memory of a request, and returns false if there is not enough. A
// request that is the only one always begins.
func (p *progress) begin(memory int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used > 0 && p.used+memory > p.limit {
		return false
	}
	p.used += memory
	return true
}

// end returns the memory of a request.
func (p *progress) end(memory int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= memory
}
