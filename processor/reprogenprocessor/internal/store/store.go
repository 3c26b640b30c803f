// Package store keeps artifacts in a directory. It touches nothing there but
// names of its own layout, and never follows a name out of it. A Store is safe
// for concurrent use; no lock is held while files are written.
package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

var (
	// ErrExists means that the same failure was written before.
	ErrExists = errors.New("the artifact exists already")
	// ErrNoSpace means that the disk has less free space than Limits.Free.
	ErrNoSpace = errors.New("the disk has less free space than min_free_bytes")
)

// Limits bound what a Store holds; zero lifts a limit.
type Limits struct {
	// Artifacts is the number of artifacts.
	Artifacts int
	// Bytes is their size together.
	Bytes int64
	// Age is how long each is kept.
	Age time.Duration
	// Free is the free space to keep on the disk, in bytes; below it nothing is
	// written.
	Free int64
}

// File is one file of an artifact.
type File struct {
	Name    string
	Content []byte
}

// Store is an open directory.
type Store struct {
	root   *os.Root
	lock   *os.File
	limits Limits
	free   func(*os.File) (bytes int64, known bool)

	// mu guards what follows, and the making and removing of groups' folders.
	mu    sync.Mutex
	kept  []Artifact // the oldest first
	bytes atomic.Int64
}

// Artifact is one folder of files.
type Artifact struct {
	// Fingerprint is its group's.
	Fingerprint, Name string

	origin share.Origin
	// established reports whether the origin was established before the start.
	established bool
	size        int64
	written     time.Time
}

// Open opens a directory, sweeps what an earlier collector left unfinished,
// and returns the groups that have an artifact. Summaries that
// cannot be read are moved away and reported in warnings. The errors name the path and the remedy.
func Open(dir string, limits Limits) (s *Store, groups []Group, warnings []error, err error) {
	root, err := saved.Root(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	lock, err := lockDirectory(root)
	if err != nil {
		return nil, nil, nil, errors.Join(err, root.Close())
	}
	s = &Store{root: root, lock: lock, limits: limits, free: freeBytes}
	groups, warnings, err = s.load()
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	return s, groups, warnings, nil
}

// Close releases the directory.
func (s *Store) Close() error { return errors.Join(s.lock.Close(), s.root.Close()) }

// Bytes returns the size of all artifacts.
func (s *Store) Bytes() int64 { return s.bytes.Load() }

func (s *Store) load() (groups []Group, warnings []error, err error) {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), tmpPrefix):
			if err := s.root.RemoveAll(e.Name()); err != nil {
				return nil, nil, err
			}
		case e.IsDir() && groupName.MatchString(e.Name()):
			group, warning := s.loadGroup(e.Name())
			if warning != nil {
				warnings = append(warnings, s.moveAway(e.Name()+"/"+groupFile, warning))
			}
			if len(group.Exemplars) > 0 {
				groups = append(groups, group)
			}
		}
	}
	slices.SortStableFunc(s.kept, func(a, b Artifact) int { return a.written.Compare(b.written) })
	return groups, warnings, nil
}

// moveAway renames a file that cannot be read, so that it is not overwritten, and
// adds to the warning where it is now.
func (s *Store) moveAway(name string, warning error) error {
	if err := s.root.Rename(name, name+backupSuffix); err != nil {
		return errors.Join(warning, err)
	}
	return fmt.Errorf("%w: moved to %s", warning, name+backupSuffix)
}

func (s *Store) loadGroup(fingerprint string) (Group, error) {
	entries, err := fs.ReadDir(s.root.FS(), fingerprint)
	if err != nil {
		return Group{}, err
	}
	group, err := s.readGroup(fingerprint)
	err = saved.IgnoreMissing(err) // the collector died between an artifact and its summary
	group.Fingerprint = fingerprint
	var exemplars []string
	for _, e := range entries {
		if !e.IsDir() || !artifactName.MatchString(e.Name()) {
			continue
		}
		exemplars = append(exemplars, e.Name())
		size := s.sizeOf(fingerprint + "/" + e.Name())
		s.kept = append(s.kept, Artifact{
			Fingerprint: fingerprint, Name: e.Name(), origin: group.Origin(), established: group.Established,
			size: size, written: artifactTime(e.Name()),
		})
		s.bytes.Add(size)
	}
	group.keepExemplars(exemplars)
	// Without a summary it was seen at least as often as there are artifacts.
	group.Count = max(group.Count, int64(len(group.Exemplars)))
	return group, err
}

func (s *Store) sizeOf(folder string) int64 {
	var size int64
	entries, _ := fs.ReadDir(s.root.FS(), folder) // what cannot be read takes no part in the limits
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size
}

// Write adds an artifact of an origin: it is there with all its files, or not
// at all. The error is ErrExists if the same failure was written before, and
// ErrNoSpace if the disk is too full.
func (s *Store) Write(fingerprint, name string, origin share.Origin, files []File) error {
	if !groupName.MatchString(fingerprint) || !artifactName.MatchString(name) {
		return fmt.Errorf("%q/%q is no name of the layout", fingerprint, name)
	}
	tmp := tmpPrefix + rand.Text()
	if err := s.root.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	size, err := s.fill(tmp, files)
	if err == nil {
		err = s.place(tmp, Artifact{
			Fingerprint: fingerprint, Name: name, origin: origin, size: size, written: artifactTime(name),
		})
	}
	if err != nil {
		return errors.Join(err, s.root.RemoveAll(tmp))
	}
	return errors.Join(syncDirectory(s.root, fingerprint), syncDirectory(s.root, "."))
}

// Add writes further files into an artifact, or in place of those with their names. Of one that is
// no longer kept it writes none. The error is ErrNoSpace if the disk is too full.
func (s *Store) Add(fingerprint, name string, files []File) error {
	folder := fingerprint + "/" + name
	_, err := s.fill(folder, files)
	size := s.sizeOf(folder)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := mlattr.Find(s.kept, func(a *Artifact) bool { return a.Fingerprint == fingerprint && a.Name == name }); a != nil {
		s.bytes.Add(size - a.size)
		a.size = size
	}
	return saved.IgnoreMissing(err)
}

// fill writes files into a folder and returns their size. The error is ErrNoSpace if they would leave
// too little free space, where that is known.
func (s *Store) fill(folder string, files []File) (size int64, err error) {
	for _, f := range files {
		size += int64(len(f.Content))
	}
	if free, known := s.free(s.lock); s.limits.Free > 0 && known && free-size < s.limits.Free {
		return 0, fmt.Errorf("%w: %d bytes are free, %d must stay so", ErrNoSpace, free, s.limits.Free)
	}
	for _, f := range files {
		if err := saved.WriteBytes(s.root, folder+"/"+f.Name, f.Content); err != nil {
			return 0, err
		}
	}
	return size, syncDirectory(s.root, folder)
}

// place renames a finished artifact to its name.
func (s *Store) place(tmp string, a Artifact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.root.Mkdir(a.Fingerprint, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := s.root.Lstat(a.Fingerprint); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%q is in the way of a group's folder", a.Fingerprint)
	}
	target := a.Fingerprint + "/" + a.Name
	if _, err := s.root.Lstat(target); err == nil {
		return ErrExists
	}
	if err := s.root.Rename(tmp, target); err != nil {
		return err
	}
	s.kept = append(s.kept, a)
	s.bytes.Add(a.size)
	return nil
}

// WriteGroup replaces a group's summary.
func (s *Store) WriteGroup(g Group) error {
	if err := saved.WriteBytes(s.root, g.Fingerprint+"/"+groupFile, g.encode()); err != nil {
		return err
	}
	return syncDirectory(s.root, g.Fingerprint)
}

// groupFile is the name of a group's summary in its folder.
const groupFile = "group.json"

// schema is the version of group.json. A change that older
// collectors misread raises it; a new field does not.
const schema = 1

// backupSuffix ends the name of a file that could not be read, and newSuffix that of one
// that was not finished.
const (
	backupSuffix = ".backup"
	newSuffix    = ".new"
)

// tmpPrefix begins the name of everything that is not finished.
const tmpPrefix = ".tmp-"

const timeForm = "20060102T150405Z"

var (
	groupName    = regexp.MustCompile(`^[0-9a-f]{16}$`)
	artifactName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{32}-[0-9a-f]{16}$`)
)

// ArtifactName returns the name of an artifact's folder. at is the
// collector's time; the ids must be hex.
func ArtifactName(at time.Time, traceID, spanID string) string {
	return strings.Join([]string{at.UTC().Format(timeForm), traceID, spanID}, "-")
}

func artifactTime(name string) time.Time {
	stamp, _, _ := strings.Cut(name, "-")
	t, _ := time.Parse(timeForm, stamp)
	return t
}
