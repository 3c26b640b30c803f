// Package reproductions reads the directory that repro_gen writes: the failures,
// the commands that reproduce them, and the reports.
package reproductions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

// Limits of what is read. The first two are above those of repro_gen.
const (
	maxGroupBytes  = 256 << 10
	maxReportBytes = 256 << 10
	// maxEntries limits the entries of a folder.
	maxEntries = 4096
	// maxText is the length of a text from telemetry that is kept, in bytes.
	maxText = 2048
	// maxErrors limits the errors that one reading returns.
	maxErrors = 5
	// settled is the age from which on a change of a file changes its time, on
	// every file system.
	settled = 2 * time.Second
)

// Names of repro_gen's files. Other files in the directory are ignored.
const (
	groupFile  = "group.json"
	scriptFile = "repro.py"
	reportFile = "report.md"
)

var (
	groupName    = regexp.MustCompile(`^[0-9a-f]{16}$`)
	artifactName = regexp.MustCompile(`^([0-9]{8}T[0-9]{6}Z)-([0-9a-f]{32})-[0-9a-f]{16}$`)
)

// Reader reads a directory of repro_gen. It follows no links, and reads a group
// again only if its files have changed. It is safe for concurrent use.
type Reader struct {
	directory string

	mu     sync.Mutex
	groups map[string]group
}

// group is what was read of a group, and what its files were like at that time.
type group struct {
	folder, summary, read time.Time
	size                  int64
	// failure is nil if the group has no artifact.
	failure *api.Failure
	err     error
}

// Open returns a Reader of a directory. The directory need not exist yet.
// Commands name its absolute path.
func Open(directory string) *Reader {
	if absolute, err := filepath.Abs(directory); err == nil {
		directory = absolute
	}
	return &Reader{directory: directory, groups: map[string]group{}}
}

// Failures returns the failures that have an artifact, those that were seen last
// first. With an error, it returns what could be read.
func (r *Reader) Failures(ctx context.Context) ([]api.Failure, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	root, err := os.OpenRoot(r.directory)
	if err != nil {
		return nil, saved.IgnoreMissing(err)
	}
	defer func() { _ = root.Close() }() // it is only read
	names, err := folders(root, ".", groupName)
	if err != nil {
		return nil, err
	}
	known := r.groups
	r.groups = make(map[string]group, len(names))
	var failures []api.Failure
	var problems []error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return failures, err
		}
		g := r.group(root, name, known[name])
		r.groups[name] = g
		if g.err != nil && len(problems) < maxErrors {
			problems = append(problems, fmt.Errorf("group %s: %w", name, g.err))
		}
		if g.failure != nil {
			failures = append(failures, *g.failure)
		}
	}
	slices.SortStableFunc(failures, func(a, b api.Failure) int { return b.LastSeen.Compare(*a.LastSeen) })
	return failures, errors.Join(problems...)
}

// group reads a group, or returns what is known of it if it has not changed.
func (r *Reader) group(root *os.Root, name string, known group) group {
	g := group{read: time.Now()}
	if folder, err := root.Lstat(name); err == nil {
		g.folder = folder.ModTime()
	}
	if summary, err := root.Lstat(path.Join(name, groupFile)); err == nil {
		g.summary, g.size = summary.ModTime(), summary.Size()
	}
	unchanged := g.folder.Equal(known.folder) && g.summary.Equal(known.summary) && g.size == known.size
	if unchanged && known.read.Sub(g.folder) > settled && known.read.Sub(g.summary) > settled {
		return known
	}
	g.failure, g.err = r.failure(root, name)
	return g
}

// summary is the part of a group.json that is read.
type summary struct {
	Kind      string     `json:"kind"`
	Type      string     `json:"type"`
	Message   string     `json:"message"`
	Services  []string   `json:"services"`
	Versions  []string   `json:"versions"`
	Variants  []struct{} `json:"variants"`
	Count     int64      `json:"count"`
	FirstSeen time.Time  `json:"first_seen"`
	LastSeen  time.Time  `json:"last_seen"`
}

// failure reads a group. It returns nil if the group has no artifact. A group
// with an unreadable group.json counts with the time in its artifact's name.
func (r *Reader) failure(root *os.Root, name string) (*api.Failure, error) {
	artifact, err := newestArtifact(root, name)
	if artifact == "" {
		return nil, err
	}
	parts := artifactName.FindStringSubmatch(path.Base(artifact))
	// The pattern ensures the form; an invalid time, such as a 13th month, gives
	// the zero time.
	seen, _ := time.Parse("20060102T150405Z", parts[1])
	f := &api.Failure{Key: name, Report: "/reproductions/" + name, LastSeen: &seen, TraceID: parts[2]}
	if strings.Trim(f.TraceID, "0") == "" {
		f.TraceID = ""
	}
	var s summary
	text, problem := saved.ReadFile(root, path.Join(name, groupFile), maxGroupBytes)
	if problem == nil {
		problem = json.Unmarshal(text, &s)
	}
	f.Kind, f.Class, f.Message = limited(s.Kind), limited(s.Type), limited(s.Message)
	f.Count, f.Variants, f.FirstSeen = max(0, s.Count), len(s.Variants), api.TimeOf(s.FirstSeen)
	if len(s.Services) > 0 {
		f.Service = limited(s.Services[0])
	}
	if len(s.Versions) > 0 {
		f.Version = limited(s.Versions[len(s.Versions)-1])
	}
	if s.LastSeen.After(seen) {
		f.LastSeen = &s.LastSeen
	}
	report, err := saved.ReadFile(root, path.Join(artifact, reportFile), maxReportBytes)
	folder := filepath.Join(r.directory, filepath.FromSlash(artifact))
	if isFile(root, path.Join(artifact, scriptFile)) {
		describe(f, filepath.Join(folder, scriptFile), report)
	} else {
		// The evidence of a hang is of no trace.
		f.TraceID, f.Command = "", "cat "+shellQuote(filepath.Join(folder, reportFile))
	}
	return f, errors.Join(problem, err)
}

// Report returns the report of a group's newest artifact, and whether there is one. A nil
// Reader has none.
func (r *Reader) Report(fingerprint string) ([]byte, bool) {
	if r == nil || !groupName.MatchString(fingerprint) {
		return nil, false
	}
	root, err := os.OpenRoot(r.directory)
	if err != nil {
		return nil, false
	}
	defer func() { _ = root.Close() }() // it was only read
	artifact, err := newestArtifact(root, fingerprint)
	if err != nil || artifact == "" {
		return nil, false
	}
	report, err := saved.ReadFile(root, path.Join(artifact, reportFile), maxReportBytes)
	return report, err == nil
}

// newestArtifact returns the path of a group's newest artifact with a script or a report, or
// "".
func newestArtifact(root *os.Root, name string) (string, error) {
	names, err := folders(root, name, artifactName)
	// Names begin with the time, so the last one is the newest.
	for _, artifact := range slices.Backward(names) {
		artifact = path.Join(name, artifact)
		if isFile(root, path.Join(artifact, scriptFile)) || isFile(root, path.Join(artifact, reportFile)) {
			return artifact, nil
		}
	}
	return "", err
}

// isFile reports whether a path is that of a file, and not of a link to one.
func isFile(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// folders returns the names of the folders in a folder that match, sorted.
func folders(root *os.Root, name string, pattern *regexp.Regexp) ([]string, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() { // Root would follow a link that stays inside of it.
		return nil, fmt.Errorf("%q is not a folder", name)
	}
	folder, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }() // it was only read
	entries, err := folder.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	found := mlattr.Where(slices.Values(entries), func(entry os.DirEntry) bool { return entry.IsDir() && pattern.MatchString(entry.Name()) })
	return slices.Sorted(slices.Values(mlattr.Mapped(found, os.DirEntry.Name))), nil
}

// limited returns at most maxText bytes of a text.
func limited(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxText)], "") }

// maxDirectory limits the directory and the name of a machine, in bytes.
const maxDirectory = 4096

// Record is what a log record of another collector's repro_gen says of an artifact.
type Record struct {
	// Host is the machine that has the artifact, Directory the absolute path of
	// repro_gen's directory there, and Artifact the path below it.
	Host, Directory, Artifact string
	Report                    []byte
}

// Describe adds the command that reproduces a failure on the machine that has its
// artifact. It adds nothing if the record has no path that repro_gen writes.
func (r *Record) Describe(f *api.Failure) {
	group, name := path.Split(r.Artifact)
	if group != f.Key+"/" || !groupName.MatchString(f.Key) || !artifactName.MatchString(name) {
		return
	}
	if !path.IsAbs(r.Directory) || len(r.Directory)+len(r.Host) > maxDirectory || len(r.Report) > maxReportBytes {
		return
	}
	describe(f, path.Join(r.Directory, r.Artifact, scriptFile), r.Report)
	if r.Host != "" {
		f.Requires = append([]string{"host " + strings.ToValidUTF8(r.Host, "")}, f.Requires...)
	}
}
