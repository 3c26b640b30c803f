package pythoncall

import (
	"regexp"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// withholder withholds the content of a call.
type withholder struct {
	redact.Withholder
	storages map[string]string
}

// identifier is the form of a name in Python.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// withoutContent returns a call without its content, and what was withheld.
// Tensors keep their form and their statistics.
func withoutContent(tree jsontree.Object) (jsontree.Object, []redact.Withheld) {
	w := &withholder{storages: make(map[string]string)}
	out := make(jsontree.Object, 0, len(tree))
	for _, m := range tree {
		if value, keep := w.member("payload."+m.Key, m); keep {
			out = append(out, jsontree.Member{Key: m.Key, Value: value})
		}
	}
	return out, w.Withheld
}

// member returns what is kept of a member of a call. What is not part of a call
// is left out.
func (w *withholder) member(at string, m jsontree.Member) (value any, keep bool) {
	switch m.Key {
	case "args":
		list, ok := m.Value.(jsontree.Array)
		if !ok {
			return nil, true
		}
		out := make(jsontree.Array, len(list))
		for i, v := range list {
			out[i] = w.argument(at+"["+strconv.Itoa(i)+"]", v)
		}
		return out, true
	case "kwargs":
		members, ok := m.Value.(jsontree.Object)
		if !ok {
			return nil, true
		}
		out := make(jsontree.Object, len(members))
		for i, k := range members {
			if !identifier.MatchString(k.Key) {
				return w.Withhold(at, m.Value), true
			}
			out[i] = jsontree.Member{Key: k.Key, Value: w.argument(at+"."+k.Key, k.Value)}
		}
		return out, true
	case "library", "python_module", "function", "call_type":
		if text, ok := m.Value.(string); ok && (text == "" || content.TypeName(text) != "") {
			return text, true
		}
		return w.Withhold(at, m.Value), true
	case "protocol_version", "min_supported_version", "idempotent":
		switch m.Value.(type) {
		case jsontree.Number, bool:
			return m.Value, true
		}
	}
	return nil, false
}

// argument keeps tensors without their data, and what holds nothing but
// tensors.
func (w *withholder) argument(at string, v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case jsontree.Array:
		if len(v) > 0 && allTensors(v) {
			out := make(jsontree.Array, len(v))
			for i, e := range v {
				out[i] = w.argument(at+"["+strconv.Itoa(i)+"]", e)
			}
			return out
		}
	case jsontree.Object:
		if isTensor(v) {
			if form, ok := w.tensor(v); ok {
				return form
			}
		} else if members, ok := batch(v); ok {
			out := make(jsontree.Object, len(members))
			for i, m := range members {
				out[i] = jsontree.Member{Key: m.Key, Value: w.argument(at+"."+m.Key, m.Value)}
			}
			return out
		}
	}
	return w.Withhold(at, v)
}

func isTensor(o jsontree.Object) bool {
	kind := o.Text("__type__")
	return kind == "tensor" || kind == "ndarray"
}

func allTensors(list jsontree.Array) bool {
	for _, e := range list {
		if o, ok := e.(jsontree.Object); !ok || !isTensor(o) {
			return false
		}
	}
	return true
}

// inputs are the names by which models take what a batch consists of. Other
// keys of a dictionary may be a person's name.
var inputs = content.Words(`
		input_ids inputs_embeds attention_mask token_type_ids position_ids labels decoder_input_ids decoder_attention_mask
		pixel_values pixel_mask input_features input_values past_key_values image_grid_thw cache_position
		input inputs output outputs target targets label x y z image images mask masks features audio video text_ids
		weight weights bias logits loss hidden_states query key value q k v mean std`)

// batch returns the members of a dictionary of tensors under the names that
// models give them.
func batch(o jsontree.Object) (jsontree.Object, bool) {
	for _, m := range o {
		if tensor, ok := m.Value.(jsontree.Object); !ok || !isTensor(tensor) || !inputs[m.Key] {
			return nil, false
		}
	}
	return o, len(o) > 0
}

var (
	dtype  = regexp.MustCompile(`^(?:torch\.)?(?:bfloat|float|u?int|complex|bool)[0-9]{0,3}(?:_e[0-9]m[0-9](?:fn|fnuz)?)?$`)
	device = regexp.MustCompile(`^(?:cpu|cuda|mps|xpu|hip)(?::[0-9]{1,3})?$`)
)

// tensor keeps a tensor's form and statistics. One that is described in words
// of its own is refused.
func (w *withholder) tensor(o jsontree.Object) (jsontree.Object, bool) {
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
				value = w.storage(text)
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
func (w *withholder) storage(name string) string {
	if _, ok := w.storages[name]; !ok {
		w.storages[name] = "s" + strconv.Itoa(len(w.storages))
	}
	return w.storages[name]
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
