package device

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// each visits every field below a struct, down to readings, maps and slices.
func each(value reflect.Value, path string, visit func(path string, field reflect.Value)) {
	for i := range value.NumField() {
		field, name := value.Field(i), path+"."+value.Type().Field(i).Name
		switch field.Interface().(type) {
		case Number, Flag:
			visit(name, field)
			continue
		}
		if field.Kind() == reflect.Struct {
			each(field, name, visit)
			continue
		}
		visit(name, field)
	}
}

// filled returns readings in which nothing is unavailable.
func filled(t *testing.T) Readings {
	t.Helper()
	var r Readings
	each(reflect.ValueOf(&r).Elem(), "Readings", func(path string, field reflect.Value) {
		switch value := field.Addr().Interface().(type) {
		case *Number:
			*value = Read(1.0)
		case *Flag:
			*value = Read(true)
		case *Numbers:
			*value = Numbers{"name": 1}
		case *Fans:
			*value = Fans{Read(1.0)}
		default:
			require.Failf(t, "a kind of reading that nothing here knows", "%s is a %s", path, field.Type())
		}
	})
	return r
}

// A field that no table had would be neither checked, nor counted on, nor
// recorded.
func TestEveryReadingIsInATable(t *testing.T) {
	r := filled(t)
	tables := map[*Number]string{}
	for _, q := range numbers {
		address, name := q.in(&r), q.name
		assert.Empty(t, tables[address], "%s stands for the same field", name)
		tables[address] = name
	}
	fields := map[*Numbers]bool{}
	for _, s := range sets {
		field := s.in(&r)
		assert.False(t, fields[field], "%s stands for the field of another", s.name)
		fields[field] = true
	}
	each(reflect.ValueOf(&r).Elem(), "Readings", func(path string, field reflect.Value) {
		switch value := field.Addr().Interface().(type) {
		case *Number:
			assert.NotEmpty(t, tables[value], path)
		case *Numbers:
			assert.True(t, fields[value], path)
		case *Flag:
			assert.True(t, slices.ContainsFunc(others, func(q *Quantity) bool { return q.flagIn != nil && q.flagIn(&r) == value }), path)
		}
	})
}

func TestQuantitiesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range slices.Concat(numbers, others) {
		assert.False(t, seen[q.name], q.name)
		seen[q.name] = true
	}
	for _, s := range sets {
		assert.False(t, seen[s.name], s.name)
		seen[s.name] = true
		assert.NotEmpty(t, s.Names, s.name)
	}
}

// Whatever is changed in a clone, and in whatever field, the original stays as
// it was.
func TestCloneSharesNothing(t *testing.T) {
	original := filled(t)
	clone := original.Clone()
	require.Equal(t, original, clone)
	each(reflect.ValueOf(&clone).Elem(), "Readings", func(_ string, field reflect.Value) {
		switch value := field.Addr().Interface().(type) {
		case *Number:
			value.Value = 2
		case *Flag:
			value.Value = false
		case *Numbers:
			(*value)["name"], (*value)["more"] = 2, 2
		case *Fans:
			(*value)[0].Value = 2
		}
	})
	assert.Equal(t, filled(t), original)
}

// What is stored as a quantity is the quantity's reading, and no other's.
func TestStoredQuantityIsRead(t *testing.T) {
	for _, q := range Quantities() {
		if slices.Contains(others, q) {
			continue
		}
		var r Readings
		assert.False(t, q.Of(&r).Known, q.Name())
		q.Store(&r, 1)
		for _, each := range Quantities() {
			if !slices.Contains(others, each) {
				assert.Equal(t, each == q, each.Of(&r).Known, "%s of %s", each.Name(), q.Name())
			}
		}
	}
}

// A counter is visited once, under a name of its own, and what the visitor
// returns is kept.
func TestEachCounter(t *testing.T) {
	r := filled(t)
	r.NVLink.Errors = Numbers{"replay": 1}
	seen := map[*Quantity]int{}
	r.EachCounter(func(q *Quantity, value float64) float64 {
		seen[q]++
		return value + 1
	})
	for q, times := range seen {
		assert.Equal(t, 1, times, q.Name())
	}
	assert.Equal(t, 1, seen[Energy])
	assert.Equal(t, 1, seen[NVLinkErrors.Member("replay")])
	assert.Equal(t, Read(2.0), r.Power.Energy)
	assert.Equal(t, Numbers{"replay": 2}, r.NVLink.Errors)
	assert.Equal(t, Read(1.0), r.Power.Draw, "no counter")

	var none Readings
	none.EachCounter(func(q *Quantity, _ float64) float64 {
		t.Error(q.Name(), "is unavailable")
		return 1
	})
	assert.Equal(t, Readings{}, none)
}
