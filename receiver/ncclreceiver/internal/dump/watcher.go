// Package dump finds the dumps of PyTorch's Flight Recorder. It never opens them:
// they are Python pickles, which run code when they are loaded.
package dump

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// maxFiles limits the files that are remembered, maxPath the length of a path.
	maxFiles = 1024
	maxPath  = 1024
)

// Dump is a dump that has appeared, or was overwritten.
type Dump struct {
	// Path is the path without the root path.
	Path string
	// Size is in bytes.
	Size int64
	// Written is when it was last written.
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
// as they were then. Only regular files are dumps.
func (w *Watcher) Scan() (dumps []Dump) {
	now := make(map[string]file)
	for _, pattern := range w.patterns {
		// The only error is that of a pattern, which the configuration refuses.
		paths, _ := filepath.Glob(filepath.Join(w.root, pattern))
		for _, path := range paths {
			if _, seen := now[path]; seen || len(path) > maxPath || len(now) >= maxFiles {
				continue
			}
			info, err := os.Lstat(path)
			if err != nil || !info.Mode().IsRegular() || !info.ModTime().After(w.since) {
				continue
			}
			is := file{size: info.Size(), written: info.ModTime()}
			if was, known := w.known[path]; known && was.size == is.size && was.written.Equal(is.written) {
				is.reported = true
				if !was.reported {
					dumps = append(dumps, w.describe(path, info))
				}
			}
			now[path] = is
		}
	}
	w.known = now
	return dumps
}

func (w *Watcher) describe(path string, info fs.FileInfo) Dump {
	name := filepath.Base(path)
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	rank, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		rank = -1
	}
	return Dump{
		Path: strings.ToValidUTF8(filepath.Join("/", strings.TrimPrefix(path, w.root)), "\uFFFD"),
		Size: info.Size(), Written: info.ModTime(), Rank: rank,
	}
}
