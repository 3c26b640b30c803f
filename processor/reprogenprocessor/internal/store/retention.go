package store

import (
	"errors"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Enforce removes artifacts until the limits hold, and returns them. path returns
// an origin's share of them.
func (s *Store) Enforce(now time.Time, path func(share.Origin) share.Path) ([]Artifact, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := make(map[Artifact]bool)
	for _, a := range s.kept {
		if s.limits.Age > 0 && now.Sub(a.written) > s.limits.Age {
			gone[a] = true
		}
	}
	s.surplus(gone, int64(s.limits.Artifacts), path, func(Artifact) int64 { return 1 })
	s.surplus(gone, s.limits.Bytes, path, func(a Artifact) int64 { return a.size })
	is := func(a Artifact) bool { return gone[a] }
	removed := mlattr.Where(slices.Values(s.kept), is)
	s.kept = slices.DeleteFunc(s.kept, is)
	var errs []error
	for _, a := range removed {
		s.bytes.Add(-a.size)
		errs = append(errs, s.remove(a))
	}
	return removed, errors.Join(errs...)
}

// surplus marks the artifacts that exceed a limit as gone. Each origin has a share.
// Of its own, the oldest whose group has another one goes first: the only artifact
// of a defect goes last.
func (s *Store) surplus(gone map[Artifact]bool, limit int64, path func(share.Origin) share.Path, weigh func(Artifact) int64) {
	var weight int64
	for _, a := range s.kept {
		if !gone[a] {
			weight += weigh(a)
		}
	}
	if limit <= 0 || weight <= limit {
		return
	}
	var last, others []Artifact
	seen := make(map[string]bool)
	for _, a := range slices.Backward(s.kept) {
		switch {
		case gone[a]:
		case seen[a.Fingerprint]:
			others = append(others, a)
		default:
			seen[a.Fingerprint] = true
			last = append(last, a)
		}
	}
	_, leave := share.Divide(append(last, others...), limit, func(a Artifact) share.Item {
		if a.established {
			return share.Item{Path: share.EstablishedPath(a.origin), Weight: weigh(a)}
		}
		return share.Item{Path: path(a.origin), Weight: weigh(a)}
	})
	for _, a := range leave {
		gone[a] = true
	}
}

// remove takes an artifact from the disk. The caller holds mu.
func (s *Store) remove(a Artifact) error {
	if err := s.root.RemoveAll(a.Fingerprint + "/" + a.Name); err != nil {
		return err
	}
	if slices.ContainsFunc(s.kept, func(k Artifact) bool { return k.Fingerprint == a.Fingerprint }) {
		return nil
	}
	// A folder that holds something else besides stays: only the summaries are
	// ours to remove.
	for _, own := range [...]string{"/" + groupFile, "/" + groupFile + newSuffix, "/" + groupFile + backupSuffix, ""} {
		_ = s.root.Remove(a.Fingerprint + own)
	}
	return nil
}
