package content

import (
	"strings"
	"testing"
)

// Each benchmark handles one text; SetBytes gives the rate.
func BenchmarkRedact(b *testing.B) {
	sentence := "the request for claude-3-opus failed: shapes (2x3) and (4x5) cannot be multiplied, step=17 loss=0.31; "
	for name, text := range map[string]string{
		"id":        "4d5a9f3c-0000-1111-2222-333344445555",
		"sentence":  sentence,
		"4KiB":      strings.Repeat(sentence, 40),
		"json":      `{"model": "m", "messages": [{"role": "user", "content": "why"}], "max_tokens": 5, "temperature": 0.1}`,
		"secret":    "connect with password=hunter2 failed",
		"names":     strings.Repeat("pass=token=", 400),
		"quotes":    strings.Repeat(`name="pass='token="`, 200),
		"hints":     strings.Repeat("://?&. hook -us12 pat Q~ eyJ curl mysql Basic ", 90),
		"begun":     strings.Repeat("sk-sk-hf_ghp_AKIA", 240),
		"marks":     strings.Repeat("token=${", 500),
		"encodable": strings.Repeat("QUFB", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Redact(text)
			}
		})
	}
}

func BenchmarkKey(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		IsSecretKey("gen_ai.request.model")
	}
}
