package api

import (
	"reflect"
	"strings"
)

// MakeLists makes the lists of a document that are nil and that JSON must have, so that
// they are [] there and not null. The document must not be in use yet.
func MakeLists(document any) { makeLists(reflect.ValueOf(document)) }

func makeLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		makeLists(v.Elem())
	case reflect.Slice:
		if kind := v.Type().Elem().Kind(); kind == reflect.Struct || kind == reflect.Pointer {
			for i := range v.Len() {
				makeLists(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			list := field.Kind() == reflect.Slice || field.Kind() == reflect.Map
			switch {
			case !field.CanSet():
			case list && field.IsNil() && !strings.Contains(v.Type().Field(i).Tag.Get("json"), "omitempty"):
				if field.Kind() == reflect.Map {
					field.Set(reflect.MakeMap(field.Type()))
				} else {
					field.Set(reflect.MakeSlice(field.Type(), 0, 0))
				}
			default:
				makeLists(field)
			}
		}
	}
}

// TrueFirst orders rows of which something is true before others.
func TrueFirst(a, b bool) int {
	if a == b {
		return 0
	} else if a {
		return -1
	}
	return 1
}

// Limited returns the first rows of a list, and counts the others.
func Limited[T any](others map[string]int, list string, rows []T, limit int) []T {
	if more := len(rows) - limit; more > 0 {
		others[list] += more
		return rows[:limit]
	}
	return rows
}

// Grouped returns the rows with the same key together, in the order of their first.
func Grouped[T any, K comparable](rows []T, key func(*T) K) (groups [][]*T) {
	places := make(map[K]int)
	for i := range rows {
		place, known := places[key(&rows[i])]
		if !known {
			place = len(groups)
			places[key(&rows[i])], groups = place, append(groups, nil)
		}
		groups[place] = append(groups[place], &rows[i])
	}
	return groups
}
