// Package price says what requests to models and GPUs cost, in US dollars. It
// reads a file of prices in the form of genai-prices, and rates the tokens of a
// request by it.
package price

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// CheckPrices is the time between two looks at the file of prices.
const CheckPrices = time.Minute

// File is the file of prices of the configuration, if it names one, that is read again when
// it changes.
type File struct {
	path   string
	logger *zap.Logger
	table  atomic.Pointer[Table]
	// failure is why the file could not be read, "" if it could.
	failure atomic.Pointer[string]
	// size and changed are those of the file that was read last.
	size    int64
	changed time.Time
}

// NewFile returns the file at a path, which may be empty. It does not read it.
func NewFile(path string, logger *zap.Logger) *File { return &File{path: path, logger: logger} }

// Table returns the prices, or nil as long as the file has not been read.
func (f *File) Table() *Table { return f.table.Load() }

// Read reads the file if it has changed since it was read last, and reports
// whether it has. After an error, the earlier prices stay.
func (f *File) Read() (changed bool, err error) {
	info, err := os.Stat(f.path)
	switch {
	case err != nil:
		f.changed = time.Time{} // one that comes back is a change
		return false, err
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is no regular file", f.path)
	case info.Size() == f.size && info.ModTime().Equal(f.changed):
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

// Watch looks at the file each minute until ctx ends.
func (f *File) Watch(ctx context.Context) {
	for f.path != "" {
		select {
		case <-ctx.Done():
			return
		case <-time.After(CheckPrices):
			f.Look()
		}
	}
}

// Look reads the file, if there is one, and logs if it has changed, or cannot be read for
// another reason. It is not safe for concurrent use.
func (f *File) Look() {
	if f.path == "" {
		return
	}
	changed, err := f.Read()
	failure := ""
	if err != nil {
		failure = err.Error()
	} else if !changed {
		return
	}
	switch last := f.failure.Swap(&failure); {
	case err == nil:
		f.logger.Info("Read the file of prices.", zap.String("file", f.path), zap.String("date", f.Table().Date()))
	case last == nil || *last != failure:
		f.logger.Error("The file of prices could not be read. Earlier prices stay, and it is tried again each minute.", zap.Error(err))
	}
}

// Notices returns what the file does not tell.
func (f *File) Notices(id string) []shared.Notice {
	failure := f.failure.Load()
	if failure == nil || *failure == "" {
		return nil
	}
	return []shared.Notice{{
		Key: "prices", Kind: "disk", What: "Prices of models",
		Why: fmt.Sprintf("The file could not be read: %s.", *failure), Fix: id + ": {prices: {file: <file>}}",
	}}
}
