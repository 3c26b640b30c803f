package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

const (
	// maxGroupBytes limits the size of a group.json that is read.
	maxGroupBytes = 1 << 20
	// maxGroups limits the groups of failures that are read.
	maxGroups = 4096
	// maxExemplars limits the reproductions of a group that are read.
	maxExemplars = 4096
)

// kindContext is repro_gen's kind of a failure that can only be described.
const kindContext = "context"

// failure is the last failure with a reproduction.
type failure struct {
	// kind is what the reproduction does, in repro_gen's terms.
	kind                        string
	errorType, message, service string
	// count is the number of occurrences; 0 if unknown.
	count int64
	// seen is the time of the last occurrence; zero if unknown.
	seen time.Time
	// script is the path of the reproduction.
	script string
	// groups is the number of groups with a reproduction.
	groups int
}

// laterThan reports whether f is shown instead of other: a failure that can be
// replayed takes precedence over one that can only be described, then the newer
// one.
func (f *failure) laterThan(other *failure) bool {
	if replays, others := f.kind != kindContext, other.kind != kindContext; replays != others {
		return replays
	}
	return f.seen.After(other.seen)
}

// group is the part of a group.json that the screen shows.
type group struct {
	Kind     string    `json:"kind"`
	Type     string    `json:"type"`
	Message  string    `json:"message"`
	Services []string  `json:"services"`
	Count    int64     `json:"count"`
	LastSeen time.Time `json:"last_seen"`
}

// Names of repro_gen's files. Other files in the folder are ignored.
var (
	groupName    = regexp.MustCompile(`^[0-9a-f]{16}$`)
	exemplarName = regexp.MustCompile(`^([0-9]{8}T[0-9]{6}Z)-[0-9a-f]{32}-[0-9a-f]{16}$`)
)

// newestFailure returns the failure to show from a folder of reproductions, or
// nil if there is none. A group with an unreadable group.json counts with the
// time in its reproduction's name. No link that leads out of the folder is
// followed.
func newestFailure(directory string) (_ *failure, err error) {
	root, err := os.OpenRoot(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	groups, err := names(root, ".", groupName, maxGroups)
	if err != nil {
		return nil, err
	}
	var newest *failure
	var problems error
	found := 0
	for _, name := range groups {
		f, err := failureOfGroup(root, name)
		if err != nil {
			problems = errors.Join(problems, err)
		}
		if f == nil {
			continue
		}
		found++
		if newest == nil || f.laterThan(newest) {
			newest = f
		}
	}
	if newest != nil {
		newest.script = filepath.Join(directory, newest.script)
		newest.groups = found
	}
	return newest, problems
}

// failureOfGroup reads one group. It returns nil if the group has no script.
// The path of the script is relative to the root.
func failureOfGroup(root *os.Root, name string) (*failure, error) {
	exemplars, err := names(root, name, exemplarName, maxExemplars)
	if err != nil {
		return nil, err
	}
	f := &failure{}
	// Names begin with the time, so the last one is the newest.
	for _, exemplar := range slices.Backward(exemplars) {
		script := filepath.Join(name, exemplar, "repro.py")
		if info, err := root.Lstat(script); err == nil && info.Mode().IsRegular() {
			f.script = script
			// The pattern ensures the form; an invalid time, such as a 13th
			// month, gives the zero time.
			f.seen, _ = time.Parse("20060102T150405Z", exemplarName.FindStringSubmatch(exemplar)[1])
			break
		}
	}
	if f.script == "" {
		return nil, nil
	}
	g, err := readGroup(root, filepath.Join(name, "group.json"))
	if err != nil {
		return f, err
	}
	f.kind, f.errorType, f.message, f.count = g.Kind, g.Type, g.Message, max(0, g.Count)
	if len(g.Services) > 0 {
		f.service = g.Services[0]
	}
	if g.LastSeen.After(f.seen) {
		f.seen = g.LastSeen
	}
	return f, nil
}

func readGroup(root *os.Root, name string) (g group, err error) {
	if info, err := root.Lstat(name); err != nil {
		return group{}, err
	} else if !info.Mode().IsRegular() {
		return group{}, fmt.Errorf("%q is not a regular file", name)
	}
	file, err := root.Open(name)
	if err != nil {
		return group{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err := io.ReadAll(io.LimitReader(file, maxGroupBytes+1))
	if err != nil {
		return group{}, err
	}
	if len(data) > maxGroupBytes {
		return group{}, fmt.Errorf("%q is larger than %d bytes", name, maxGroupBytes)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		return group{}, fmt.Errorf("read %q: %w", name, err)
	}
	return g, nil
}

// names returns the matching folders in a folder, sorted.
func names(root *os.Root, folder string, pattern *regexp.Regexp, most int) (_ []string, err error) {
	file, err := root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	entries, err := file.ReadDir(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() && pattern.MatchString(entry.Name()) {
			found = append(found, entry.Name())
		}
	}
	slices.SortFunc(found, cmp.Compare[string])
	return found, nil
}
