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
	for _, name := range mlattr.Frameworks() {
		version := ""
		switch v.Type() {
		case pcommon.ValueTypeMap:
			version = attr.Text(v.Map(), name)
		case pcommon.ValueTypeStr:
			version = versionIn(v.Str(), name)
		}
		if version != "" && len(version) <= 64 {
			versions = append(versions, name+" "+strings.Clone(version))
		}
	}
	return versions
}

func versionIn(text, name string) string {
	const between = " \"':="
	for rest := text; ; {
		before, after, ok := strings.Cut(rest, name)
		if !ok {
			return ""
		}
		rest = after
		if before != "" && !strings.ContainsAny(before[len(before)-1:], " \"',{\n\t") {
			continue
		}
		value := strings.TrimLeft(after, between)
		if value == after {
			continue // torchvision is not torch
		}
		end := strings.IndexAny(value, " \"',;}\n\r\t")
		if end < 0 {
			end = len(value)
		}
		if end > 0 && value[0] >= '0' && value[0] <= '9' {
			return value[:end]
		}
	}
}
