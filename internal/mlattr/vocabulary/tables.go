package vocabulary

import (
	"slices"
	"strings"
	"sync"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// System is a client's vocabulary, or a set of several as a bit mask. Zero is
// none.
type System uint64

// Vocabulary is the table of a client with its bit.
type Vocabulary struct {
	table.Table
	// System is the client's own bit. Zero means that the table holds for every
	// client.
	System System
}

// AllSystems is every vocabulary.
const AllSystems System = 1<<clients.Count - 1

// systemNames are the names of the bits of a System, from the lowest.
var systemNames = func() (names []string) {
	for _, t := range Tables() {
		if t.System != 0 {
			names = append(names, t.Name)
		}
	}
	return names
}()

// SystemNames returns what ParseSystem accepts, in the tables' order.
func SystemNames() []string { return append([]string(nil), systemNames...) }

// ParseSystem returns the vocabulary of a name. It returns false for an unknown
// name.
func ParseSystem(name string) (System, bool) {
	at := slices.Index(systemNames, name)
	if at < 0 {
		return 0, false
	}
	return 1 << at, true
}

// Tables returns every vocabulary in the order in which their rules are tried.
// The first and the last, those of launchers and of users, have no System: they
// are part of every Reader. Callers must not change what the tables refer to.
func Tables() []Vocabulary { return slices.Clone(tables()) }

var tables = sync.OnceValue(func() []Vocabulary {
	all := []Vocabulary{{Table: clients.Launchers()}}
	for i, table := range clients.All() {
		all = append(all, Vocabulary{table, 1 << i})
	}
	return append(all, Vocabulary{Table: clients.Users()})
})

// collectKeys concatenates a list of all tables, in their order, without
// duplicates.
func collectKeys(list func(*table.Table) []string) (keys []string) {
	for _, t := range Tables() {
		for _, key := range list(&t.Table) {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// Packages returns the clients' top-level Python packages. The caller must not
// change it.
func Packages() []string { return packages }

var packages = collectKeys(func(t *table.Table) []string { return t.Packages })

// Unbounded returns the keys of points of a metric that must not become labels, nil for
// most metrics. The caller must not change it.
func Unbounded(metric string) []string {
	for i := range unbounded {
		for _, prefix := range unbounded[i].MetricPrefixes {
			if strings.HasPrefix(metric, prefix) {
				return unbounded[i].Unbounded
			}
		}
	}
	return nil
}

// unbounded are the tables of clients with such keys.
var unbounded = slices.DeleteFunc(Tables(), func(t Vocabulary) bool { return t.Unbounded == nil })

// IsToolArguments reports whether an attribute's key is that of what a tool was
// called with, on a span that executes one.
func IsToolArguments(key string) bool { return toolArguments.Find(key) != nil }

var toolArguments = mlattr.NewKeySet(collectKeys(func(t *table.Table) []string { return t.ToolArguments })...)

// traitSystems has the clients of each trait.
var traitSystems = func() (systems [table.TraitCount]System) {
	for _, t := range Tables() {
		for _, trait := range t.Traits {
			systems[trait] |= t.System
		}
	}
	return systems
}()

// Has reports whether any client of the set has the trait.
func (s System) Has(trait table.Trait) bool { return s&traitSystems[trait] != 0 }

// With returns the clients of the set that have the trait.
func (s System) With(trait table.Trait) System { return s & traitSystems[trait] }

var changeKeys = func() *mlattr.KeyTable[table.ChangeKey] {
	index := mlattr.NewKeyTable[table.ChangeKey](128)
	for _, t := range Tables() {
		for i := range t.Changes {
			*index.Ensure(t.Changes[i].Source) = t.Changes[i]
		}
	}
	for _, name := range mlattr.Frameworks() {
		for _, key := range [...]string{name + ".version", name + "_version"} {
			*index.Ensure(key) = table.ChangeKey{Source: key, Kind: mlattr.ChangeFramework, Name: name}
		}
	}
	return index
}()

// ChangeKeyOf returns what an attribute of a resource, or of a span that is a
// request to a model, shows about changes, or nil.
func ChangeKeyOf(key string) *table.ChangeKey { return changeKeys.Find(key) }

// Event returns what an event of this name reports, and NoEvent for a name that
// no selected vocabulary has. A span that stands for an event has its name.
func (r *Reader) Event(name string) table.EventKind {
	if kind := r.events.Find(name); kind != nil {
		return *kind
	}
	return table.NoEvent
}

// PoolKeys returns the keys of span attributes that name the pool of workers
// that the span's events are about.
func PoolKeys() []string { return poolKeys }

var poolKeys = collectKeys(func(t *table.Table) []string { return t.PoolKeys })
