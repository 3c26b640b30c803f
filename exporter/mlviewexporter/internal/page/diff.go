package page

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// update is what changed from one State to the next: the document of the event
// rows. The lists of the State have the names that they have in its JSON.
type update struct {
	Time      time.Time           `json:"time"`
	Collector api.Collector       `json:"collector"`
	Rows      map[string]*changed `json:"rows"`
	// Order has the keys of each list whose rows came, left or moved.
	Order map[string][]string `json:"order,omitempty"`
}

// changed are the rows of one list that are new, the fields of those that are
// different, and the keys of those that have gone.
type changed struct {
	Set []any `json:"set,omitempty"`
	// Change has for each row its key and its fields that are different. A field that
	// has gone is null.
	Change []map[string]any `json:"change,omitempty"`
	Del    []string         `json:"del,omitempty"`
}

// diff returns the update that makes next of a client's old State.
func diff(old, next *api.State) *update {
	u := &update{
		Time: next.Time, Collector: next.Collector,
		Rows: make(map[string]*changed), Order: make(map[string][]string),
	}
	was, is := reflect.ValueOf(old).Elem(), reflect.ValueOf(next).Elem()
	for _, list := range fieldsOf(was.Type()) {
		if rows := is.Field(list.index); rows.Kind() == reflect.Slice {
			u.diffRows(list.name, was.Field(list.index), rows)
		}
	}
	return u
}

// diffRows adds what changed in a list of rows.
func (u *update) diffRows(list string, old, next reflect.Value) {
	row := next.Type().Elem()
	fields := fieldsOf(row)
	key, _ := row.FieldByName("Key")
	before, order, keys := make(map[string]reflect.Value, old.Len()), make([]string, old.Len()), make([]string, next.Len())
	for i := range order {
		order[i] = old.Index(i).FieldByIndex(key.Index).String()
		before[order[i]] = old.Index(i)
	}
	var c changed
	for i := range keys {
		now := next.Index(i)
		keys[i] = now.FieldByIndex(key.Index).String()
		was, ok := before[keys[i]]
		delete(before, keys[i])
		if !ok {
			c.Set = append(c.Set, now.Addr().Interface())
			continue
		}
		var change map[string]any
		for _, f := range fields {
			shown := f.value(now)
			if reflect.DeepEqual(f.value(was), shown) {
				continue
			}
			if change == nil {
				change = map[string]any{"key": keys[i]}
			}
			change[f.name] = shown
		}
		if change != nil {
			c.Change = append(c.Change, change)
		}
	}
	for _, k := range order {
		if _, gone := before[k]; gone {
			c.Del = append(c.Del, k)
		}
	}
	if c.Set != nil || c.Change != nil || c.Del != nil {
		u.Rows[list] = &c
	}
	if !slices.Equal(order, keys) {
		u.Order[list] = keys
	}
}

// field is a field of a document with its name in JSON.
type field struct {
	index     int
	name      string
	omitEmpty bool
}

// fieldsOf returns the fields of a type of rows that updates have: all but those with the tag
// updates:"-", which change in each update and which the page does not show.
func fieldsOf(row reflect.Type) (all []field) {
	for i := range row.NumField() {
		tag := row.Field(i).Tag
		name, options, _ := strings.Cut(tag.Get("json"), ",")
		if tag.Get("updates") != "-" {
			all = append(all, field{index: i, name: name, omitEmpty: strings.Contains(options, "omitempty")})
		}
	}
	return all
}

// value returns the field of a row as JSON shows it; nil if that leaves it out.
func (f field) value(row reflect.Value) any {
	v := row.Field(f.index)
	if f.omitEmpty && (v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0) {
		return nil
	}
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Float64 && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Float64 {
		return rounded(v.Float())
	}
	return v.Interface()
}

// rounded returns a measure as updates have it: with four digits, which is one more than
// the page shows, and at least to the whole number. So a row is sent when what it shows
// changes.
func rounded(v float64) float64 {
	if size := math.Abs(v); size >= 1000 || v == math.Trunc(v) {
		return math.Round(v)
	}
	var text [32]byte
	short, _ := strconv.ParseFloat(string(strconv.AppendFloat(text[:0], v, 'g', 4, 64)), 64)
	return short
}
