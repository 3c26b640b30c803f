package schema_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// The schema and the Go types cannot differ.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	golden.File(t, "state.schema.json", string(derive(t)))
}

func instance(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return out
}

// filled gives every field a value and every list and map one entry.
func filled(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		filled(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 20, 6, 42, 10, 5e8, time.UTC)))
			return
		}
		for _, field := range v.Fields() {
			filled(field)
		}
	default:
		panic(v.Kind())
	}
}

// oneRowEach gives the lists of a document one row each without anything in it.
func oneRowEach(v reflect.Value) {
	for _, field := range v.Fields() {
		if field.Kind() == reflect.Slice {
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		}
	}
}

// documents are the definition of each document and how one is made.
var documents = map[string]func() any{
	"":                   func() any { return &api.State{} },
	"#/$defs/RunDetail":  func() any { return &api.RunDetail{} },
	"#/$defs/Trace":      func() any { return &api.Trace{} },
	"#/$defs/Rows":       func() any { return &Rows{} },
	"#/$defs/Comparison": func() any { return &api.Comparison{} },
	"#/$defs/Report":     func() any { return &report.Report{} },
}

func TestDocumentsAreValid(t *testing.T) {
	for reference, document := range documents {
		whole := document()
		filled(reflect.ValueOf(whole).Elem())
		require.NoError(t, pagetest.Schema(t, reference).Validate(instance(t, whole)), reference)
	}
	// MakeLists makes every list that a document must have, also those of rows.
	state, detail := &api.State{}, &api.RunDetail{}
	for _, document := range []any{state, detail} {
		oneRowEach(reflect.ValueOf(document).Elem())
		api.MakeLists(document)
	}
	require.NoError(t, pagetest.Schema(t, "").Validate(instance(t, state)))
	require.NoError(t, pagetest.Schema(t, "#/$defs/RunDetail").Validate(instance(t, detail)))
	// The report of a run of which nothing is known has all lists, too.
	for _, d := range []*api.RunDetail{{}, detail} {
		require.NoError(t, pagetest.Schema(t, "#/$defs/Report").Validate(instance(t, report.New(state, d, nil))))
	}
}

func TestOtherDocumentsAreNot(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"a field is missing":      func(s map[string]any) { delete(s, "needs") },
		"a list is null":          func(s map[string]any) { s["runs"] = nil },
		"a number is text":        func(s map[string]any) { s["version"] = "1" },
		"a time is none":          func(s map[string]any) { s["time"] = "yesterday" },
		"a row is another thing":  func(s map[string]any) { s["gpus"] = []any{"GPU"} },
		"a row's number is text":  func(s map[string]any) { s["runs"].([]any)[0].(map[string]any)["steps"] = "12" },      //nolint:forcetypeassert // as filled
		"a row's field is absent": func(s map[string]any) { delete(s["failures"].([]any)[0].(map[string]any), "class") }, //nolint:forcetypeassert // as filled
	} {
		state := &api.State{}
		filled(reflect.ValueOf(state).Elem())
		document := instance(t, state)
		change(document.(map[string]any)) //nolint:forcetypeassert // as encoded
		require.Error(t, pagetest.Schema(t, "").Validate(document), name)
	}
	// Readers keep working when fields are added.
	state := &api.State{}
	filled(reflect.ValueOf(state).Elem())
	document := instance(t, state)
	document.(map[string]any)["new"] = true //nolint:forcetypeassert // as encoded
	assert.NoError(t, pagetest.Schema(t, "").Validate(document))
}
