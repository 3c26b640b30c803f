package price

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// File is a file of prices that is read again when it changes. The zero value
// has no prices.
type File struct {
	path  string
	table atomic.Pointer[Table]
	// size and changed are those of the file that was read last.
	size    int64
	changed time.Time
}

// NewFile returns the file at a path. It does not read it.
func NewFile(path string) *File { return &File{path: path} }

// Table returns the prices, or nil as long as the file has not been read.
func (f *File) Table() *Table { return f.table.Load() }

// Read reads the file if it has changed since it was read last, and reports
// whether it has. After an error, the earlier prices stay. It is not safe for
// concurrent use.
func (f *File) Read() (changed bool, err error) {
	info, err := os.Stat(f.path)
	if err != nil {
		f.changed = time.Time{} // one that comes back is a change
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is no regular file", f.path)
	}
	if info.Size() == f.size && info.ModTime().Equal(f.changed) {
		return false, nil
	}
	file, err := os.Open(filepath.Clean(f.path))
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	// A file that cannot be parsed is not parsed again before it changes.
	f.size, f.changed = info.Size(), info.ModTime()
	providers, err := parse(file)
	if err != nil {
		return true, fmt.Errorf("%s: %.512s", f.path, err.Error()) // it can have a part of the file
	}
	f.table.Store(&Table{providers: providers, date: info.ModTime().UTC().Format(time.DateOnly)})
	return true, nil
}

// Watch reads the file at each tick, until stop is closed. report gets the result
// of each reading that failed, or that found a change.
func (f *File) Watch(stop <-chan struct{}, ticks <-chan time.Time, report func(error)) {
	for {
		select {
		case <-stop:
			return
		case <-ticks:
		}
		if changed, err := f.Read(); changed || err != nil {
			report(err)
		}
	}
}
