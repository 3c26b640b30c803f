package pythoncall

import (
	"regexp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

var (
	// identifier is the form of a name in Python.
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	dtype      = regexp.MustCompile(`^(?:torch\.)?(?:bfloat|float|u?int|complex|bool)[0-9]{0,3}(?:_e[0-9]m[0-9](?:fn|fnuz)?)?$`)
	device     = regexp.MustCompile(`^(?:cpu|cuda|mps|xpu|hip)(?::[0-9]{1,3})?$`)
	// storage is the form of the names that repro_client gives to the memory of tensors.
	storage = regexp.MustCompile(`^s[0-9]{1,6}$`)

	name = redact.Texts(func(text string) bool { return text == "" || content.TypeName(text) != "" })
)

// withoutContent keeps of a call what it calls, and of its arguments the form and the
// statistics of tensors. What is not part of a call is left out.
var withoutContent = redact.Members(map[string]redact.Rule{
	"args": redact.Each(argument), "kwargs": keywords,
	"library": name, "python_module": name, "function": name, "call_type": name,
	"protocol_version": redact.Numbers, "min_supported_version": redact.Numbers, "idempotent": redact.Numbers,
}, nil)

func keywords(w *redact.Withholder, at, key string, v any) any {
	members, _ := v.(jsontree.Object)
	if slices.ContainsFunc(members, func(m jsontree.Member) bool { return !identifier.MatchString(m.Key) }) {
		return w.Withhold(at, v)
	}
	return redact.Members(nil, argument)(w, at, key, v)
}

// argument keeps tensors without their data, and what holds nothing but tensors: a list,
// or a dictionary under the names that models give them.
func argument(w *redact.Withholder, at, key string, v any) any {
	list, _ := v.(jsontree.Array)
	object, _ := v.(jsontree.Object)
	switch {
	case isTensor(v):
		return tensor(w, at, key, v)
	case len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool { return !isTensor(e) }):
		return redact.Each(tensor)(w, at, key, v)
	case len(object) > 0 && !slices.ContainsFunc(object, func(m jsontree.Member) bool { return !isTensor(m.Value) || !inputs[m.Key] }):
		return redact.Members(nil, tensor)(w, at, key, v)
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

// tensor keeps a tensor's form and statistics.
var tensor = redact.Members(map[string]redact.Rule{
	"__type__": name, "__schema__": redact.Numbers, "framework": redact.OneOf("torch", "numpy"),
	"dtype": redact.Texts(dtype.MatchString), "device": redact.Texts(device.MatchString), "requires_grad": redact.Numbers,
	"shape": redact.Each(redact.Numbers), "stride": redact.Each(redact.Numbers),
	"storage": redact.Texts(storage.MatchString), "storage_offset": redact.Numbers, "stats": statistics,
}, nil)

// statistics keeps the numbers among them.
func statistics(_ *redact.Withholder, _, _ string, v any) any {
	o, ok := v.(jsontree.Object)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o), func(m jsontree.Member) bool {
		_, number := m.Value.(jsontree.Number)
		return !number || !slices.Contains([]string{"min", "max", "mean", "std", "nan", "inf"}, m.Key)
	})
}
