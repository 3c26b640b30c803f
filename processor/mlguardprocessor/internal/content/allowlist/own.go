package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// ownName matches constants that are keys, and not their values.
var ownName = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)+$`)

// quotedText returns the text of a string literal, and "" for anything else.
func quotedText(expression ast.Expr) string {
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

// ownKeys lists the attributes that this project's components write: those that
// the vocabulary's names and the series declare, and those that the
// receivers' generated builders set. The names of users and files are text.
func ownKeys(root string) ([]string, error) {
	var keys []string
	for _, name := range []string{"internal/mlattr/names.go", "internal/mlattr/changes.go", "internal/mlattr/problems.go", "connector/mlmetricsconnector/internal/series/table.go"} {
		err := inspect(root, name, func(node ast.Node) {
			spec, ok := node.(*ast.ValueSpec)
			if ok && len(spec.Values) == 1 && ownName.MatchString(quotedText(spec.Values[0])) && !isText(quotedText(spec.Values[0])) {
				keys = append(keys, quotedText(spec.Values[0]))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	err := inspectAll(root, "receiver/*/internal/metadata/generated_*.go", func(node ast.Node) {
		if call, ok := node.(*ast.CallExpr); ok && strings.HasPrefix(method(call), "Put") && len(call.Args) == 2 {
			if key := quotedText(call.Args[0]); key != "" && !isText(key) {
				keys = append(keys, key)
			}
		}
	})
	return keys, err
}

// isText reports whether the key is one of text that people chose.
func isText(key string) bool { return strings.HasPrefix(key, "user.") || key == "file.path" }

// ownTexts collects the descriptions of this project's metrics and the meanings
// of XIDs.
func ownTexts(root string) (map[string]bool, error) {
	texts := map[string]bool{}
	field := func(name string) func(ast.Node) {
		return func(node ast.Node) {
			if pair, ok := node.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name && quotedText(pair.Value) != "" {
					texts[quotedText(pair.Value)] = true
				}
			}
		}
	}
	if err := inspect(root, "connector/mlmetricsconnector/internal/series/table.go", field("Description")); err != nil {
		return nil, err
	}
	if err := inspectAll(root, "receiver/gpureceiver/internal/xid/*.go", field("Text")); err != nil {
		return nil, err
	}
	err := inspectAll(root, "receiver/*/internal/metadata/generated_*.go", func(node ast.Node) {
		if call, ok := node.(*ast.CallExpr); ok && method(call) == "SetDescription" && len(call.Args) == 1 {
			texts[quotedText(call.Args[0])] = true
		}
	})
	delete(texts, "")
	return texts, err
}

func method(call *ast.CallExpr) string {
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return ""
}

func inspectAll(root, pattern string, see func(ast.Node)) error {
	names, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if err := inspect("", name, see); err != nil {
			return err
		}
	}
	return nil
}

func inspect(root, name string, see func(ast.Node)) error {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if node != nil {
			see(node)
		}
		return true
	})
	return nil
}
