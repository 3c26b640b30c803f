package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
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
	for _, name := range []string{"internal/mlattr/generated_names.go", "internal/mlattr/generated_shared_names.go", "connector/mlmetricsconnector/internal/series/table.go"} {
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
	series, err := ownSeries(root)
	if err != nil {
		return nil, err
	}
	for _, one := range series {
		for _, label := range one.Labels {
			if ownName.MatchString(label) && !isText(label) {
				keys = append(keys, label)
			}
		}
	}
	err = inspectAll(root, "receiver/*/internal/metadata/generated_*.go", func(node ast.Node) {
		if call, ok := node.(*ast.CallExpr); ok && strings.HasPrefix(method(call), "Put") && len(call.Args) > 0 {
			if key := quotedText(call.Args[0]); key != "" && !isText(key) {
				keys = append(keys, key)
			}
		}
	})
	return keys, err
}

// series is what the table of the series of ml_metrics says of one.
type series struct {
	Labels      []string
	Description string
}

// ownSeries returns the table of the series of ml_metrics.
func ownSeries(root string) (all []series, err error) {
	text, err := os.ReadFile(filepath.Join(root, "connector/mlmetricsconnector/internal/series/series.yaml")) // #nosec G304 G703 -- a file of this repository
	if err != nil {
		return nil, err
	}
	return all, yaml.Unmarshal(text, &all)
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
	series, err := ownSeries(root)
	if err != nil {
		return nil, err
	}
	for _, one := range series {
		texts[one.Description] = true
	}
	if err := inspectAll(root, "receiver/gpureceiver/internal/xid/*.go", field("Text")); err != nil {
		return nil, err
	}
	meanings, err := os.ReadFile(filepath.Join(root, "receiver/gpureceiver/internal/xid/meanings.txt")) // #nosec G304 G703 -- a file of this repository
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(meanings)) {
		texts[strings.Join(strings.Fields(line)[3:], " ")] = true // after code, severity and effect
	}
	err = inspectAll(root, "receiver/*/internal/metadata/generated_*.go", func(node ast.Node) {
		if call, ok := node.(*ast.CallExpr); ok && method(call) == "SetDescription" && len(call.Args) == 1 {
			texts[quotedText(call.Args[0])] = true
		}
	})
	delete(texts, "")
	return texts, err
}

// conclusionWords collects the words of what ml_metrics says of problems.
func conclusionWords(root string) (map[string]bool, error) {
	words := map[string]bool{}
	add := func(text string) {
		for word := range strings.FieldsSeq(text) {
			if word = strings.Trim(word, "(),.:;"); !strings.ContainsAny(word, "%0123456789") {
				words[word] = true
			}
		}
	}
	var errs error
	for _, files := range []string{"connector/mlmetricsconnector/internal/detect/*.go", "internal/shared/flightrecorder/verdict.go"} {
		errs = errors.Join(errs, inspectAll(root, files, func(node ast.Node) {
			if literal, ok := node.(*ast.BasicLit); ok && strings.Contains(quotedText(literal), " ") {
				add(quotedText(literal))
			}
		}))
	}
	for _, kind := range mlattr.Problems {
		add(kind.Next)
	}
	delete(words, "")
	return words, errs
}

// listedMetric matches a metric in a list of a component's series, and recordingRule the
// name of one in Prometheus: with a colon, unlike those that have a name of DCGM.
var (
	listedMetric  = regexp.MustCompile("(?m)^- \\[`([^`]+)`\\]")
	recordingRule = regexp.MustCompile(`(?m)^\s*- record: (\S+:\S+)$`)
)

// ownMetrics lists the metrics that only this project's components write, and the
// recording rules. Those of the conventions that clients send too are not among them.
func ownMetrics(root string) ([]string, error) {
	metrics := []string{table.MeasureTokenThroughput}
	for pattern, name := range map[string]*regexp.Regexp{
		"connector/*/series.md": listedMetric, "receiver/*/series.md": listedMetric, "docker/prometheus/rules/*.yaml": recordingRule,
	} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no files %s: %w", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file) // #nosec G304 G703 -- a file of this repository
			if err != nil {
				return nil, err
			}
			for _, match := range name.FindAllSubmatch(text, -1) {
				metrics = append(metrics, string(match[1]))
			}
		}
	}
	err := inspect(root, "processor/mlenrichprocessor/internal/gpujoin/metrics.go", func(node ast.Node) {
		if literal, ok := node.(*ast.BasicLit); ok && strings.HasPrefix(quotedText(literal), "ml.") {
			metrics = append(metrics, quotedText(literal))
		}
	})
	if err != nil {
		return nil, err
	}
	err = inspectAll(root, "receiver/*/internal/metadata/generated_metrics.go", func(node ast.Node) {
		if call, ok := node.(*ast.CallExpr); ok && method(call) == "SetName" && len(call.Args) == 1 && quotedText(call.Args[0]) != "" {
			metrics = append(metrics, quotedText(call.Args[0]))
		}
	})
	metrics = slices.DeleteFunc(metrics, func(name string) bool {
		first, _, _ := strings.Cut(name, ".")
		return !strings.Contains(name, ":") && !slices.Contains([]string{"ml", "hw", "nvidia", "nccl", "infiniband", "pcie", "host"}, first) ||
			strings.HasPrefix(name, "hw.network.") // which other readers of hardware write
	})
	slices.Sort(metrics)
	return slices.Compact(metrics), err
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
