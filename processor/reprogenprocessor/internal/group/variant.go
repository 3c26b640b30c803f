package group

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fingerprint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

const (
	attrDevice   = "repro.device"
	attrPackages = "repro.packages"
)

// VariantOf returns the variant of a failure. Shapes in a message look like its
// other numbers, so they count only with capture.
func VariantOf(f *failure.Failure, span, resource pcommon.Map, capture bool) failure.Variant {
	var form fingerprint.Form
	if capture {
		form.Message = f.Error.Message
	}
	if f.Call != nil {
		form.Call = f.Call.Tree
	}
	for _, m := range [...]pcommon.Map{span, resource} {
		if form.Device == "" {
			form.Device = attr.Text(m, attrDevice)
		}
		if v, ok := m.Get(attrPackages); ok && form.Framework == nil {
			form.Framework = versionsIn(v)
		}
	}
	var v failure.Variant
	v.ID, v.Text = fingerprint.Variant(form)
	if !capture {
		v.Text = redact.Variant(v.Text)
	}
	return v
}

// versionsIn reads the frameworks of a map of packages, or of a text with
// lines such as "torch==2.4.0" or members such as "torch": "2.4.0".
func versionsIn(v pcommon.Value) (versions []string) {
	found := make(map[string]string)
	switch v.Type() {
	case pcommon.ValueTypeMap:
		for _, name := range mlattr.Frameworks() {
			found[name] = attr.Text(v.Map(), name)
		}
	case pcommon.ValueTypeStr:
		last := ""
		for word := range strings.FieldsFuncSeq(v.Str(), func(r rune) bool { return strings.ContainsRune(" \"',:;={}\n\r\t", r) }) {
			if found[last] == "" && word[0] >= '0' && word[0] <= '9' {
				found[last] = word
			}
			last = word
		}
	}
	for _, name := range mlattr.Frameworks() {
		if version := found[name]; version != "" && len(version) <= 64 {
			versions = append(versions, name+" "+strings.Clone(version))
		}
	}
	return versions
}
