package store

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// The bounds of the file with the groups that have no folder.
const (
	// MaxCounted is the number of groups.
	MaxCounted     = 1000
	maxCountsBytes = 1 << 20
)

// WriteCounts replaces what is kept of groups without an artifact, those seen
// last first. What does not fit is left out, by shares.
func (s *Store) WriteCounts(groups []Group) error {
	groups = groups[:min(len(groups), MaxCounted)]
	trees := make([]any, len(groups))
	items := make([]share.Item, len(groups))
	for i := range groups {
		trees[i] = groups[i].tree()
		items[i] = share.Item{Path: groups[i].Path, Weight: int64(len(jsontree.Encode(trees[i])) + 1)}
	}
	list := jsontree.Array{}
	for i, kept := range share.Keep(items, maxCountsBytes-1024) {
		if kept {
			list = append(list, trees[i])
		}
	}
	return s.replace(".", countsFile, jsontree.Encode(jsontree.Of("schema", jsontree.Int(schema), "groups", list)), s.root.Rename)
}

// readCounts reads what WriteCounts wrote. Groups that have a folder by now are
// left out. A file that is damaged or of a newer version is an error: its counts
// are lost.
func (s *Store) readCounts(known []Group) ([]Group, error) {
	var read struct{ Groups []Group }
	if err := s.read(countsFile, maxCountsBytes, &read); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	have := make(map[string]bool, len(known))
	for _, g := range known {
		have[g.Fingerprint] = true
	}
	groups := slices.DeleteFunc(read.Groups, func(g Group) bool {
		return have[g.Fingerprint] || !groupName.MatchString(g.Fingerprint) || g.impossible()
	})
	for i := range groups {
		groups[i].keepExemplars(nil)
	}
	groups = groups[:min(len(groups), MaxCounted)]
	slices.Reverse(groups) // the one seen last comes last
	return groups, nil
}
