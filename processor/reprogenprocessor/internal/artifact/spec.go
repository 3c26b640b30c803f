package artifact

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// schema is the version of SPEC, of trace.json and of group.json.
const schema = jsontree.Number("1")

// specOf returns what the script knows. All of it but the operator's list of modules is
// redacted.
func specOf(f *failure.Failure, k *kind.Kind, modules []string, redactor *redact.Redactor) jsontree.Object {
	first := len(redactor.Paths)
	var call, remote any
	lossy := false
	if f.Call != nil {
		if f.Call.Remote == nil {
			call = redactor.Tree("payload", f.Call.Tree)
		}
		lossy, remote = f.Call.Lossy, jsontree.From(f.Call.Remote)
	}
	called, _ := call.(jsontree.Object)
	spec := jsontree.Of(
		"schema", schema,
		"kind", string(f.Kind),
		"reason", string(f.Reason),
		"generator", "otelcol-ml repro_gen",
		"fingerprint", f.Fingerprint,
		"expect", redactor.Tree("expect", expectOf(f)),
		"source", redactor.Tree("source", sourceOf(f)),
		"env", redactor.Tree("env", collect(f, isEnvironment)),
		"training", redactor.Tree("training", collect(f, isTraining)),
		"gates", jsontree.Of("allowed_modules", jsontree.Texts(modules), "narrow", narrowOf(called, modules)),
		"lossy", lossy,
		"payload", call,
	)
	known := jsontree.OfKnown(
		"payload_ref", redactor.Tree("payload_ref", remote),
		"seed", seedOf(k, spec.Object("training")),
		"content", f.Content,
		"gpus", redactor.Tree("gpus", jsontree.Texts(f.GPUs)),
	)
	redacted := jsontree.Array(mlattr.Mapped(redactor.Paths[first:], func(p redact.Path) any { return jsontree.Of("path", p.Where, "rule", p.Rule) }))
	return append(append(spec, known...), jsontree.Member{Key: "redacted", Value: redacted})
}

// narrowOf returns the packages of the call and of the entries that an entry
// for the package opens. To a script, every other package is wide.
func narrowOf(call jsontree.Object, entries []string) jsontree.Array {
	narrow := jsontree.Array{}
	called := []string{cmp.Or(call.Text("python_module"), call.Text("library"))}
	for _, entry := range append(called, entries...) {
		top, _, _ := strings.Cut(entry, ".")
		top, _, _ = strings.Cut(top, ":")
		if top != "" && isNarrow(top) && !slices.Contains(narrow, any(top)) {
			narrow = append(narrow, top)
		}
	}
	return narrow
}

// seedOf returns the recorded seed, where the kind and PyTorch take it, or nil.
func seedOf(k *kind.Kind, training jsontree.Object) any {
	seed, _ := training.Lookup("repro.seed")
	number, ok := seed.(jsontree.Number)
	_, noInt := strconv.ParseInt(string(number), 10, 64)
	_, noUint := strconv.ParseUint(string(number), 10, 64)
	if !ok || !k.TakesSeed || noInt != nil && noUint != nil {
		return nil
	}
	return number
}

func expectOf(f *failure.Failure) jsontree.Object {
	frames := append([]failure.Frame{}, f.Error.Cause.Frames...)
	expect := jsontree.Of("type", f.Error.Type, "message", f.Error.Message, "frames", jsontree.From(frames))
	return append(expect, jsontree.OfKnown("trigger", f.Trigger)...)
}

func sourceOf(f *failure.Failure) jsontree.Object {
	return jsontree.Of(
		"service", f.Service,
		"span", f.Span.Name,
		"trace_id", f.Span.TraceID,
		"span_id", f.Span.SpanID,
		"time", timeText(f.Span.End),
		"ancestors", jsontree.Array(mlattr.Mapped(f.Ancestors, func(a failure.Span) any { return a.Name })),
	)
}

// collect gathers attributes from the span, its ancestors and its resource;
// the nearest wins.
func collect(f *failure.Failure, wanted func(key string) bool) jsontree.Object {
	all := slices.Clone(f.Span.Attributes)
	for _, a := range f.Ancestors {
		all = append(all, a.Attributes...)
	}
	out := jsontree.Object{}
	for _, m := range append(all, f.Resource...) {
		if _, known := out.Lookup(m.Key); !known && wanted(m.Key) {
			out = append(out, m)
		}
	}
	return out
}

func isEnvironment(key string) bool {
	return strings.HasPrefix(key, "process.runtime.") || strings.HasPrefix(key, "container.image.") ||
		strings.HasPrefix(key, "repro.env.") || strings.HasPrefix(key, "vcs.ref.head.") ||
		key == "process.command_args" || key == "process.command_line" || key == "process.working_directory" || key == "host.name" ||
		key == "host.arch" || key == "os.type" || key == "repro.packages" || strings.HasPrefix(key, "repro.gpu.")
}

// ofTraining lists what clients say of a training in this processor's names.
var ofTraining = map[string]bool{
	"repro.epoch": true, "repro.step": true, "repro.batch.ids": true, "repro.checkpoint.uri": true,
	"repro.seed": true, "repro.rank": true, "repro.world_size": true, "gen_ai.request.model": true,
}

func isTraining(key string) bool { return strings.HasPrefix(key, "ml.") || ofTraining[key] }

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

//go:embed wide.txt
var wideText string

// wide lists the packages that hold shells, loaders, writers and evaluators
// under plain names, or functions that call what a configuration names. An
// entry of allowed_modules for such a package permits nothing; "pkg.mod:name"
// permits one callable.
var wide = func() map[string]bool {
	names := content.Words(wideText)
	for _, name := range vocabulary.Packages() {
		names[name] = true
	}
	return names
}()

// isNarrow reports whether an entry for a top-level package permits what the
// package defines. A package with an accelerator in C, such as _pickle, is as
// wide as that.
func isNarrow(top string) bool { return !wide[top] && !wide["_"+top] && !wide["_py"+top] }
