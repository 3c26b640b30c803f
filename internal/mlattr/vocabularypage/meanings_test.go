package vocabularypage

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// constant is a text constant and its comment.
type constant struct{ name, value, doc string }

// readMeanings returns the meanings of the constants of files by their values, from
// their comments. Of two constants with one value the first counts.
func readMeanings(names ...string) (map[string]string, error) {
	var constants []constant
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.CONST {
				constants = append(constants, constantsOf(d)...)
			}
		}
	}
	values := make(map[string]string)
	for _, c := range constants {
		values[c.name] = c.value
	}
	meanings := make(map[string]string)
	for _, c := range constants {
		if text := meaning(c.name, c.doc, values); text != "" && meanings[c.value] == "" {
			meanings[c.value] = text
		}
	}
	if len(meanings) == 0 {
		return nil, fmt.Errorf("%q have no constants with comments", names)
	}
	return meanings, nil
}

func constantsOf(declaration *ast.GenDecl) []constant {
	var constants []constant
	for _, spec := range declaration.Specs {
		s, ok := spec.(*ast.ValueSpec)
		if !ok || len(s.Values) != 1 || !s.Names[0].IsExported() {
			continue
		}
		literal, ok := s.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			continue
		}
		doc := s.Doc
		if doc == nil && !declaration.Lparen.IsValid() {
			doc = declaration.Doc
		}
		constants = append(constants, constant{s.Names[0].Name, value, doc.Text()})
	}
	return constants
}

// seeValues lists the values that an attribute can have, by the beginning of
// their constants' names.
var seeValues = regexp.MustCompile(`see the ([A-Z][a-z]+) values`)

// word matches what may be a constant's name in a comment.
var word = regexp.MustCompile(`[A-Z][A-Za-z]+`)

// meaning returns a comment without the constant's name that it begins with.
// Other constants are replaced by their values.
func meaning(name, doc string, values map[string]string) string {
	text := strings.Join(strings.Fields(doc), " ")
	text, ok := strings.CutPrefix(text, name+" ")
	if !ok {
		return ""
	}
	text = strings.TrimPrefix(text, "is ")
	text = seeValues.ReplaceAllStringFunc(text, func(reference string) string {
		beginning := seeValues.FindStringSubmatch(reference)[1]
		var list []string
		for name, value := range values {
			if name != beginning && strings.HasPrefix(name, beginning) {
				list = append(list, code(value))
			}
		}
		slices.Sort(list)
		return strings.Join(list, ", ")
	})
	text = word.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := values[name]; ok {
			return code(value)
		}
		return name
	})
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
