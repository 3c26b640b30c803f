package content

import (
	"strings"
	"testing"
)

// FuzzRedact: whatever stands around a secret, it does not get through, and
// redacting again finds nothing to do.
func FuzzRedact(f *testing.F) {
	f.Add("x", "y")
	f.Add(`{"a":"`, `"}`)
	f.Add("q=%20", " --token")
	f.Add(`pass="<pass='`, `name="value":[("token","`)
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "AKIA" + "IOSFODNN7EXAMPLE"
		got, rules := Redact(before + " " + secret + " " + after)
		if strings.Contains(got, secret) {
			t.Fatalf("%q is in %q", secret, got)
		}
		if len(rules) == 0 {
			t.Fatal("no rule is named")
		}
		if again, rules := Redact(got); len(rules) > 0 {
			t.Fatalf("%q becomes %q", got, again)
		}
	})
}

// FuzzKey: a name of any form is judged, and alike in any case of a word.
func FuzzKey(f *testing.F) {
	f.Add("X-Api-Key", "hunter2")
	f.Add("token1", "512")
	f.Add("ÄPasswordß", "${X}")
	f.Fuzz(func(t *testing.T, name, value string) {
		if IsSecret(name, value) && !IsSecretKey(name) {
			t.Fatalf("%q is a secret under %q, which is no name of one", value, name)
		}
	})
}
