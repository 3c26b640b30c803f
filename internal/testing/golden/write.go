package golden

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signal has the names of OTLP's JSON for a signal, and the word of its lines.
type signal struct{ name, resources, scopes, items, word string }

// object is a message of OTLP as JSON. A key of it is the field's name; where
// a line shows the fields of a message within it, the key is the path.
type object = map[string]any

// nested has the lists that lines of their own show, by those lines' words.
var nested = map[string]string{"event": "events", "link": "links", "exemplar": "exemplars"}

// lists has all lists of messages.
var lists = []string{
	"resourceSpans", "scopeSpans", "spans", "events", "links",
	"resourceMetrics", "scopeMetrics", "metrics", "dataPoints", "exemplars",
	"resourceLogs", "scopeLogs", "logRecords",
}

// types has the kinds of metrics. A metric's line has the fields of its data.
var types = []string{"gauge", "sum", "histogram", "exponentialHistogram", "summary"}

// short has what lines call a field whose name is long, in the lines' order;
// the fields that are not here follow.
var short = [][2]string{
	{"traceId", "trace"},
	{"spanId", "id"},
	{"parentSpanId", "parent"},
	{"name", "name"},
	{"type", "type"},
	{"aggregationTemporality", "temporality"},
	{"isMonotonic", "monotonic"},
	{"kind", "kind"},
	{"startTimeUnixNano", "start"},
	{"endTimeUnixNano", "end"},
	{"timeUnixNano", "time"},
	{"observedTimeUnixNano", "observed"},
	{"status.code", "status"},
	{"status.message", "message"},
	{"bucketCounts", "buckets"},
	{"explicitBounds", "bounds"},
}

// enums has the words of the fields that are numbers for words.
var enums = map[string][]string{
	"aggregationTemporality": {"unspecified", "delta", "cumulative"},
	"kind":                   {"unspecified", "internal", "server", "client", "producer", "consumer"},
	"status.code":            {"unset", "ok", "error"},
}

// idBytes has the fields that are identifiers, and how long these are.
var idBytes = map[string]int{"traceId": 16, "spanId": 8, "parentSpanId": 8}

func isTime(field string) bool { return strings.HasSuffix(field, "UnixNano") }

func isAttributes(field string) bool { return field == "attributes" || field == "filteredAttributes" }

func decode(raw []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	request := object{}
	return request, d.Decode(&request)
}

// take removes a list of messages from a message.
func take(o object, field string) []object {
	values, _ := o[field].([]any)
	delete(o, field)
	all := make([]object, len(values))
	for i, v := range values {
		all[i] = v.(object)
	}
	return all
}

type writer struct {
	base    time.Time
	metrics bool
	// keepsOrder is for what is read again: some components look at the order of
	// points and attributes.
	keepsOrder bool
}

func write(s signal, request object, keepsOrder bool) string {
	w := writer{base: time.Unix(0, 0), metrics: s == metrics.signal, keepsOrder: keepsOrder}
	first := earliest(request, math.MaxInt64)
	head := s.name
	if first != math.MaxInt64 {
		w.base = time.Unix(0, first).UTC().Truncate(time.Second)
		head += " " + w.base.Format(time.RFC3339)
	}
	return head + "\n" + w.blocks(take(request, s.resources), func(resource object) string {
		scopes := take(resource, s.scopes)
		return w.line("resource", resource) + w.blocks(scopes, func(scope object) string {
			items := take(scope, s.items)
			return w.line("scope", scope) + w.blocks(items, func(item object) string {
				if s != metrics.signal {
					return w.line(s.word, item)
				}
				return w.metric(item)
			})
		})
	})
}

// change is what a field was and what it is, nil where it has no value.
type change struct{ before, after any }

// changed returns a message in which what differs from another one is marked:
// fields are changes, attributes and what a list has behind what it had have a
// "mark".
func changed(before, after object) (object, error) {
	marked := object{}
	fields := maps.Clone(before)
	maps.Copy(fields, after)
	for field := range fields {
		var err error
		was, now := before[field], after[field]
		wasList, _ := was.([]any)
		nowList, _ := now.([]any)
		wasObject, _ := was.(object)
		nowObject, isObject := now.(object)
		switch {
		case reflect.DeepEqual(was, now):
			marked[field] = now
		case isAttributes(field):
			marked[field] = changedAttributes(wasList, nowList)
		case isObject && field != "body":
			marked[field], err = changed(wasObject, nowObject)
		case field == "asInt" || field == "asDouble":
			err = fmt.Errorf("the value %v became %v", was, now)
		case slices.Contains(lists, field):
			if len(wasList) > len(nowList) {
				return nil, fmt.Errorf("%d %s became %d", len(wasList), field, len(nowList))
			}
			all := slices.Clone(nowList)
			for i := range all {
				if i >= len(wasList) {
					all[i].(object)["mark"] = "+"
				} else if all[i], err = changed(wasList[i].(object), nowList[i].(object)); err != nil {
					return nil, err
				}
			}
			marked[field] = all
		default:
			marked[field] = change{was, now}
		}
		if err != nil {
			return nil, err
		}
	}
	return marked, nil
}

// changedAttributes returns the attributes that were there in their order, each
// with what replaces it, and behind them what else is added, by key.
func changedAttributes(before, after []any) []any {
	added := slices.Clone(after)
	taken := func(from func(any) bool) []any {
		i := slices.IndexFunc(added, from)
		if i < 0 {
			return nil
		}
		one := added[i]
		added = slices.Delete(added, i, i+1)
		return []any{one}
	}
	key := func(v any) string { name, _ := v.(object)["key"].(string); return name }
	marked := func(one any, mark string) object {
		o := maps.Clone(one.(object))
		o["mark"] = mark
		return o
	}
	kept := make([][]any, len(before))
	for i, one := range before {
		kept[i] = taken(func(other any) bool { return reflect.DeepEqual(one, other) })
	}
	var all []any
	for i, one := range before {
		if kept[i] != nil {
			all = append(all, one)
			continue
		}
		all = append(all, marked(one, "-"))
		for _, other := range taken(func(other any) bool { return key(one) == key(other) }) {
			all = append(all, marked(other, "+"))
		}
	}
	slices.SortStableFunc(added, func(x, y any) int { return cmp.Compare(key(x), key(y)) })
	for _, one := range added {
		all = append(all, marked(one, "+"))
	}
	return all
}

// removeTimes removes the times of a message.
func removeTimes(value any) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			removeTimes(one)
		}
	case object:
		for field, one := range v {
			if isTime(field) {
				delete(v, field)
			} else {
				removeTimes(one)
			}
		}
	}
}

// earliest returns the least time of a message, and before if there is none.
func earliest(value any, before int64) int64 {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			before = earliest(one, before)
		}
	case object:
		for field, one := range v {
			if c, ok := one.(change); ok {
				before = min(earliest(object{field: c.before}, before), earliest(object{field: c.after}, before))
			} else if text, ok := one.(string); ok && isTime(field) {
				if nanos, err := strconv.ParseInt(text, 10, 64); err == nil {
					before = min(before, nanos)
				}
			} else if !isAttributes(field) && field != "body" {
				before = earliest(one, before)
			}
		}
	}
	return before
}

// blocks returns the lines of messages, what is added last.
func (w *writer) blocks(of []object, block func(object) string) string {
	kept, added := []string{}, []string{}
	for _, o := range of {
		if o["mark"] == nil {
			kept = append(kept, block(o))
			continue
		}
		delete(o, "mark")
		before := w.keepsOrder
		w.keepsOrder = false
		lines := strings.TrimSuffix(block(o), "\n")
		w.keepsOrder = before
		added = append(added, "+"+strings.ReplaceAll(lines, "\n", "\n+")+"\n")
	}
	if w.metrics {
		slices.Sort(added)
		if !w.keepsOrder {
			slices.Sort(kept)
		}
	}
	return strings.Join(kept, "") + strings.Join(added, "")
}

func (w *writer) metric(m object) string {
	delete(m, "description")
	points := []object{}
	for _, kind := range types {
		if data, ok := m[kind].(object); ok {
			points = take(data, "dataPoints")
			delete(m, kind)
			maps.Copy(m, data)
			m["type"] = kind
		}
	}
	name, _ := m["name"].(string)
	return w.line("metric", m) + w.blocks(points, func(point object) string {
		head := word(name) + "{" + w.attributes(point["attributes"]) + "}"
		delete(point, "attributes")
		return w.line(head, point)
	})
}

// line returns the line of a message, and the lines of those nested in it.
func (w *writer) line(head string, o object) string {
	var below strings.Builder
	for _, word := range slices.Sorted(maps.Keys(nested)) {
		below.WriteString(w.blocks(take(o, nested[word]), func(one object) string { return w.line("  "+word, one) }))
	}
	fields, shown := flatten(o), []string{head}
	show := func(field string, text func(v any) string) {
		if v, ok := fields[field]; ok {
			shown = append(shown, text(v))
			delete(fields, field)
		}
	}
	show("asInt", func(v any) string { return w.anyValue(object{"intValue": v}) })
	show("asDouble", func(v any) string { return w.anyValue(object{"doubleValue": v}) })
	for _, names := range short {
		show(names[0], func(v any) string { return w.field(names[0], names[1], v) })
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if field != "attributes" {
			show(field, func(v any) string { return w.field(field, field, v) })
		}
	}
	show("attributes", func(v any) string { return "{" + w.attributes(v) + "}" })
	return strings.Join(shown, " ") + "\n" + below.String()
}

// flatten returns the fields of a message and those of the messages within it.
func flatten(o object) object {
	flat := object{}
	for field, v := range o {
		within, ok := v.(object)
		if !ok || field == "body" && len(within) > 0 {
			flat[field] = v
			continue
		}
		prefix := field + "."
		if field == "resource" || field == "scope" {
			prefix = ""
		}
		for inner, v := range flatten(within) {
			flat[prefix+inner] = v
		}
	}
	return flat
}

func (w *writer) field(field, name string, v any) string {
	c, ok := v.(change)
	if !ok {
		return name + "=" + w.value(field, v)
	}
	var sides []string
	if c.before != nil {
		sides = append(sides, "-"+w.field(field, name, c.before))
	}
	if c.after != nil {
		sides = append(sides, "+"+w.field(field, name, c.after))
	}
	return strings.Join(sides, " ")
}

func (w *writer) value(field string, v any) string {
	text, isText := v.(string)
	switch {
	case idBytes[field] > 0 && isText:
		return shortened(text)
	case isTime(field) && isText:
		nanos, err := strconv.ParseInt(text, 10, 64)
		if err != nil || nanos-w.base.UnixNano() < 0 {
			return text
		}
		return time.Duration(nanos - w.base.UnixNano()).String()
	case field == "body":
		return w.anyValue(v.(object))
	case isAttributes(field):
		return "{" + w.attributes(v) + "}"
	case enums[field] != nil:
		if n, err := strconv.Atoi(string(v.(json.Number))); err == nil && n < len(enums[field]) {
			return enums[field][n]
		}
	case field == "type":
		return text
	case strings.HasSuffix(strings.ToLower(strings.TrimSuffix(field, "s")), "count"):
		return strings.ReplaceAll(compact(v), `"`, "") // 64 bits are a string in JSON
	}
	return compact(v)
}

// shortened writes the longest run of at least four zeros as two dots.
func shortened(id string) string {
	from, length := 0, 3
	for i := range len(id) {
		if n := len(id[i:]) - len(strings.TrimLeft(id[i:], "0")); n > length {
			from, length = i, n
		}
	}
	if _, err := hex.DecodeString(id); err != nil || length == 3 {
		return id
	}
	return id[:from] + ".." + id[from+length:]
}

var bare = regexp.MustCompile(`^[\w./][\w./-]*$`)

// word returns a name as it is where that can be read back.
func word(name string) string {
	if bare.MatchString(name) {
		return name
	}
	return compact(name)
}

func (w *writer) attributes(v any) string {
	of := take(object{"": v}, "")
	part := func(o object, field string) string { text, _ := o[field].(string); return text }
	if !w.keepsOrder {
		slices.SortStableFunc(of, func(x, y object) int { return cmp.Compare(part(x, "key"), part(y, "key")) })
	}
	all := make([]string, len(of))
	for i, kv := range of {
		value, _ := kv["value"].(object)
		all[i] = part(kv, "mark") + word(part(kv, "key")) + "=" + w.anyValue(value)
	}
	return strings.Join(all, ", ")
}

// anyValue returns a value that shows its type. What has no form of its own is
// OTLP's JSON behind an @.
func (w *writer) anyValue(o object) string {
	for kind, v := range o {
		switch kind {
		case "stringValue", "boolValue":
			return compact(v)
		case "intValue":
			return v.(string)
		case "doubleValue":
			n, ok := v.(json.Number)
			switch {
			case !ok: // NaN and the infinities are strings.
			case strings.ContainsAny(string(n), ".e"):
				return string(n)
			default:
				return string(n) + ".0"
			}
		case "arrayValue":
			of := take(v.(object), "values")
			all := make([]string, len(of))
			for i, one := range of {
				all[i] = w.anyValue(one)
			}
			return "[" + strings.Join(all, ", ") + "]"
		case "kvlistValue":
			return "{" + w.attributes(v.(object)["values"]) + "}"
		}
	}
	return "@" + compact(o)
}

// compact returns JSON on one line.
func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // what came from JSON is JSON
	}
	return strings.TrimSpace(b.String())
}
