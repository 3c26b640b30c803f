package pythoncall

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// identifier is the form of a name in Python.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// withoutContent keeps of a call what it calls, and of its arguments the form and the
// statistics of tensors. What is not part of a call is left out.
func withoutContent(w *redact.Withholder, at, key string, call any) any {
	of := &tensors{storages: make(map[string]string)}
	name := redact.Texts(func(text string) bool { return text == "" || content.TypeName(text) != "" })
	return redact.Members(map[string]redact.Rule{
		"args":                  redact.Each(of.argument),
		"kwargs":                of.keywords,
		"library":               name,
		"python_module":         name,
		"function":              name,
		"call_type":             name,
		"protocol_version":      numberOrSwitch,
		"min_supported_version": numberOrSwitch,
		"idempotent":            numberOrSwitch,
	}, nil)(w, at, key, call)
}

func numberOrSwitch(_ *redact.Withholder, _, _ string, v any) any {
	switch v.(type) {
	case jsontree.Number, bool:
		return v
	}
	return nil
}

// tensors are those of a call. Some have their memory in common, which gets a number.
type tensors struct{ storages map[string]string }

func (c *tensors) keywords(w *redact.Withholder, at, key string, v any) any {
	members, _ := v.(jsontree.Object)
	if slices.ContainsFunc(members, func(m jsontree.Member) bool { return !identifier.MatchString(m.Key) }) {
		return w.Withhold(at, v)
	}
	return redact.Members(nil, c.argument)(w, at, key, v)
}

// argument keeps tensors without their data, and what holds nothing but
// tensors.
func (c *tensors) argument(w *redact.Withholder, at, key string, v any) any {
	switch v := v.(type) {
	case jsontree.Array:
		if len(v) > 0 && !slices.ContainsFunc(v, func(e any) bool { return !isTensor(e) }) {
			return redact.Each(c.argument)(w, at, key, v)
		}
	case jsontree.Object:
		if isBatch(v) {
			return redact.Members(nil, c.argument)(w, at, key, v)
		}
		if form, ok := c.withoutData(v); ok {
			return form
		}
	}
	return w.Withhold(at, v)
}

func isTensor(v any) bool {
	o, _ := v.(jsontree.Object)
	kind := o.Text("__type__")
	return kind == "tensor" || kind == "ndarray"
}

// inputs are the names by which models take what a batch consists of. Other
// keys of a dictionary may be a person's name.
var inputs = content.Words(`
		input_ids inputs_embeds attention_mask token_type_ids position_ids labels decoder_input_ids decoder_attention_mask
		pixel_values pixel_mask input_features input_values past_key_values image_grid_thw cache_position
		input inputs output outputs target targets label x y z image images mask masks features audio video text_ids
		weight weights bias logits loss hidden_states query key value q k v mean std`)

// isBatch reports whether an object is a dictionary of tensors under the names that models
// give them.
func isBatch(o jsontree.Object) bool {
	return len(o) > 0 && !slices.ContainsFunc(o, func(m jsontree.Member) bool { return !isTensor(m.Value) || !inputs[m.Key] })
}

var (
	dtype  = regexp.MustCompile(`^(?:torch\.)?(?:bfloat|float|u?int|complex|bool)[0-9]{0,3}(?:_e[0-9]m[0-9](?:fn|fnuz)?)?$`)
	device = regexp.MustCompile(`^(?:cpu|cuda|mps|xpu|hip)(?::[0-9]{1,3})?$`)
)

// withoutData keeps a tensor's form and statistics. One that is described in words
// of its own is refused.
func (c *tensors) withoutData(o jsontree.Object) (jsontree.Object, bool) {
	if !isTensor(o) {
		return nil, false
	}
	out := jsontree.Object{}
	for _, m := range o {
		value := m.Value
		text, isText := value.(string)
		ok := true
		switch m.Key {
		case "__type__":
		case "__schema__", "storage_offset":
			_, ok = value.(jsontree.Number)
		case "framework":
			ok = text == "torch" || text == "numpy"
		case "dtype":
			ok = isText && dtype.MatchString(text)
		case "device":
			ok = isText && device.MatchString(text)
		case "shape", "stride":
			ok = allNumbers(value)
		case "requires_grad":
			_, ok = value.(bool)
		case "storage":
			if ok = isText; ok {
				value = c.storage(text)
			}
		case "data":
			value = nil
		case "stats":
			value = statistics(value)
		default:
			continue
		}
		if !ok && m.Value != nil {
			return nil, false
		}
		out = append(out, jsontree.Member{Key: m.Key, Value: value})
	}
	return out, true
}

// storage names the memory that tensors share by a number.
func (c *tensors) storage(name string) string {
	if _, ok := c.storages[name]; !ok {
		c.storages[name] = "s" + strconv.Itoa(len(c.storages))
	}
	return c.storages[name]
}

func allNumbers(v any) bool {
	list, ok := v.(jsontree.Array)
	for _, e := range list {
		if _, number := e.(jsontree.Number); !number {
			return false
		}
	}
	return ok
}

// statistics keeps the numbers among them.
func statistics(v any) any {
	o, ok := v.(jsontree.Object)
	if !ok {
		return nil
	}
	out := jsontree.Object{}
	for _, m := range o {
		switch m.Key {
		case "min", "max", "mean", "std", "nan", "inf":
			if _, number := m.Value.(jsontree.Number); number {
				out = append(out, m)
			}
		}
	}
	return out
}
