package mlattr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
)

func TestText(t *testing.T) {
	tests := map[string]struct {
		set   func(pcommon.Value)
		limit int
		want  string
		cut   bool
	}{
		"nothing":    {set: func(pcommon.Value) {}, limit: 10},
		"text":       {set: func(v pcommon.Value) { v.SetStr("é<é") }, limit: 5, want: "é<é"},
		"long text":  {set: func(v pcommon.Value) { v.SetStr("éé") }, limit: 3, want: "é", cut: true},
		"number":     {set: func(v pcommon.Value) { v.SetDouble(1.5) }, limit: 10, want: "1.5"},
		"bytes":      {set: func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte{1, 2, 3}) }, limit: 10, want: "AQID"},
		"long bytes": {set: func(v pcommon.Value) { v.SetEmptyBytes().FromRaw(make([]byte, 900)) }, limit: 5, want: "AAAAA", cut: true},
		"array":      {set: func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetStr("<") }, limit: 10, want: `["<"]`},
		"map":        {set: func(v pcommon.Value) { v.SetEmptyMap().PutInt("k", 1) }, limit: 10, want: `{"k":1}`},
		"64 levels": {set: func(v pcommon.Value) { otlpnest.Value(v, 64) }, limit: 1000,
			want: strings.Repeat(`[{"k":`, 32) + `"x"` + strings.Repeat("}]", 32)},
		"65 levels": {set: func(v pcommon.Value) { otlpnest.Value(v, 65) }, limit: 1000,
			want: "[cut: nested deeper than 64 levels or longer than 1000 bytes]", cut: true},
		"a million levels": {set: func(v pcommon.Value) { otlpnest.Value(v, 1_000_000) }, limit: 1000,
			want: "[cut: nested deeper than 64 levels or longer than 1000 bytes]", cut: true},
		"escapes": {set: func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetStr(strings.Repeat("\x00", 90)) }, limit: 100,
			want: "[cut: nested deeper than 64 levels or longer than 100 bytes]", cut: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := pcommon.NewValueEmpty()
			test.set(v)
			text, whole := Text(v, test.limit)
			assert.Equal(t, test.want, text)
			assert.Equal(t, !test.cut, whole)

			to := pcommon.NewValueEmpty()
			Copy(v, to, test.limit)
			copied, _ := Text(to, test.limit)
			assert.Equal(t, test.want, copied)
		})
	}
}
