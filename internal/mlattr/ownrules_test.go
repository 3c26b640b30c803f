package mlattr_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// ownRules are the subjects that spanfact and gpupoint have rules about. A component that
// reads one has a rule of its own, unless it is listed with what it does instead.
var ownRules = map[string]map[string]string{
	"status": {
		"processor/reprogenprocessor/internal/snapshot/snapshot.go": "shows it",
		"processor/mlguardprocessor/internal/identity/traces.go":    "hashes it with the labels",
		"connector/mlmetricsconnector/internal/spans/durations.go":  "is a label of every span",
		"processor/reprogenprocessor/internal/detect/records.go":    "makes a span of a record",
		"connector/mllinesconnector/internal/training/spans.go":     "writes it",
	},
	"exception": {
		"processor/reprogenprocessor/internal/attr/attr.go":         "names what else a reproduction reads of one",
		"processor/reprogenprocessor/internal/detect/error.go":      "reads the stack trace of the one that is found here",
		"processor/reprogenprocessor/internal/detect/records.go":    "makes a span of a record",
		"processor/reprogenprocessor/internal/redact/attributes.go": "says what is no content",
		"connector/mllinesconnector/internal/training/spans.go":     "writes it",
		"exporter/mlviewexporter/internal/intake/details.go":        "shows it",
	},
	"end of a loader": {
		"processor/mlenrichprocessor/traces.go": "writes it",
	},
	"request that counts": {
		"processor/mlenrichprocessor/traces.go":                   "writes it",
		"processor/mlenrichprocessor/internal/correlate/usage.go": "decides it for several spans",
		"processor/mlenrichprocessor/internal/correlate/span.go":  "writes it",
	},
	"number of a step": {},
	"points of a GPU": {
		"processor/mlguardprocessor/internal/trust/trust.go": "says whose readings are believed",
		"exporter/mlviewexporter/internal/intake/metrics.go": "reads the labels of streams of any metric",
	},
}

// The subjects of names of other packages, and of texts.
var (
	subjectOfName = map[string]string{
		"StatusCodeError": "status", "ExceptionEvent": "exception", "ExceptionType": "exception",
		"EpochEnd": "end of a loader", "StepsPerEpoch": "number of a step",
		"HardwareType": "points of a GPU", "HardwareTypeGPU": "points of a GPU", "GPUTaskGeneral": "points of a GPU",
		"GPUPowerLimitEnforced": "points of a GPU",
		"UsageCounted":          "request that counts", "RequestCounted": "request that counts", "ErrorCounted": "request that counts",
	}
	subjectOfText = map[string]string{
		mlattr.HardwareType: "points of a GPU", mlattr.GPUTask: "points of a GPU", mlattr.GPUPowerLimitType: "points of a GPU",
		mlattr.EpochEnd: "end of a loader", mlattr.UsageCounted: "request that counts",
		mlattr.RequestCounted: "request that counts", mlattr.ErrorCounted: "request that counts",
	}
)

// TestNoComponentHasARuleOfItsOwn: what failed, by which exception, which span is a
// request, which number is that of a step and which points are of a GPU is decided once.
func TestNoComponentHasARuleOfItsOwn(t *testing.T) {
	files, used := 0, make(map[string]bool)
	for _, folder := range []string{"connector", "exporter", "extension", "processor", "receiver", "internal/shared"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(entry.Name(), "generated_") {
				return err
			}
			files++
			name := filepath.ToSlash(strings.TrimPrefix(filepath.Clean(path), filepath.Join("..", "..")+string(filepath.Separator)))
			for at, subject := range subjectsIn(t, path, nil) {
				if ownRules[subject][name] == "" {
					t.Errorf("%s reads the %s: ask spanfact or gpupoint", at, subject)
				}
				used[subject+name] = true
			}
			return nil
		}))
	}
	assert.Greater(t, files, 100, "the components were not found")
	for subject, files := range ownRules {
		for name := range files {
			assert.True(t, used[subject+name], "%s reads no %s any more: remove it from the list", name, subject)
		}
	}
}

func TestSubjectsInAFile(t *testing.T) {
	const head = "package p\nimport \"go.opentelemetry.io/collector/pdata/ptrace\"\n"
	for name, tt := range map[string]struct{ source, want string }{
		"nothing":               {head + `var _ = spanfact.ExceptionType(s)`, ""},
		"a comment":             {head + `// StopIteration, ml.epoch_end`, ""},
		"a status":              {head + `var _ = s.Status().Code() == 2`, "status"},
		"a status by parts":     {head + `func f() { status := s.Status(); code := status.Code(); _ = code }`, "status"},
		"a method's value":      {head + `var code = s.Status().Code`, "status"},
		"another status":        {"package p\nfunc f() { _ = status.Convert(err).Code() }", ""},
		"another field":         {head + `var _ = mlattr.Calls().Code`, ""},
		"a code":                {head + `var _ = ptrace.StatusCodeError`, "status"},
		"an exception":          {head + `var _ = mlattr.ExceptionEvent`, "exception"},
		"of another alias":      {head + `var _ = vocabulary.ExceptionType`, "exception"},
		"a text":                {head + `const c = "exception"`, "exception"},
		"a key":                 {head + "const c = `exception.type`", "exception"},
		"a word of a text":      {head + `const c = "an exception of the rule"`, ""},
		"a class":               {head + `const c = "builtins.StopIteration"`, "end of a loader"},
		"an asynchronous class": {head + `const c = "StopAsyncIteration"`, "end of a loader"},
		"a mark":                {head + `const c = "ml.epoch_end"`, "end of a loader"},
		"a GPU":                 {head + `var _ = v.Str() != mlattr.HardwareTypeGPU`, "points of a GPU"},
		"a trait":               {head + `var _ = known.Has(mlattr.StepsPerEpoch)`, "number of a step"},
		"a request":             {head + `var _ = mlattr.RequestCounted`, "request that counts"},
		"a request's slot":      {head + `var _ = vocabulary.SlotRequestCounted`, "request that counts"},
		"a request's key":       {head + `const c = "ml.usage.counted"`, "request that counts"},
	} {
		t.Run(name, func(t *testing.T) {
			found := ""
			for _, subject := range subjectsIn(t, "p.go", tt.source) {
				found = subject
			}
			assert.Equal(t, tt.want, found)
		})
	}
}

// subjectsIn returns what a file reads that there are rules about, by where.
func subjectsIn(t *testing.T, path string, source any) map[string]string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	require.NoError(t, err)
	ofSpans := false
	for _, spec := range file.Imports {
		ofSpans = ofSpans || spec.Path.Value == strconv.Quote("go.opentelemetry.io/collector/pdata/ptrace")
	}
	found := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		subject := ""
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && (of.Name == "spanfact" || of.Name == "gpupoint") {
				return false
			}
			subject = subjectOfName[strings.TrimPrefix(n.Sel.Name, "Slot")]
			if n.Sel.Name == "Code" && ofSpans && mayBeStatus(n.X) {
				subject = "status"
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, err := strconv.Unquote(n.Value)
				require.NoError(t, err)
				subject = subjectOfText[text]
				switch {
				case strings.Contains(text, "StopIteration") || strings.Contains(text, "StopAsyncIteration"):
					subject = "end of a loader"
				case text == mlattr.ExceptionEvent || strings.HasPrefix(text, mlattr.ExceptionEvent+"."):
					subject = "exception"
				}
			}
		}
		if subject != "" {
			found[set.Position(n.Pos()).String()] = subject
		}
		return true
	})
	return found
}

// mayBeStatus reports whether an expression is the status of a span or a variable, which
// may be one.
func mayBeStatus(of ast.Expr) bool {
	call, ok := of.(*ast.CallExpr)
	if !ok {
		return true
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Status"
}
