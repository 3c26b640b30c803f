package page

import (
	"reflect"
	"slices"
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
	if old == next {
		return u
	}
	diffRows(u, "needs", old.Needs, next.Needs, func(r *api.Need) string { return r.Key })
	diffRows(u, "resolved", old.Resolved, next.Resolved, func(r *api.Need) string { return r.Key })
	diffRows(u, "runs", old.Runs, next.Runs, func(r *api.Run) string { return r.Key })
	diffRows(u, "gpus", old.GPUs, next.GPUs, func(r *api.GPU) string { return r.Key })
	diffRows(u, "failures", old.Failures, next.Failures, func(r *api.Failure) string { return r.Key })
	diffRows(u, "calls", old.Calls, next.Calls, func(r *api.Call) string { return r.Key })
	diffRows(u, "pools", old.Pools, next.Pools, func(r *api.Pool) string { return r.Key })
	diffRows(u, "models", old.Models, next.Models, func(r *api.Model) string { return r.Key })
	diffRows(u, "changes", old.Changes, next.Changes, func(r *api.Change) string { return r.Key })
	diffRows(u, "missing", old.Missing, next.Missing, func(r *api.Missing) string { return r.Key })
	diffRows(u, "collectors", old.Collectors, next.Collectors, func(r *api.SendingCollector) string { return r.Key })
	return u
}

func diffRows[T any](u *update, list string, old, next []T, key func(*T) string) {
	before := make(map[string]*T, len(old))
	order := make([]string, len(old))
	for i := range old {
		order[i] = key(&old[i])
		before[order[i]] = &old[i]
	}
	fields := fieldsOf(reflect.TypeFor[T]())
	var c changed
	keys := make([]string, len(next))
	for i := range next {
		keys[i] = key(&next[i])
		was, ok := before[keys[i]]
		delete(before, keys[i])
		if !ok {
			c.Set = append(c.Set, &next[i])
			continue
		}
		if change := fields.diff(reflect.ValueOf(was).Elem(), reflect.ValueOf(&next[i]).Elem()); change != nil {
			change["key"] = keys[i]
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
