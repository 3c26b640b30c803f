package content

import (
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Mark stands where content was withheld.
const Mark = "<REDACTED:content>"

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	dotted     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_<][A-Za-z0-9_>]*){0,31}$`)
	camelCase  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)
	longNumber = regexp.MustCompile(`[0-9]{5}`)
	httpStatus = regexp.MustCompile(`^[1-5][0-9]{2}$`)
	// word is the form of ids, versions and names: no space, no quote. pip
	// writes name==version.
	word     = regexp.MustCompile(`^[A-Za-z0-9_.:/@+<>-]{1,128}(?:==[A-Za-z0-9_.+!-]{1,64})?$`)
	nameWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:/<>-]{0,79}$`)
	path     = regexp.MustCompile(`^[A-Za-z0-9_./<>-]{1,200}$`)
	keyForm  = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,64}$`)
)

// IsIdentifier reports whether a text has the form of a name in Python.
func IsIdentifier(text string) bool { return identifier.MatchString(text) }

// TypeName returns the name of a class, or "" if the text is none.
func TypeName(text string) string {
	if len(text) <= 200 && dotted.MatchString(text) {
		return text
	}
	return ""
}

// ErrorType returns the name of an error's class, or "" if the text has not the
// form of one: a capital letter and no longer number in its last part, or words
// that errors are made of.
func ErrorType(text string) string {
	if TypeName(text) == "" || longNumber.MatchString(text) {
		return ""
	}
	name := strings.TrimLeft(text[strings.LastIndexByte(text, '.')+1:], "_")
	if camelCase.MatchString(name) || vocabulary[strings.ToLower(name)] {
		return text
	}
	for word := range strings.SplitSeq(strings.ToLower(name), "_") {
		if !vocabulary[word] {
			return ""
		}
	}
	return text
}

// Word returns a text that has the form of an id, a version or a name, and
// Mark for any other but the empty one.
func Word(text string) string {
	if text == "" || word.MatchString(text) {
		return text
	}
	return Mark
}

// Path returns a text that has the form of a file's or a function's name.
func Path(text string) string {
	if path.MatchString(text) {
		return text
	}
	return Mark
}

// operations are the words that instrumentations put before the name of what
// is worked on.
var operations = func() map[string]bool {
	words := make(map[string]bool)
	for word := range strings.FieldsSeq(`GET HEAD POST PUT PATCH DELETE OPTIONS SELECT INSERT UPDATE CREATE MERGE UPSERT
		chat text_completion generate_content embeddings retrieval execute_tool invoke_agent create_agent invoke_workflow
		send receive process publish consume settle`) {
		words[word] = true
	}
	return words
}()

// SpanName returns the part of a span's name that is its operation: one word, or
// an operation and a name. Otherwise instrumentations put addresses and
// statements there.
func SpanName(name string) string {
	words := strings.Fields(name)
	switch {
	case len(words) == 0:
		return ""
	case strings.Contains(name, "://"):
		return Mark
	case len(words) == 1 && nameWord.MatchString(words[0]):
		return words[0]
	case !operations[words[0]]:
		return Mark
	case len(words) == 2 && nameWord.MatchString(words[1]):
		return words[0] + " " + words[1]
	}
	return words[0] + " " + Mark
}

// variantPart is a part of a variant's text: a tensor's form, a
// device's class, a framework's version.
var variantPart = regexp.MustCompile(`^(?:(?:torch\.)?(?:bfloat|float|u?int|complex|bool)[0-9a-z_]{0,12}\[[0-9., ]*\](?:@(?:cpu|cuda|mps|xpu))?|cpu|cuda|mps|xpu|` +
	`(?:` + strings.Join(mlattr.Frameworks(), "|") + `) [0-9][0-9A-Za-z.+]{0,20})$`)

// Variant returns the parts of a variant's text that have such a form.
func Variant(text string) string {
	var pieces []string
	depth, from := 0, 0
	for i := range len(text) + 1 {
		switch {
		case i == len(text) || text[i] == ',' && depth == 0:
			if piece := strings.TrimSpace(text[from:i]); variantPart.MatchString(piece) {
				pieces = append(pieces, piece)
			}
			from = i + 1
		case text[i] == '[':
			depth++
		case text[i] == ']':
			depth--
		}
	}
	return strings.Join(pieces, ", ")
}

// Attributes returns a copy in which only what describes has its value. Of the
// others the key stays, if it has the form of one.
func Attributes(in jsontree.Object) jsontree.Object {
	out := make(jsontree.Object, 0, len(in))
	for _, m := range in {
		if !keyForm.MatchString(m.Key) {
			continue
		}
		if !describes(m.Key) || !plain(m.Value) || namesError[m.Key] && !isErrorType(m.Value) {
			m.Value = marked(m.Value)
		}
		out = append(out, m)
	}
	return out
}

// namesError has the keys whose value is an error's class, a word of HTTP's or
// gRPC's for it, or what a program put there instead.
var namesError = setOf(append([]string{mlattr.ErrorType, mlattr.ExceptionType}, mlattr.Calls().ErrorType...))

func setOf(keys []string) map[string]bool {
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}

func isErrorType(v any) bool {
	text, ok := v.(string)
	return ok && (text == "" || text == "_OTHER" || httpStatus.MatchString(text) || ErrorType(text) != "")
}

// marked returns Mark for everything but nothing.
func marked(v any) any {
	if v == nil {
		return nil
	}
	return Mark
}

// plain reports whether a value is a number, a switch, a word, or a list or a
// map of these.
func plain(v any) bool {
	switch v := v.(type) {
	case jsontree.Array:
		return !slices.ContainsFunc(v, func(e any) bool { return !single(e) })
	case jsontree.Object:
		return !slices.ContainsFunc(v, func(m jsontree.Member) bool { return !keyForm.MatchString(m.Key) || !single(m.Value) })
	}
	return single(v)
}

func single(v any) bool {
	switch v := v.(type) {
	case nil, bool, jsontree.Number:
		return true
	case string:
		return v == "" || word.MatchString(v)
	}
	return false
}

// describes reports whether the value of an attribute is about where and how
// something ran, and not about its data.
func describes(key string) bool {
	if describing[key] {
		return true
	}
	for _, prefix := range describingPrefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

var describingPrefixes = []string{
	"ml.", "service.", "telemetry.sdk.", "process.runtime.", "container.image.", "k8s.", "cloud.", "hw.",
	"gen_ai.usage.", "repro.gpu.", "repro.artifact.",
}

var describing = setOf(append(strings.Fields(`
		process.pid host.name host.id host.arch os.type container.id vcs.ref.head.revision vcs.ref.head.name
		deployment.environment deployment.environment.name
		error.type exception.type exception.escaped
		code.function.name code.namespace code.function code.lineno code.line.number thread.id
		library python_module function call_type
		http.request.method http.response.status_code server.port network.protocol.name network.protocol.version
		rpc.system rpc.service rpc.method rpc.grpc.status_code db.system db.system.name db.operation.name messaging.system
		gen_ai.operation.name gen_ai.provider.name gen_ai.system gen_ai.request.model gen_ai.response.model
		gen_ai.request.temperature gen_ai.request.top_p gen_ai.request.max_tokens gen_ai.request.seed gen_ai.request.choice.count
		input.mime_type output.mime_type
		repro.schema repro.kind repro.seed repro.trigger repro.device repro.autocast repro.deterministic repro.rank
		repro.world_size repro.epoch repro.step repro.packages
		correlation_id
		epoch step rank global_rank local_rank world_size batch_size loss learning_rate`), mlattr.PlainKeys()...))
