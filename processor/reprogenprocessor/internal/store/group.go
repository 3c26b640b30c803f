package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// MaxExemplars is the number of artefacts that a group keeps.
const MaxExemplars = 3

const (
	maxServices   = 16
	maxGroupBytes = 64 << 10
)

// Group is what is known about the failures of one fingerprint.
type Group struct {
	Fingerprint string    `json:"fingerprint"`
	Kind        string    `json:"kind"`
	Type        string    `json:"type"`
	Message     string    `json:"message"`
	Count       int64     `json:"count"`
	Suppressed  int64     `json:"suppressed"`
	FirstSeen   time.Time `json:"first_seen"`
	LastSeen    time.Time `json:"last_seen"`
	Services    []string  `json:"services"`
	// Exemplars are the names of the group's artefacts, the oldest first. They
	// are what the folder holds; the file repeats them for its readers.
	Exemplars []string `json:"exemplars"`
}

// AddService notes a service that the failure was seen in.
func (g *Group) AddService(name string) {
	if len(g.Services) < maxServices && !slices.Contains(g.Services, name) {
		g.Services = append(g.Services, name)
	}
}

// Merge adds what an earlier time knew.
func (g *Group) Merge(old Group) {
	g.Count += old.Count
	g.Suppressed += old.Suppressed
	if !old.FirstSeen.IsZero() && old.FirstSeen.Before(g.FirstSeen) {
		g.FirstSeen = old.FirstSeen
	}
	if old.LastSeen.After(g.LastSeen) {
		g.LastSeen = old.LastSeen
	}
	for _, s := range old.Services {
		g.AddService(s)
	}
}

func (g *Group) encode() []byte {
	array := func(in []string) jsontree.Array {
		out := make(jsontree.Array, len(in))
		for i, s := range in {
			out[i] = s
		}
		return out
	}
	return jsontree.EncodeIndent(jsontree.Of(
		"schema", jsontree.Number("1"),
		"fingerprint", g.Fingerprint,
		"kind", g.Kind,
		"type", g.Type,
		"message", g.Message,
		"count", jsontree.Int(g.Count),
		"suppressed", jsontree.Int(g.Suppressed),
		"first_seen", g.FirstSeen.UTC().Format(time.RFC3339Nano),
		"last_seen", g.LastSeen.UTC().Format(time.RFC3339Nano),
		"services", array(g.Services),
		"exemplars", array(g.Exemplars),
	))
}

// readGroup reads a group's file. A file that is damaged is an error: its
// counts are lost, its artefacts are not.
func (s *Store) readGroup(fingerprint string) (Group, error) {
	f, err := s.root.Open(fingerprint + "/" + groupFile)
	if err != nil {
		return Group{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxGroupBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return Group{}, err
	}
	if len(text) > maxGroupBytes {
		return Group{}, fmt.Errorf("%s of group %s is larger than %d bytes", groupFile, fingerprint, maxGroupBytes)
	}
	var g Group
	if err := json.Unmarshal(text, &g); err != nil {
		return Group{}, fmt.Errorf("%s of group %s: %w", groupFile, fingerprint, err)
	}
	if g.Count < 0 || g.Suppressed < 0 || len(g.Services) > maxServices {
		return Group{}, fmt.Errorf("%s of group %s has impossible values", groupFile, fingerprint)
	}
	return g, nil
}
