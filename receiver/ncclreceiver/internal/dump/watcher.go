// Package dump finds the dumps of PyTorch's Flight Recorder.
package dump

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

const (
	// maxFiles limits the files that are remembered, maxPath the length of a path.
	maxFiles = 1024
	maxPath  = 1024
	// maxSize limits what is read of a dump, in bytes.
	maxSize = 64 << 20
)

// Dump is a dump that has appeared, or was overwritten.
type Dump struct {
	// Path is the path without the root path. It has printable characters only.
	Path string
	// Job is the path without the rank.
	Job string
	// Size is in bytes.
	Size int64
	// Written is when it was last written, at the latest now.
	Written time.Time
	// Rank is the number at the end of its name, negative without one.
	Rank int64
}

// Watcher looks for dumps. Create it with NewWatcher. It is not safe for concurrent
// use.
type Watcher struct {
	root     string
	patterns []string
	since    time.Time
	known    map[string]file
}

// file is a file at the previous Scan.
type file struct {
	size     int64
	written  time.Time
	reported bool
}

// NewWatcher returns a Watcher for files below root that match one of the patterns,
// in the syntax of path/filepath.Match, and that were written after since.
func NewWatcher(root string, patterns []string, since time.Time) *Watcher {
	return &Watcher{root: filepath.Join("/", root), patterns: patterns, since: since}
}

// Scan returns the dumps that are new since the Scan before, once they are as large
// as they were then. Only regular files are dumps. One whose name has a character that
// is not printable is ignored.
func (w *Watcher) Scan() (dumps []Dump) {
	now := make(map[string]file)
	for _, pattern := range w.patterns {
		// The only error is that of a pattern, which the configuration refuses.
		names, _ := fs.Glob(os.DirFS(w.root), strings.TrimPrefix(filepath.Clean(pattern), "/"))
		for _, name := range names {
			path := "/" + name
			if _, seen := now[path]; seen || len(now) >= maxFiles || !printable(path) {
				continue
			}
			info, err := os.Lstat(filepath.Join(w.root, name))
			if err != nil || !info.Mode().IsRegular() || !info.ModTime().After(w.since) {
				continue
			}
			is := file{size: info.Size(), written: info.ModTime()}
			if was, known := w.known[path]; known && was.size == is.size && was.written.Equal(is.written) {
				is.reported = true
				if !was.reported {
					dumps = append(dumps, describe(path, info))
				}
			}
			now[path] = is
		}
	}
	w.known = now
	return dumps
}

// Read returns the content of a dump.
func (w *Watcher) Read(d *Dump) ([]byte, error) {
	return saved.ReadIn(w.root, strings.TrimPrefix(d.Path, "/"), maxSize)
}

// printable reports whether a path can be reported as it is. Another one could forge
// lines of a log.
func printable(path string) bool {
	return len(path) <= maxPath && utf8.ValidString(path) && strings.IndexFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func describe(path string, info fs.FileInfo) Dump {
	job := strings.TrimRight(path, "0123456789")
	rank, err := strconv.ParseInt(path[len(job):], 10, 32)
	if err != nil {
		rank = -1
	}
	return Dump{Path: path, Job: job, Size: info.Size(), Written: shared.Earlier(info.ModTime(), time.Now()), Rank: rank}
}
