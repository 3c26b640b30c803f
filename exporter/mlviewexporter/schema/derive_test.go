package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
)

// rows are the rows of one list in the event rows.
type rows[T any] struct {
	Set []T      `json:"set,omitempty"`
	Del []string `json:"del,omitempty"`
}

// Rows is the document of the event rows.
type Rows struct {
	Time      time.Time     `json:"time"`
	Collector api.Collector `json:"collector"`
	Rows      struct {
		Needs    *rows[api.Need]    `json:"needs,omitempty"`
		Runs     *rows[api.Run]     `json:"runs,omitempty"`
		GPUs     *rows[api.GPU]     `json:"gpus,omitempty"`
		Failures *rows[api.Failure] `json:"failures,omitempty"`
		Calls    *rows[api.Call]    `json:"calls,omitempty"`
		Pools    *rows[api.Pool]    `json:"pools,omitempty"`
		Models   *rows[api.Model]   `json:"models,omitempty"`
		Changes  *rows[api.Change]  `json:"changes,omitempty"`
		Missing  *rows[api.Missing] `json:"missing,omitempty"`
	} `json:"rows"`
	Order map[string][]string `json:"order,omitempty"`
}

// rowsDocs describe what Rows has beside the types of the model.
var rowsDocs = map[string]string{
	"":      "Rows is the document of the event rows: what changed since the last event of the stream.",
	"rows":  "The rows of each list that are new or different (set), and the keys of those that have gone (del). A list without changes is omitted.",
	"order": "The keys of each list in their order, of the lists in which rows came, left or moved.",
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", m.key, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// deriver derives the schema from the types and the comments of the model.
type deriver struct {
	docs        map[string]string // of types and of fields as Type.Field
	definitions map[string]object
}

// derive returns the schema that belongs to the Go types.
func derive(t *testing.T) []byte {
	t.Helper()
	d := &deriver{docs: comments(t), definitions: map[string]object{}}
	for _, document := range []reflect.Type{
		reflect.TypeFor[api.State](), reflect.TypeFor[api.RunDetail](), reflect.TypeFor[api.Trace](), reflect.TypeFor[Rows](),
		reflect.TypeFor[api.Comparison](), reflect.TypeFor[api.History](), reflect.TypeFor[report.Report](),
	} {
		d.schemaOf(document)
	}
	var names []string
	for name := range d.definitions {
		names = append(names, name)
	}
	slices.Sort(names)
	var definitions object
	for _, name := range names {
		definitions = append(definitions, member{name, d.definitions[name]})
	}
	text, err := json.Marshal(object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "https://github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/schema/state.schema.json"},
		{"title", "State of the live page of otelcol-ml"},
		{"$comment", "Derived from the Go types: go test ./schema -update writes it."},
		{"$ref", "#/$defs/State"},
		{"$defs", definitions},
	})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, text, "", "  "))
	out.WriteByte('\n')
	return out.Bytes()
}

func (d *deriver) schemaOf(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case t.Kind() == reflect.Pointer:
		return d.schemaOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return object{{"type", "array"}, {"items", d.schemaOf(t.Elem())}}
	case t.Kind() == reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", d.schemaOf(t.Elem())}}
	case t.Kind() == reflect.Struct && (t.Name() == "" || strings.Contains(t.Name(), "[")):
		return d.fields(t, "Rows")
	case t.Kind() == reflect.Struct:
		if _, known := d.definitions[t.Name()]; !known {
			d.definitions[t.Name()] = nil
			d.definitions[t.Name()] = d.fields(t, t.Name())
		}
		return object{{"$ref", "#/$defs/" + t.Name()}}
	}
	return object{{"type", map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number", reflect.Int: "integer", reflect.Int64: "integer",
	}[t.Kind()]}}
}

func (d *deriver) fields(t reflect.Type, owner string) object {
	var properties object
	required := []string{}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		schema := d.schemaOf(field.Type)
		if options == "" {
			required = append(required, name)
		}
		if doc := d.docs[owner+"."+field.Name]; doc != "" {
			schema = append(object{{"description", renamed(t, doc)}}, schema...)
		} else if doc := rowsDocs[name]; owner == "Rows" && doc != "" {
			schema = append(object{{"description", doc}}, schema...)
		}
		properties = append(properties, member{name, schema})
	}
	out := object{{"type", "object"}}
	if doc := d.docs[owner]; doc != "" && t.Name() == owner {
		out = append(object{{"description", renamed(t, doc)}}, out...)
	} else if t.Name() == "Rows" {
		out = append(object{{"description", rowsDocs[""]}}, out...)
	}
	out = append(out, member{"properties", properties})
	if len(required) > 0 {
		out = append(out, member{"required", required})
	}
	return out
}

var word = regexp.MustCompile(`[A-Z]\w*`)

// renamed puts the names of JSON in the place of those of Go's fields.
func renamed(t reflect.Type, doc string) string {
	return word.ReplaceAllStringFunc(doc, func(name string) string {
		if field, ok := t.FieldByName(name); ok {
			name, _, _ = strings.Cut(field.Tag.Get("json"), ",")
		}
		return name
	})
}

// comments returns the comments of the types of the documents and of reports and of their fields. A
// field without a comment of its own has the one above it, if that names it.
func comments(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	var paths []string
	for _, folder := range []string{"api", "report"} {
		found, err := filepath.Glob("../internal/" + folder + "/*.go")
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			declaration, ok := n.(*ast.GenDecl)
			if !ok || declaration.Tok != token.TYPE {
				return true
			}
			for _, spec := range declaration.Specs {
				named := spec.(*ast.TypeSpec) //nolint:forcetypeassert // of a declaration of types
				if structure, ok := named.Type.(*ast.StructType); ok {
					docs[named.Name.Name] = oneLine(declaration.Doc)
					commentsOfFields(docs, named.Name.Name, structure)
				}
			}
			return false
		})
	}
	return docs
}

func commentsOfFields(docs map[string]string, owner string, structure *ast.StructType) {
	last := ""
	for _, field := range structure.Fields.List {
		if own := oneLine(field.Doc); own != "" {
			last = own
		}
		for _, name := range field.Names {
			if field.Doc != nil || regexp.MustCompile(`\b`+name.Name+`\b`).MatchString(last) {
				docs[owner+"."+name.Name] = last
			}
		}
	}
}

func oneLine(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}
