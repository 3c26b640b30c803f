package device

import (
	"reflect"
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
	for i := range quantities {
		address, name := quantities[i].of(&r), quantities[i].name
		assert.Empty(t, tables[address], "%s stands for the same field", name)
		tables[address] = name
	}
	sets := map[uintptr]bool{}
	for i := range quantitySets {
		pointer := reflect.ValueOf(quantitySets[i].of(&r)).Pointer()
		assert.False(t, sets[pointer], "%s stands for the field of another", quantitySets[i].name)
		sets[pointer] = true
	}
	each(reflect.ValueOf(&r).Elem(), "Readings", func(path string, field reflect.Value) {
		switch value := field.Addr().Interface().(type) {
		case *Number:
			assert.NotEmpty(t, tables[value], path)
		case *Numbers:
			assert.True(t, sets[reflect.ValueOf(*value).Pointer()], path)
		}
	})
}

func TestQuantitiesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for i := range quantities {
		assert.False(t, seen[quantities[i].name], quantities[i].name)
		seen[quantities[i].name] = true
	}
	for i := range quantitySets {
		assert.False(t, seen[quantitySets[i].name], quantitySets[i].name)
		seen[quantitySets[i].name] = true
		assert.NotEmpty(t, quantitySets[i].names, quantitySets[i].name)
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

// A counter is visited once, under a name of its own, and what the visitor
// returns is kept.
func TestEachCounter(t *testing.T) {
	r := filled(t)
	seen := map[string]int{}
	r.EachCounter(func(set, name string, value float64) float64 {
		seen[set+"/"+name]++
		return value + 1
	})
	for key, times := range seen {
		assert.Equal(t, 1, times, key)
	}
	assert.Equal(t, 1, seen["power.energy/"])
	assert.Equal(t, 1, seen["nvlink.errors/name"])
	assert.Equal(t, Read(2.0), r.Power.Energy)
	assert.Equal(t, Numbers{"name": 2}, r.NVLink.Errors)
	assert.Equal(t, Read(1.0), r.Power.Draw, "no counter")

	var none Readings
	none.EachCounter(func(set, _ string, _ float64) float64 {
		t.Error(set, "is unavailable")
		return 1
	})
	assert.Equal(t, Readings{}, none)
}
