package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reader makes OTLP's JSON of lines.
type reader struct {
	signal
	mark  string // of what is left out
	base  time.Time
	lists map[string]*[]any // where the next line of a word goes
}

// read reads a text, but for what has a mark.
func read(s signal, text, mark string) ([]byte, error) {
	r := reader{signal: s, mark: mark, lists: map[string]*[]any{"resource": {}}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[:1] == mark {
			continue
		}
		line = strings.TrimSpace(strings.TrimPrefix(line, "+"))
		var err error
		if r.base.IsZero() {
			err = r.head(line)
		} else {
			err = r.line(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return json.Marshal(object{s.resources: r.lists["resource"]})
}

func (r *reader) head(line string) (err error) {
	name, at, _ := strings.Cut(line, " ")
	if name != r.name {
		return fmt.Errorf("the signal is %q, not %q", name, r.name)
	}
	r.base = time.Unix(0, 0)
	if at != "" {
		r.base, err = time.Parse(time.RFC3339, at)
	}
	return err
}

// below adds an empty list to a message, for the lines of a word.
func (r *reader) below(o object, field, word string) {
	added := &[]any{}
	o[field], r.lists[word] = added, added
}

func (r *reader) line(line string) error {
	l := scanner{rest: line, mark: r.mark}
	head, err := l.word("{ ")
	if err != nil {
		return err
	}
	to := head
	if l.next("{") {
		to = "point"
	}
	if r.lists[to] == nil {
		return fmt.Errorf("no place for %q", head)
	}
	flat, err := r.fields(&l)
	if err != nil {
		return err
	}
	o := object{}
	for field, v := range flat {
		in := o
		parts := strings.Split(field, ".")
		if (head == "resource" || head == "scope") && field != "schemaUrl" {
			parts = append([]string{head}, parts...)
		}
		for _, part := range parts[:len(parts)-1] {
			if in[part] == nil {
				in[part] = object{}
			}
			in = in[part].(object)
		}
		in[parts[len(parts)-1]] = v
	}
	*r.lists[to] = append(*r.lists[to], o)
	switch to {
	case "resource":
		r.below(o, r.scopes, "scope")
	case "scope":
		r.below(o, r.items, r.word)
	case "span":
		r.below(o, nested["event"], "event")
		r.below(o, nested["link"], "link")
	case "point":
		r.below(o, nested["exemplar"], "exemplar")
	case "metric":
		kind, _ := o["type"].(string)
		delete(o, "type")
		if kind == "" {
			return nil
		}
		data := object{}
		for _, field := range []string{"aggregationTemporality", "isMonotonic"} {
			if v, ok := o[field]; ok {
				data[field] = v
				delete(o, field)
			}
		}
		r.below(data, "dataPoints", "point")
		o[kind] = data
	}
	return nil
}

// value matches what begins a point's value, which has no name.
var value = regexp.MustCompile(`^(@|-?[0-9])`)

func (r *reader) fields(l *scanner) (object, error) {
	o := object{}
	for l.skip(" "); l.rest != ""; l.skip(" ") {
		if l.next("{") {
			var err error
			if o["attributes"], err = l.attributes(); err != nil {
				return nil, err
			}
			continue
		}
		if value.MatchString(l.rest) {
			v, err := l.anyValue()
			if err != nil {
				return nil, err
			}
			switch {
			case v["intValue"] != nil:
				o["asInt"] = v["intValue"]
			default:
				o["asDouble"] = v["doubleValue"]
			}
			continue
		}
		left := l.marked()
		field, err := l.word("=")
		if err != nil {
			return nil, err
		}
		if !l.skip("=") {
			return nil, fmt.Errorf("%q has no value", field)
		}
		for _, names := range short {
			if names[1] == field {
				field = names[0]
			}
		}
		v, err := r.value(field, l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		if !left {
			o[field] = v
		}
	}
	return o, nil
}

func (r *reader) value(field string, l *scanner) (any, error) {
	switch {
	case field == "body":
		return l.anyValue()
	case isAttributes(field):
		return l.attributes()
	case idBytes[field] > 0:
		text, err := l.word(" ")
		from, to, cut := strings.Cut(text, "..")
		if cut {
			text = from + strings.Repeat("0", max(0, 2*idBytes[field]-len(from)-len(to))) + to
		}
		return text, err
	case isTime(field):
		text, err := l.word(" ")
		if err != nil || strings.Trim(text, "0123456789") == "" {
			return text, err
		}
		offset, err := time.ParseDuration(text)
		return strconv.FormatInt(r.base.Add(offset).UnixNano(), 10), err
	case field == "type" || enums[field] != nil && strings.Trim(l.rest[:1], "-0123456789") != "":
		text, err := l.word(" ")
		if field == "type" {
			return text, err
		}
		n := slices.Index(enums[field], text)
		if n < 0 {
			return nil, fmt.Errorf("%q is none of %q", text, enums[field])
		}
		return n, err
	}
	return l.json()
}

// scanner takes what a line has, from its beginning.
type scanner struct {
	rest, mark string
}

// marked takes a mark, and reports whether it is of what is left out.
func (l *scanner) marked() bool {
	before := l.rest
	return (l.skip("+") || l.skip("-")) && before[:1] == l.mark
}

func (l *scanner) next(prefix string) bool { return strings.HasPrefix(l.rest, prefix) }

// skip reports whether the rest began with a prefix, and takes it.
func (l *scanner) skip(prefix string) bool {
	before := len(l.rest)
	l.rest = strings.TrimPrefix(l.rest, prefix)
	return len(l.rest) < before
}

// word takes a name, which ends before one of the letters of end.
func (l *scanner) word(end string) (string, error) {
	if l.next(`"`) {
		v, err := l.json()
		name, _ := v.(string)
		return name, err
	}
	n := strings.IndexAny(l.rest, end)
	if n < 0 {
		n = len(l.rest)
	}
	name := l.rest[:n]
	l.rest = l.rest[n:]
	if name == "" {
		return "", errors.New("a name is missing")
	}
	return name, nil
}

func (l *scanner) json() (v any, err error) {
	d := json.NewDecoder(strings.NewReader(l.rest))
	d.UseNumber()
	if err = d.Decode(&v); err != nil {
		return nil, err
	}
	l.rest = l.rest[d.InputOffset():]
	return v, nil
}

// list takes what is between two letters and separated by commas.
func (l *scanner) list(open, end string, one func() error) error {
	if !l.skip(open) {
		return fmt.Errorf("%q is missing before %q", open, l.rest)
	}
	for more := false; !l.skip(end); more = true {
		if more && !l.skip(", ") {
			return fmt.Errorf("%q is missing before %q", end, l.rest)
		}
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}

func (l *scanner) attributes() ([]any, error) {
	all := []any{}
	return all, l.list("{", "}", func() error {
		left := l.marked()
		key, err := l.word("=")
		if err != nil {
			return err
		}
		if !l.skip("=") {
			return fmt.Errorf("%q has no value", key)
		}
		v, err := l.anyValue()
		if !left {
			all = append(all, object{"key": key, "value": v})
		}
		return err
	})
}

func (l *scanner) anyValue() (object, error) {
	switch {
	case l.skip("@"):
		v, err := l.json()
		o, _ := v.(object)
		return o, err
	case l.next("["):
		all := []any{}
		err := l.list("[", "]", func() error {
			v, err := l.anyValue()
			all = append(all, v)
			return err
		})
		return object{"arrayValue": object{"values": all}}, err
	case l.next("{"):
		all, err := l.attributes()
		return object{"kvlistValue": object{"values": all}}, err
	}
	v, err := l.json()
	switch v := v.(type) {
	case string:
		return object{"stringValue": v}, err
	case bool:
		return object{"boolValue": v}, err
	case json.Number:
		if strings.ContainsAny(string(v), ".e") {
			return object{"doubleValue": v}, err
		}
		return object{"intValue": string(v)}, err
	}
	return nil, errors.Join(err, fmt.Errorf("%q is no value", l.rest))
}
