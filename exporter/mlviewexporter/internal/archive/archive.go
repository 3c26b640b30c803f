// Package archive keeps the reports of runs as files in a directory. The names of
// the files come from keys and forms only, never from telemetry.
package archive

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// maxBytes limits the files of all reports together.
const maxBytes = 1 << 30

// slightMode is the mode of the files of slight reports, which tells them from others
// after a restart, too.
const slightMode = 0o400

// maxListed limits the files of the directory that are looked at.
const maxListed = 100_000

var (
	// keyName is the form of a run's key, fileName that of a report's file and
	// unfinished that of one that was not written to its end.
	keyName    = regexp.MustCompile(`^[0-9a-f]{8,64}$`)
	fileName   = regexp.MustCompile(`^([0-9a-f]{8,64})\.(html|json|md)$`)
	unfinished = regexp.MustCompile(`^[0-9a-f]{8,64}\.(html|json|md)\.new$`)
)

// Form is a form of a report: the ending of its file, html, json or md, and what
// writes it.
type Form struct {
	Ending string
	Write  func(io.Writer) error
}

// Archive is a directory of reports. It is not safe for concurrent use.
type Archive struct {
	root *os.Root
	keep int
	// shares are those of the reports that were written since the start.
	shares map[string]Share
}

// Share is what a report counts against.
type Share struct {
	// Path is that of the run's sender and service.
	Path share.Path
	// Again reports whether the run did not come only once.
	Again bool
}

// Open opens a directory, which it creates if need be, for the reports of at most
// keep runs. It returns an error if the path is a link or is no directory, and if
// others than its owner may write to it.
func Open(directory string, keep int) (*Archive, error) {
	root, err := saved.Root(directory)
	if err != nil {
		return nil, err
	}
	return &Archive{root: root, keep: keep, shares: make(map[string]Share)}, nil
}

// Close closes the directory.
func (a *Archive) Close() error { return a.root.Close() }

// Written returns when the report of a run was written, the zero time if there is
// none.
func (a *Archive) Written(key string) time.Time {
	if !keyName.MatchString(key) {
		return time.Time{}
	}
	info, err := a.root.Lstat(key + ".html")
	if err != nil || !info.Mode().IsRegular() {
		return time.Time{}
	}
	return info.ModTime()
}

// Write writes the report of a run in its forms, each file whole or not at all, in
// place of an earlier report of the run. Then it removes reports beyond the limits: the
// slight ones before others, so that a slight one may leave at once, and of senders and
// services that have more than their share, those of runs that came only once before the
// oldest. A report that has more than 1 GiB is an error.
func (a *Archive) Write(key string, slight bool, of Share, forms ...Form) error {
	if !keyName.MatchString(key) {
		return fmt.Errorf("%q is not the key of a run", key)
	}
	mode := os.FileMode(0o600)
	if slight {
		mode = slightMode
	}
	for _, form := range forms {
		name := key + "." + form.Ending
		if !fileName.MatchString(name) {
			return fmt.Errorf("%q is not a form of a report", form.Ending)
		}
		err := saved.WriteFile(a.root, name, mode, func(to io.Writer) error {
			return form.Write(&limitedWriter{to: to, left: maxBytes})
		})
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	a.shares[key] = of
	return a.enforce(key)
}

// limitedWriter is an error for more bytes than are left.
type limitedWriter struct {
	to   io.Writer
	left int
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	if len(b) > w.left {
		return 0, errors.New("the report is too large")
	}
	w.left -= len(b)
	return w.to.Write(b)
}

// report is the files of a run.
type report struct {
	key    string
	slight bool
	files  []string
	bytes  int64
	at     time.Time
}

// enforce removes reports beyond the limits, and what is left of files that were not
// written to their end.
func (a *Archive) enforce(key string) error {
	reports, err := a.reports()
	if err != nil {
		return err
	}
	known := make(map[string]Share, len(reports))
	for _, one := range reports {
		// That of one from before the start is not known.
		known[one.key] = shared.Entry(a.shares, one.key, func() Share { return Share{Again: true} })
	}
	a.shares = known
	slices.SortFunc(reports, func(x, y *report) int {
		return cmp.Or(api.TrueFirst(x.key == key, y.key == key), api.TrueFirst(known[x.key].Again, known[y.key].Again),
			y.at.Compare(x.at), cmp.Compare(x.key, y.key))
	})
	var errs []error
	count, bytes := int64(a.keep), int64(maxBytes)
	for _, slight := range []bool{false, true} {
		of := slices.DeleteFunc(slices.Clone(reports), func(one *report) bool { return one.slight != slight })
		stay := a.keeps(of, count, func(*report) int64 { return 1 })
		stay = a.keeps(stay, bytes, func(one *report) int64 { return one.bytes })
		if count == int64(a.keep) && len(stay) == 0 && len(of) > 0 {
			stay = of[:1]
		}
		for _, one := range of {
			if len(stay) > 0 && stay[0] == one {
				stay, count, bytes = stay[1:], count-1, bytes-one.bytes
				continue
			}
			for _, name := range one.files {
				errs = append(errs, saved.IgnoreMissing(a.root.Remove(name)))
			}
		}
	}
	return errors.Join(errs...)
}

// keeps returns the reports that stay within a limit.
func (a *Archive) keeps(reports []*report, limit int64, weigh func(*report) int64) (stay []*report) {
	stay, _ = share.Divide(reports, max(limit, 0), func(one *report) share.Item {
		return share.Item{Path: a.shares[one.key].Path, Weight: weigh(one)}
	})
	return stay
}

// reports returns what the directory has. Other files than those of reports are
// ignored.
func (a *Archive) reports() (_ []*report, err error) {
	folder, err := a.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	entries, err := folder.ReadDir(maxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	known := make(map[string]*report)
	for _, entry := range entries {
		if unfinished.MatchString(entry.Name()) {
			if err := saved.IgnoreMissing(a.root.Remove(entry.Name())); err != nil {
				return nil, err
			}
			continue
		}
		match := fileName.FindStringSubmatch(entry.Name())
		info, err := entry.Info()
		if match == nil || err != nil || !info.Mode().IsRegular() {
			continue
		}
		one := shared.Entry(known, match[1], func() *report {
			return &report{key: match[1], slight: info.Mode().Perm() == slightMode}
		})
		one.files, one.bytes = append(one.files, entry.Name()), one.bytes+info.Size()
		one.at = shared.Later(one.at, info.ModTime())
	}
	return slices.Collect(maps.Values(known)), nil
}
