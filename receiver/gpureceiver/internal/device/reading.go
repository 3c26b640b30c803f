package device

import (
	"errors"
	"math"

	"go.yaml.in/yaml/v3"
)

// Reading is a value that may be unavailable. The zero Reading is
// unavailable, so that what nobody has read never looks like 0. In YAML an
// unavailable one is an absent key.
type Reading[T float64 | bool] struct {
	Value T
	Known bool
}

type (
	// Number is a reading of a quantity. Whole numbers are exact up to 2^53,
	// which is far beyond any amount of memory in bytes.
	Number = Reading[float64]
	// Flag is a reading that is true or false.
	Flag = Reading[bool]
)

// Read returns an available Reading.
func Read[T float64 | bool](value T) Reading[T] {
	return Reading[T]{Value: value, Known: true}
}

// IsZero reports whether the value is unavailable, so that YAML leaves it out.
func (r Reading[T]) IsZero() bool {
	return !r.Known
}

// MarshalYAML writes the bare value, whole numbers without an exponent.
func (r Reading[T]) MarshalYAML() (any, error) {
	if !r.Known {
		return nil, nil
	}
	if number, ok := any(r.Value).(float64); ok {
		return yamlNumber(number), nil
	}
	return r.Value, nil
}

// Largest is beyond every quantity that there is. The bound keeps sums of
// what a recording has far from an overflow.
const Largest = 1e30

// errNoReading refuses what would be a value and is none.
var errNoReading = errors.New("nan, inf and what is beyond 1e30 are no readings; leave out what was unavailable")

// isReading is written so that NaN is none.
func isReading(number float64) bool {
	return math.Abs(number) <= Largest
}

// UnmarshalYAML reads the bare value. YAML never calls it with null.
func (r *Reading[T]) UnmarshalYAML(node *yaml.Node) error {
	var value T
	if err := node.Decode(&value); err != nil {
		return err
	}
	if number, ok := any(value).(float64); ok && !isReading(number) {
		return errNoReading
	}
	*r = Read(value)
	return nil
}

// Fans are readings of fans in their order. One that is unavailable keeps its
// place, in YAML as null.
type Fans []Number

// UnmarshalYAML keeps the places of nulls, which YAML would leave out.
func (f *Fans) UnmarshalYAML(node *yaml.Node) error {
	var values []*Number
	if err := node.Decode(&values); err != nil {
		return err
	}
	*f = make(Fans, len(values))
	for i, value := range values {
		if value != nil {
			(*f)[i] = *value
		}
	}
	return nil
}

// Numbers are readings by a name of a fixed list, such as a clock's frequency
// by its domain. A name that is absent was unavailable.
type Numbers map[string]float64

// UnmarshalYAML reads names and bare values. YAML would make a null 0.
func (n *Numbers) UnmarshalYAML(node *yaml.Node) error {
	var values map[string]*Number
	if err := node.Decode(&values); err != nil {
		return err
	}
	*n = make(Numbers, len(values))
	for name, value := range values {
		if value == nil {
			return errNoReading
		}
		(*n)[name] = value.Value
	}
	return nil
}

// MarshalYAML writes whole numbers without an exponent.
func (n Numbers) MarshalYAML() (any, error) {
	values := make(map[string]any, len(n))
	for name, value := range n {
		values[name] = yamlNumber(value)
	}
	return values, nil
}

// yamlNumber is what YAML is to write for a number.
func yamlNumber(number float64) any {
	if number == math.Trunc(number) && math.Abs(number) < 1<<53 {
		return int64(number)
	}
	return number
}
