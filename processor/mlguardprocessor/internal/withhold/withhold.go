// Package withhold exports text by the allow-list of internal/content: text that is not
// known to be a name, an id or a number is replaced by its length, and on metrics by a
// keyed hash.
package withhold

import (
	"context"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Filter applies one Config. It is safe for concurrent use.
type Filter struct {
	keys    *content.Keys
	names   *content.Names
	known   knownNames
	hashKey []byte
}

// New returns a Filter.
func New(cfg *Config) *Filter {
	f := &Filter{keys: content.NewKeys(cfg.Keep, cfg.Remove), names: content.NewNames(cfg.Names), known: knownNames{seed: maphash.MakeSeed()}, hashKey: []byte(cfg.HashKey)}
	if len(f.hashKey) == 0 {
		f.hashKey = processKey()
	}
	return f
}

// Traces changes td in place. It returns the number of texts, keys and other values that
// were replaced.
func (f *Filter) Traces(td ptrace.Traces) (replaced int64) {
	w := walker{Filter: f}
	for _, rs := range td.ResourceSpans().All() {
		w.resource(rs.Resource(), rs)
		for _, ss := range rs.ScopeSpans().All() {
			w.scope(ss.Scope(), ss)
			for _, span := range ss.Spans().All() {
				w.span(span)
			}
		}
	}
	return w.replaced
}

// Metrics changes md in place, as Traces does.
func (f *Filter) Metrics(md pmetric.Metrics) (replaced int64) {
	w := walker{Filter: f, hashed: true}
	for _, rm := range md.ResourceMetrics().All() {
		w.resource(rm.Resource(), rm)
		for _, sm := range rm.ScopeMetrics().All() {
			w.scope(sm.Scope(), sm)
			for _, metric := range sm.Metrics().All() {
				w.metric(metric)
			}
		}
	}
	return w.replaced
}

// Logs changes ld in place, as Traces does.
func (f *Filter) Logs(ctx context.Context, ld plog.Logs) (replaced int64) {
	w := walker{Filter: f, concluded: mlattr.IsConcluded(ctx)}
	for _, rl := range ld.ResourceLogs().All() {
		w.resource(rl.Resource(), rl)
		for _, sl := range rl.ScopeLogs().All() {
			w.scope(sl.Scope(), sl)
			for _, record := range sl.LogRecords().All() {
				w.record(record)
			}
		}
	}
	return w.replaced
}

// Config is the section content of ml_guard's configuration.
type Config struct {
	// Keep lists attribute keys whose text is exported, except secrets, in
	// addition to the allow-list. A key that ends in "*" matches all keys with
	// that prefix. "body" stands for the bodies of log records and
	// "status.message" for the descriptions of span statuses. The default is
	// none.
	Keep []string `mapstructure:"keep"`

	// Remove lists attribute keys whose values are never exported, whatever
	// their type. It takes precedence over the allow-list and over the forms of
	// ids and numbers. A key that ends in "*" matches all keys with that
	// prefix. The default is none.
	Remove []string `mapstructure:"remove"`

	// Names lists names of spans, span events, log events and scopes that are
	// exported, in addition to the known ones. A name that ends in "*" matches
	// all names with that prefix. The default is none.
	Names []string `mapstructure:"names"`

	// HashKey is the key of the hashes that replace text on metrics, which keep
	// series distinct. If it is empty, the default, each process generates a
	// random key, so that a restart changes these labels. Use 32 random bytes
	// from a secret store.
	HashKey configopaque.String `mapstructure:"hash_key"`
}

// Validate returns an error that names the first invalid entry.
func (c *Config) Validate() error {
	for _, list := range []struct {
		name    string
		entries []string
	}{{"keep", c.Keep}, {"remove", c.Remove}, {"names", c.Names}} {
		for i, entry := range list.entries {
			if start, _ := strings.CutSuffix(entry, "*"); start == "" || strings.Contains(start, "*") {
				return fmt.Errorf("%s[%d] is %q: it must be a name or a prefix with one * at its end", list.name, i, entry)
			}
		}
	}
	for i, entry := range c.Remove {
		if slices.Contains(c.Keep, entry) {
			return fmt.Errorf("remove[%d] is %q, which keep lists too: remove it from one of the lists", i, entry)
		}
	}
	return nil
}

// walker walks one batch.
type walker struct {
	*Filter
	// hashed reports whether texts become hashes instead of lengths, concluded whether
	// ml_metrics of this collector has written the batch, conclusion whether the attribute
	// has what it says of a problem.
	hashed, concluded, conclusion bool
	// points is true on metric points, owners on those of GPU workloads.
	points, owners bool
	replaced       int64
}

// maxNumbers is the longest list of numbers that is kept under an unlisted key:
// a tensor's shape. A longer list is an embedding, or the tokens of a text.
const maxNumbers = 8

// maxTries is how many words of a name are searched for in the attributes.
const maxTries = 8

// maxName is the length in bytes above which a name is replaced unread.
const maxName = 255

// saying are the attributes with what ml_metrics says of a problem.
var saying = map[string]bool{mlattr.ProblemEvidence: true, mlattr.ProblemNext: true}

// attributes replaces values of a map, and keys that are made of data.
func (w *walker) attributes(attributes pcommon.Map) { w.entries(attributes, content.Unlisted) }

// entries is attributes for a map that is the value of a key with a form.
func (w *walker) entries(attributes pcommon.Map, within content.Form) {
	damaged := false
	for key, value := range attributes.All() {
		f, stays := w.form(key, within)
		damaged = damaged || !stays
		w.conclusion = w.concluded && saying[key]
		w.value(key, value, f)
	}
	w.conclusion = false
	if damaged {
		w.rename(attributes, within)
	}
}

// rename replaces the keys that do not stay by hashes, so that distinct keys stay distinct.
func (w *walker) rename(attributes pcommon.Map, within content.Form) {
	renamed := pcommon.NewMap()
	renamed.EnsureCapacity(attributes.Len())
	for key, value := range attributes.All() {
		if _, stays := w.form(key, within); !stays {
			w.replaced++
			key = "key_" + hash(w.hashKey, key)
		}
		value.MoveTo(renamed.PutEmpty(key))
	}
	renamed.MoveTo(attributes)
}

// form returns the form of the text of a key, and whether the key stays as it is. Within a
// value whose text may be anything, that of each key may.
func (w *walker) form(key string, within content.Form) (f content.Form, stays bool) {
	if within == content.Anything {
		return within, w.known.isClean(key)
	}
	if f = w.keys.Exact[key]; f != content.Unlisted {
		return f, true
	}
	f = w.keys.Other(key)
	return f, (f == content.Anything || content.IsKey(key)) && w.known.isClean(key)
}

func (w *walker) value(key string, value pcommon.Value, f content.Form) {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		if text := value.Str(); f == content.Anything {
			w.redact(key, value)
		} else if !w.keeps(key, text, f) {
			value.SetStr(w.text(text))
		}
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeMap:
		if f == content.Removed || f == content.Unlisted && w.known.of(key).private {
			w.set(value, gone)
		} else if value.Type() == pcommon.ValueTypeMap {
			w.entries(value.Map(), f)
		}
	case pcommon.ValueTypeBytes:
		if f != content.Anything {
			w.set(value, countOf("bytes", value.Bytes().Len(), ""))
		}
	case pcommon.ValueTypeSlice:
		w.list(key, value, f)
	}
}

// redact removes the secrets of a text that may be anything.
func (w *walker) redact(key string, value pcommon.Value) {
	if content.IsSecret(key, value.Str()) {
		w.set(value, content.Mark("key"))
	} else if text, rules := content.Redact(value.Str()); len(rules) > 0 {
		w.set(value, text)
	}
}

func (w *walker) list(key string, value pcommon.Value, f content.Form) {
	items := value.Slice()
	if f == content.Unlisted && items.Len() > maxNumbers {
		w.set(value, countOf("list", items.Len(), " values"))
		return
	}
	for _, item := range items.All() {
		w.value(key, item, f)
	}
}

// keeps reports whether a text stays as it is.
func (w *walker) keeps(key, text string, f content.Form) bool {
	if text == "" {
		return true
	}
	if f > content.Removed && (f != content.Point || w.points) && f.Fits(text) || w.conclusion && content.IsConclusion(text) {
		_, rules := content.Redact(text)
		return len(rules) == 0
	}
	if f == content.Removed {
		return isReplacement(text) || w.owners && key == "user.id" && isOwner(text)
	}
	return content.KeepsUnlisted(key, text) || isReplacement(text)
}

// text returns the replacement of a text.
func (w *walker) text(text string) string {
	w.replaced++
	if w.hashed {
		return "[text: #" + hash(w.hashKey, text) + "]"
	}
	return countOf("text", len(text), " bytes")
}

func (w *walker) set(value pcommon.Value, text string) {
	w.replaced++
	value.SetStr(text)
}

func (w *walker) resource(resource pcommon.Resource, of withSchema) {
	w.schema(of)
	w.attributes(resource.Attributes())
	// They repeat keys and have a schema of their own; nothing here reads them.
	entity.ResourceEntityRefs(resource).RemoveIf(func(entity.EntityRef) bool {
		w.replaced++
		return true
	})
}

func (w *walker) scope(scope pcommon.InstrumentationScope, of withSchema) {
	w.schema(of)
	if name := scope.Name(); name != "" && (!content.IsModule(name) || !w.known.isClean(name)) && !w.isName(name) && !isReplacement(name) {
		scope.SetName(w.text(name))
	}
	if version := scope.Version(); version != "" && (!content.IsVersion(version) || !w.known.isClean(strings.TrimPrefix(version, "v"))) && !isReplacement(version) {
		scope.SetVersion(w.text(version))
	}
	w.attributes(scope.Attributes())
}

// withSchema is what of a resource or scope has its schema.
type withSchema interface {
	SchemaUrl() string
	SetSchemaUrl(url string)
}

// schema clears a URL that does not identify a version of the semantic
// conventions.
func (w *walker) schema(of withSchema) {
	if url := of.SchemaUrl(); url != "" && !content.IsSchema(url) {
		w.replaced++
		of.SetSchemaUrl("")
	}
}

// isName reports whether a name is on a list and has no secret, which what the user's
// list says of its beginning does not exclude.
func (w *walker) isName(name string) bool { return w.names.Has(name) && w.known.isClean(name) }

// name sets the name of a span or an event. Words that are neither known nor
// repeated from a kept attribute are replaced, and a name with a secret as a whole.
func (w *walker) name(name string, attributes pcommon.Map, set func(string)) {
	if name == "" || (w.names.Has(name) || content.IsQualified(name)) && w.known.isClean(name) {
		return
	}
	if len(name) <= maxName {
		if said := w.words(name, attributes); w.known.isClean(said) {
			set(said)
			return
		}
	}
	set(w.text(name))
}

// words returns a name without the words that are neither known nor repeated.
func (w *walker) words(name string, attributes pcommon.Map) string {
	var space [2 * maxName]byte
	said, unknown, tries := space[:0], 0, maxTries
	for at := 0; at < len(name); at++ { // the space
		length := w.knownWord(name[at:])
		if length == 0 && tries > 0 {
			tries--
			length = repeated(name[at:], attributes)
		}
		if length == 0 {
			at = wordEnd(name, at)
			continue
		}
		if unknown < at {
			said = append(append(said, w.text(name[unknown:at-1])...), ' ')
		}
		said = append(said, name[at:min(at+length+1, len(name))]...)
		at += length
		unknown = at + 1
	}
	if unknown < len(name) {
		said = append(said, w.text(name[unknown:])...)
	}
	if string(said) == name {
		return name
	}
	return string(said)
}

// knownWord returns the length of the leading part of a text, up to the end of a
// word, that is on a list or is a replacement.
func (w *walker) knownWord(text string) int {
	end := wordEnd(text, 0)
	if end > 0 && w.isName(text[:end]) {
		return end
	}
	if length := replacement(text); length > 0 && (length == len(text) || text[length] == ' ') {
		return length
	}
	return 0
}

func wordEnd(text string, at int) int {
	if length := strings.IndexByte(text[at:], ' '); length >= 0 {
		return at + length
	}
	return len(text)
}

// repeated returns how many bytes of text, up to the end of a word, repeat the
// text of a kept attribute.
func repeated(text string, attributes pcommon.Map) int {
	longest := 0
	for _, value := range attributes.All() {
		if value.Type() != pcommon.ValueTypeStr {
			continue
		}
		said := value.Str()
		if len(said) > longest && strings.HasPrefix(text, said) && (len(text) == len(said) || text[len(said)] == ' ') {
			longest = len(said)
		}
	}
	return longest
}

// isOwner reports whether a text is a numeric user id of the machine.
func isOwner(text string) bool {
	return text != "" && len(text) <= 10 && strings.Trim(text, "0123456789") == ""
}

func (w *walker) span(span ptrace.Span) {
	w.attributes(span.Attributes())
	w.name(span.Name(), span.Attributes(), span.SetName)
	w.status(span.Status())
	w.state(span.TraceState())
	for _, event := range span.Events().All() {
		w.attributes(event.Attributes())
		w.name(event.Name(), event.Attributes(), event.SetName)
	}
	for _, link := range span.Links().All() {
		w.attributes(link.Attributes())
		w.state(link.TraceState())
	}
}

func (w *walker) status(status ptrace.Status) {
	message := status.Message()
	if message == "" || isReplacement(message) {
		return
	}
	if w.keys.Exact["status.message"] != content.Anything {
		status.SetMessage(w.text(message))
	} else if text, rules := content.Redact(message); len(rules) > 0 {
		w.replaced++
		status.SetMessage(text)
	}
}

// state keeps OpenTelemetry's sampling state and removes the other members of a
// trace state, which are opaque.
func (w *walker) state(state pcommon.TraceState) {
	raw := state.AsRaw()
	if raw == "" || sampling.MatchString(raw) {
		return
	}
	kept := ""
	for member := range strings.SplitSeq(raw, ",") {
		if member = strings.TrimSpace(member); sampling.MatchString(member) && kept == "" {
			kept = member
			continue
		}
		w.replaced++
	}
	state.FromRaw(kept)
}

// sampling is OpenTelemetry's member of a trace state if it has only the threshold and the
// random value of its sampling.
var sampling = regexp.MustCompile(`^ot=(?:th|rv|p|r):[0-9a-fA-F]{1,16}(?:;(?:th|rv|p|r):[0-9a-fA-F]{1,16})*$`)

func (w *walker) record(record plog.LogRecord) {
	w.attributes(record.Attributes())
	w.name(record.EventName(), record.Attributes(), record.SetEventName)
	if text := record.SeverityText(); text != "" && !content.IsSeverity(text) && !isReplacement(text) {
		record.SetSeverityText(w.text(text))
	}
	body, event := record.Body(), record.EventName()
	// The text of a record may be one of this project's, or what ml_metrics says in that of a
	// change or of a problem: a few words about names that are labels anyway. Anybody can give
	// a record such a name.
	says := w.concluded && (event == mlattr.EventChange || event == mlattr.Problem)
	if body.Type() != pcommon.ValueTypeStr || !w.names.HasText(body.Str()) && (!says || !content.Label.Fits(body.Str())) {
		w.value("body", body, w.keys.Exact["body"])
	}
}

func (w *walker) metric(metric pmetric.Metric) {
	if name := metric.Name(); name != "" && (!content.IsMetric(name) || !w.known.isClean(name)) {
		metric.SetName("metric_" + hash(w.hashKey, name))
		w.replaced++
	}
	if text := metric.Description(); text != "" && !w.names.HasText(text) {
		metric.SetDescription("")
		w.replaced++
	}
	if !content.IsUnit(metric.Unit()) || !w.known.isClean(metric.Unit()) {
		metric.SetUnit("")
		w.replaced++
	}
	w.attributes(metric.Metadata())
	w.points, w.owners = true, strings.HasPrefix(metric.Name(), mlattr.GPUWorkloadPrefix)
	for point := range mlattr.Points(metric) {
		w.attributes(point.Attributes)
		for _, exemplar := range point.Exemplars.All() {
			w.attributes(exemplar.FilteredAttributes())
		}
	}
	w.points, w.owners = false, false
}
