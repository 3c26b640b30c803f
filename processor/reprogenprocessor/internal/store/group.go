package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// MaxExemplars is the number of artifacts that a group keeps.
const MaxExemplars = 3

// The bounds of a summary's lists. What comes first stays.
const (
	maxServices   = 16
	maxVersions   = 16
	maxVariants   = 16
	maxRanks      = 64
	maxGroupBytes = 256 << 10
)

// Variant is a form of a group's failure: shapes, dtypes, device, framework.
type Variant struct {
	// ID is a short hash of Text.
	ID string `json:"id"`
	// Text names what the variant is made of.
	Text string `json:"text"`
	// Count is how often it was seen.
	Count int64 `json:"count"`
	// Exemplar is the name of its artifact, or "".
	Exemplar string `json:"exemplar"`
}

// Group is what is known about the failures of one fingerprint.
type Group struct {
	// Schema is the version of the file.
	Schema      int       `json:"schema"`
	Fingerprint string    `json:"fingerprint"`
	Kind        string    `json:"kind"`
	Type        string    `json:"type"`
	Message     string    `json:"message"`
	Count       int64     `json:"count"`
	Suppressed  int64     `json:"suppressed"`
	FirstSeen   time.Time `json:"first_seen"`
	LastSeen    time.Time `json:"last_seen"`
	Services    []string  `json:"services"`
	// Established reports whether the service had sent successes for an hour. Its
	// artifacts do not make room for those of services that had not.
	Established bool `json:"established"`
	// Versions are those of the services (service.version).
	Versions []string `json:"versions"`
	// Ranks are the ranks of jobs in which it was seen.
	Ranks []string `json:"ranks"`
	// Variants are the forms it was seen in, the first one first.
	Variants []Variant `json:"variants"`
	// Exemplars are the names of the group's artifacts, the oldest first. They
	// are what the folder holds; the file repeats them for its readers.
	Exemplars []string `json:"exemplars"`
}

// Origin returns the group's service, of a sender that is not known any more.
func (g *Group) Origin() share.Origin {
	service := ""
	if len(g.Services) > 0 {
		service = g.Services[0]
	}
	return share.OriginOf(share.SenderOf(sender.ID{}), service)
}

// Copy returns a copy that has no list in common with the group.
func (g *Group) Copy() Group {
	c := *g
	c.Services, c.Versions, c.Ranks = append([]string{}, g.Services...), append([]string{}, g.Versions...), append([]string{}, g.Ranks...)
	c.Variants, c.Exemplars = append([]Variant{}, g.Variants...), append([]string{}, g.Exemplars...)
	return c
}

// SeenIn notes a service that the failure was seen in, its version and the rank; "" is
// none.
func (g *Group) SeenIn(service, version, rank string) {
	g.Services = add(g.Services, maxServices, service)
	g.Versions = add(g.Versions, maxVersions, version)
	g.Ranks = add(g.Ranks, maxRanks, rank)
}

func add(list []string, limit int, text string) []string {
	if text == "" || len(list) >= limit || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// Variant returns the variant of that id, which is noted if there is room, or
// nil.
func (g *Group) Variant(id, text string) *Variant {
	if known := mlattr.Find(g.Variants, func(v *Variant) bool { return v.ID == id }); known != nil || len(g.Variants) >= maxVariants {
		return known
	}
	g.Variants = append(g.Variants, Variant{ID: id, Text: text})
	return &g.Variants[len(g.Variants)-1]
}

// Forget notes that an artifact is gone.
func (g *Group) Forget(exemplar string) {
	g.keepExemplars(slices.DeleteFunc(g.Exemplars, func(e string) bool { return e == exemplar }))
}

// encode writes the group as its file has it.
func (g Group) encode() []byte {
	g.Schema, g.FirstSeen, g.LastSeen = schema, g.FirstSeen.UTC(), g.LastSeen.UTC()
	return jsontree.EncodeIndent(jsontree.From(g))
}

// keepExemplars sets what the folder really holds.
func (g *Group) keepExemplars(found []string) {
	g.Exemplars = found
	for i, v := range g.Variants {
		if !slices.Contains(found, v.Exemplar) {
			g.Variants[i].Exemplar = ""
		}
	}
}

// readGroup reads a group's file. A file that is damaged or of a newer version is
// an error: its counts are lost, its artifacts are not.
func (s *Store) readGroup(fingerprint string) (Group, error) {
	name := fingerprint + "/" + groupFile
	text, err := saved.ReadFile(s.root, name, maxGroupBytes)
	if err != nil {
		return Group{}, err
	}
	var read Group
	err = json.Unmarshal(text, &read)
	switch {
	case err != nil:
		return Group{}, fmt.Errorf("%s: %w", name, err)
	case read.Schema > schema:
		return Group{}, fmt.Errorf("%s: schema %d is newer than %d", name, read.Schema, schema)
	}
	return read, nil
}
