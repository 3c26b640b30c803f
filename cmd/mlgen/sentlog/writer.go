package sentlog

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"
)

// Writer writes entries. It is safe for concurrent use; the entries of one call
// stay together.
type Writer struct {
	mu  sync.Mutex
	out *bufio.Writer
	err error
}

// NewWriter writes to out. Closing out is its owner's business.
func NewWriter(out io.Writer) *Writer {
	return &Writer{out: bufio.NewWriter(out)}
}

// Write appends entries and flushes them, so that a reader of the file sees
// whole requests. After an error every later call returns the same error, so
// that a log never has a gap.
func (w *Writer) Write(entries ...Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	encoder := json.NewEncoder(w.out)
	encoder.SetEscapeHTML(false)
	for i := range entries {
		if w.err = encoder.Encode(&entries[i]); w.err != nil {
			return w.err
		}
	}
	w.err = w.out.Flush()
	return w.err
}
