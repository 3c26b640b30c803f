package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	trees := make([]jsontree.Object, len(groups))
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
	content := jsontree.Encode(jsontree.Of("schema", jsontree.Int(schema), "groups", list))
	tmp, err := s.makeTmp(func(tmp string) error { return s.writeFile(tmp, content) })
	if err != nil {
		return err
	}
	if err := s.root.Rename(tmp, countsFile); err != nil {
		return errors.Join(err, s.root.Remove(tmp))
	}
	return syncDirectory(s.root, ".")
}

// readCounts reads what WriteCounts wrote. Groups that have a folder by now are
// left out. A file that is damaged or of a newer version is an error: its counts
// are lost.
func (s *Store) readCounts(known []Group) ([]Group, error) {
	f, err := s.root.Open(countsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxCountsBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxCountsBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", countsFile, maxCountsBytes)
	}
	var read struct {
		Schema int
		Groups []Group
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("%s: %w", countsFile, err)
	}
	if read.Schema > schema {
		return nil, fmt.Errorf("%s: schema %d is newer than %d", countsFile, read.Schema, schema)
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
