package device

import (
	"maps"
	"slices"
)

// Quantity is one value that a GPU can report. A source reads it, and metrics
// are made of it.
type Quantity struct {
	// name is the value's name in the receiver's own metrics.
	name    string
	bounds  bounds
	counter bool
	// One of the following says where Readings have it; neither of them for
	// what is no number.
	in     func(*Readings) *Number
	flagIn func(*Readings) *Flag
	set    *Set
	// member is the key in the set's Numbers.
	member string
}

// Set is the quantities of one kind that differ by a name only, such as the
// clocks of several domains.
type Set struct {
	// Names are the keys of the Numbers. No others are allowed.
	Names []string

	name    string
	bounds  bounds
	members []*Quantity
	in      func(*Readings) *Numbers
}

// Engine is the quantities of one engine of a GPU.
type Engine struct {
	// Task is the engine's name, one of ProcessTasks.
	Task string
	// Utilization, Peak and BusyTime are the fields of its Activity.
	Utilization, Peak, BusyTime *Quantity
	// In returns the engine's part of the readings.
	In func(*Readings) *Activity
}

// numbers, sets and others are what the table in readings.go declares, in its
// order.
var (
	numbers []*Quantity
	sets    []*Set
	others  []*Quantity
)

// gauge declares a number that can rise and fall.
func gauge(name string, within bounds, in func(*Readings) *Number) *Quantity {
	q := &Quantity{name: name, bounds: within, in: in}
	numbers = append(numbers, q)
	return q
}

// counter declares a number that only rises until the driver is loaded again.
func counter(name string, within bounds, in func(*Readings) *Number) *Quantity {
	q := gauge(name, within, in)
	q.counter = true
	return q
}

// gauges declares a set of numbers that can rise and fall.
func gauges(name string, within bounds, in func(*Readings) *Numbers, names ...string) *Set {
	s := &Set{Names: names, name: name, bounds: within, in: in}
	for _, member := range names {
		s.members = append(s.members, &Quantity{name: name, bounds: within, set: s, member: member})
	}
	sets = append(sets, s)
	return s
}

// counters declares a set of counters.
func counters(name string, within bounds, in func(*Readings) *Numbers, names ...string) *Set {
	s := gauges(name, within, in, names...)
	for _, q := range s.members {
		q.counter = true
	}
	return s
}

// state declares a value that is true or false.
func state(name string, in func(*Readings) *Flag) *Quantity {
	q := other(name)
	q.flagIn = in
	return q
}

// other declares a value of Readings that is no number.
func other(name string) *Quantity {
	q := &Quantity{name: name}
	others = append(others, q)
	return q
}

// engine declares the quantities of an engine.
func engine(task string, in func(*Readings) *Activity) *Engine {
	return &Engine{
		Task: task, In: in,
		Utilization: gauge("activity."+task+".utilization", ratio, func(r *Readings) *Number { return &in(r).Utilization }),
		Peak:        gauge("activity."+task+".peak", ratio, func(r *Readings) *Number { return &in(r).Peak }),
		BusyTime:    counter("activity."+task+".busy_seconds", seconds, func(r *Readings) *Number { return &in(r).BusySeconds }),
	}
}

// Quantities returns all quantities of Readings.
func Quantities() []*Quantity {
	all := slices.Concat(numbers, others)
	for _, s := range sets {
		all = append(all, s.members...)
	}
	return all
}

// Name returns the name of the quantity's line in the table. The members of a
// set share it.
func (q *Quantity) Name() string {
	return q.name
}

// Of returns the quantity's reading, 1 for true and 0 for false. The quantity
// must be a number or a flag.
func (q *Quantity) Of(r *Readings) Number {
	switch {
	case q.in != nil:
		return *q.in(r)
	case q.set != nil:
		value, known := (*q.set.in(r))[q.member]
		return Number{Value: value, Known: known}
	}
	flag := q.flagIn(r)
	if flag.Value {
		return Number{Value: 1, Known: flag.Known}
	}
	return Number{Known: flag.Known}
}

// Store makes value the quantity's reading. The quantity must be a number.
func (q *Quantity) Store(r *Readings, value float64) {
	if q.set == nil {
		*q.in(r) = Read(value)
		return
	}
	values := q.set.in(r)
	if *values == nil {
		*values = make(Numbers, len(q.set.Names))
	}
	(*values)[q.member] = value
}

// Member returns the quantity of a name, which must be one of Names.
func (s *Set) Member(name string) *Quantity {
	return s.members[slices.Index(s.Names, name)]
}

// Members returns the quantities in the order of Names.
func (s *Set) Members() []*Quantity {
	return s.members
}

// EachCounter calls visit with each counter that is known and stores what it
// returns.
func (r *Readings) EachCounter(visit func(q *Quantity, value float64) float64) {
	for _, q := range numbers {
		if !q.counter {
			continue
		}
		if number := q.in(r); number.Known {
			number.Value = visit(q, number.Value)
		}
	}
	for _, s := range sets {
		if !s.members[0].counter {
			continue
		}
		values := *s.in(r)
		for _, q := range s.members {
			if value, known := values[q.member]; known {
				values[q.member] = visit(q, value)
			}
		}
	}
}

// Clone returns readings that share nothing with the original.
func (r *Readings) Clone() Readings {
	clone := *r
	for _, s := range sets {
		values := s.in(&clone)
		*values = maps.Clone(*values)
	}
	clone.Thermal.Fans = slices.Clone(clone.Thermal.Fans)
	return clone
}
