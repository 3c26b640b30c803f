package vocabulary

import (
	"cmp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Attribute describes a canonical attribute.
type Attribute struct {
	// Name is the attribute's key. A name that ends in a dot is the beginning
	// of several keys.
	Name string
	// Constant is the name of its constant in Go, and Doc what follows the constant's name
	// in the comment.
	Constant, Doc string
	// Kind is how its values are read.
	Kind table.Kind
	// Unit is the unit in UCUM, or "".
	Unit string
	// Derived is true for an attribute that ml_enrich derives. No alias may name it.
	Derived bool
	// OnlyRead is true for an attribute that others are derived from and that
	// is never written.
	OnlyRead bool `yaml:"only_read"`
}

func byName(a, b Attribute) int { return cmp.Compare(a.Name, b.Name) }

// kinds has the kind of each canonical attribute.
var kinds = func() map[string]table.Kind {
	kinds := make(map[string]table.Kind, len(canonical))
	for _, a := range canonical {
		kinds[a.Name] = a.Kind
	}
	return kinds
}()

// Slot is the number of a canonical attribute. Facts are found by slot without
// comparing names. Zero is no attribute.
type Slot uint8

// maxSlots is above every slot.
const maxSlots = 128

// slotNames has the name of each slot, and slots the slot of each name.
var slotNames, slots = numberSlots()

func numberSlots() (names [maxSlots]string, bySlot map[string]Slot) {
	bySlot = make(map[string]Slot, len(canonical))
	for i, a := range canonical {
		names[i+1] = a.Name
		bySlot[a.Name] = Slot(i + 1)
	}
	return names, bySlot
}

// SlotOf returns the slot of a canonical attribute. It returns zero for any
// other name, including dynamic ones such as those that begin with
// LossTaskPrefix.
func SlotOf(canonical string) Slot { return slots[canonical] }

// Aliasable returns the canonical attributes that a user's alias may name,
// sorted.
func Aliasable() (names []string) {
	for _, a := range canonical {
		if !a.Derived && !a.OnlyRead {
			names = append(names, a.Name)
		}
	}
	return names
}

// readOnly reports whether a fact of this attribute must not be written.
func readOnly(name string, kind table.Kind) bool { return kind == table.KindSecret || onlyRead(name) }

// onlyRead reports whether an attribute is canonical within this project only:
// it is neither sent nor written under its name.
func onlyRead(name string) bool {
	return slices.ContainsFunc(canonical, func(a Attribute) bool { return a.Name == name && a.OnlyRead })
}

// Attributes returns the canonical attributes that can be read, sorted by name.
func Attributes() []Attribute {
	list := append([]Attribute{{Name: mlattr.LossTaskPrefix, Kind: table.KindDouble}, {Name: mlattr.ValPrefix, Kind: table.KindDouble}}, canonical...)
	slices.SortFunc(list, byName)
	return list
}
