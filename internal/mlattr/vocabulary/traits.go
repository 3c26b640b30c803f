package vocabulary

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"

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
