package content

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/otelcol-ml/otelcol-ml/internal/secret"
)

// walker walks one batch.
type walker struct {
	*Filter
	// hashed reports whether texts become hashes instead of lengths, concluded whether
	// ml_metrics of this collector has written the batch.
	hashed, concluded bool
	// points is true on metric points, owners on those of GPU workloads.
	points, owners bool
	replaced       int64
}

// maxNumbers is the longest list of numbers that is kept under an unlisted key:
// a tensor's shape. A longer list is an embedding, or the tokens of a text.
const maxNumbers = 8

// maxTries is how many words of a name are searched for in the attributes.
const maxTries = 8

// attributes replaces values of a map, and keys that are made of data.
func (w *walker) attributes(attributes pcommon.Map) {
	damaged := false
	for key, value := range attributes.All() {
		f := w.keys.exact[key]
		if f == unlisted {
			f = w.keys.other(key)
			damaged = damaged || !w.keepsKey(key, f)
		}
		w.value(key, value, f)
	}
	if damaged {
		w.rename(attributes, func(key string) bool {
			return w.keys.exact[key] != unlisted || w.keepsKey(key, w.keys.other(key))
		})
	}
}

// rename replaces the keys that do not stay by hashes, so that distinct keys stay distinct.
func (w *walker) rename(attributes pcommon.Map, stays func(key string) bool) {
	renamed := pcommon.NewMap()
	renamed.EnsureCapacity(attributes.Len())
	for key, value := range attributes.All() {
		if !stays(key) {
			w.replaced++
			key = "key_" + hash(w.hashKey, key)
		}
		value.MoveTo(renamed.PutEmpty(key))
	}
	renamed.MoveTo(attributes)
}

// keepsKey reports whether a key that is not listed stays as it is, given its form.
func (w *walker) keepsKey(key string, f form) bool {
	return (f == anything || isKey(key)) && w.clean.has(key)
}

func (w *walker) value(key string, value pcommon.Value, f form) {
	if f == anything {
		w.allowed(key, value)
		return
	}
	switch value.Type() {
	case pcommon.ValueTypeStr:
		if text := value.Str(); !w.keeps(key, text, f) {
			value.SetStr(w.text(text))
		}
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
		if f == removed || f == unlisted && namesCredential(key) {
			w.set(value, gone)
		}
	case pcommon.ValueTypeBytes:
		w.set(value, countOf("bytes", value.Bytes().Len(), ""))
	case pcommon.ValueTypeMap:
		if f == removed || f == unlisted && namesCredential(key) {
			w.set(value, gone)
			return
		}
		w.attributes(value.Map())
	case pcommon.ValueTypeSlice:
		w.list(key, value, f)
	default:
	}
}

// allowed redacts the secrets in a value whose text may be anything.
func (w *walker) allowed(key string, value pcommon.Value) {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		if secret.Value(key, value.Str()) {
			w.set(value, secret.Mark("key"))
		} else if text, rules := secret.Redact(value.Str()); len(rules) > 0 {
			w.set(value, text)
		}
	case pcommon.ValueTypeMap:
		damaged := false
		for member, v := range value.Map().All() {
			w.allowed(member, v)
			damaged = damaged || !w.clean.has(member)
		}
		if damaged {
			w.rename(value.Map(), w.clean.has)
		}
	case pcommon.ValueTypeSlice:
		for _, item := range value.Slice().All() {
			w.allowed(key, item)
		}
	default:
	}
}

func (w *walker) list(key string, value pcommon.Value, f form) {
	items := value.Slice()
	if f == unlisted && items.Len() > maxNumbers {
		w.set(value, countOf("list", items.Len(), " values"))
		return
	}
	for _, item := range items.All() {
		w.value(key, item, f)
	}
}

// keeps reports whether a text stays as it is.
func (w *walker) keeps(key, text string, f form) bool {
	if text == "" {
		return true
	}
	if f > removed && (f != point || w.points) && f.fits(text) {
		_, rules := secret.Redact(text)
		return len(rules) == 0
	}
	if f == removed {
		return isReplacement(text) || w.owners && key == "user.id" && isOwner(text)
	}
	if isNumber(text) || namesID(key) && isID(text) {
		return !namesCredential(key)
	}
	return isReplacement(text)
}

// text returns the replacement of a text.
func (w *walker) text(text string) string {
	w.replaced++
	if w.hashed {
		return "[text: #" + hash(w.hashKey, text) + "]"
	}
	return lengthOf(text)
}

func (w *walker) set(value pcommon.Value, text string) {
	w.replaced++
	value.SetStr(text)
}

func (w *walker) resource(resource pcommon.Resource) {
	w.attributes(resource.Attributes())
	// They repeat keys and have a schema of their own; nothing here reads them.
	entity.ResourceEntityRefs(resource).RemoveIf(func(entity.EntityRef) bool {
		w.replaced++
		return true
	})
}

func (w *walker) scope(scope pcommon.InstrumentationScope) {
	if name := scope.Name(); name != "" && (!isModule(name) || !w.clean.has(name)) && !w.isName(name) && !isReplacement(name) {
		scope.SetName(w.text(name))
	}
	if version := scope.Version(); version != "" && (!isVersion(version) || !w.clean.has(strings.TrimPrefix(version, "v"))) && !isReplacement(version) {
		scope.SetVersion(w.text(version))
	}
	w.attributes(scope.Attributes())
}

// schema clears a URL that does not identify a version of the semantic
// conventions.
func (w *walker) schema(of interface {
	SchemaUrl() string
	SetSchemaUrl(url string)
}) {
	if url := of.SchemaUrl(); url != "" && !isSchema(url) {
		w.replaced++
		of.SetSchemaUrl("")
	}
}

// isName reports whether a name is on a list and has no secret, which what the user's
// list says of its beginning does not exclude.
func (w *walker) isName(name string) bool { return w.names.has(name) && w.clean.has(name) }

// name returns the name of a span or an event. Words that are neither known nor
// repeated from a kept attribute are replaced, and a name with a secret as a whole.
func (w *walker) name(name string, attributes pcommon.Map) string {
	if name == "" || (w.names.has(name) || isQualified(name)) && w.clean.has(name) {
		return name
	}
	if len(name) > maxName {
		return w.text(name)
	}
	if said := w.words(name, attributes); w.clean.has(said) {
		return said
	}
	return w.text(name)
}

// words returns a name without the words that are neither known nor repeated.
func (w *walker) words(name string, attributes pcommon.Map) string {
	var said []byte
	unknown, copied, tries := -1, 0, maxTries
	for at := 0; at < len(name); {
		length := w.known(name[at:])
		if length == 0 && tries > 0 {
			tries--
			length = repeated(name[at:], attributes)
		}
		if length == 0 {
			if unknown < 0 {
				unknown = at
			}
			at = wordEnd(name, at)
		} else {
			if unknown >= 0 {
				said = append(append(said, name[copied:unknown]...), w.text(name[unknown:at-1])...)
				copied, unknown = at-1, -1
			}
			at += length
		}
		at++ // the space
	}
	if unknown >= 0 {
		said = append(append(said, name[copied:unknown]...), w.text(name[unknown:])...)
		copied = len(name)
	}
	if said == nil {
		return name
	}
	return string(append(said, name[copied:]...))
}

// known returns the length of the leading part of a text, up to the end of a
// word, that is on a list or is a replacement.
func (w *walker) known(text string) int {
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
	for at < len(text) && text[at] != ' ' {
		at++
	}
	return at
}
