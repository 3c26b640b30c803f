package content

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOwnNamesAreKept: no name that this project knows looks like a secret, and every
// key has a form.
func TestOwnNamesAreKept(t *testing.T) {
	all := slices.Collect(maps.Keys(linesOf(listedWords)))
	for line := range strings.Lines(listedKeys) {
		key, form, _ := strings.Cut(strings.TrimSpace(line), " ")
		assert.Contains(t, formNames, form, key)
		all = append(all, key)
	}
	for _, name := range all {
		_, rules := Redact(name)
		assert.Empty(t, rules, name)
	}
}

// TestPrivateNumbers: a number is withheld under the name of a credential or of
// something personal, and not where a token is a part of a text.
func TestPrivateNumbers(t *testing.T) {
	for key, want := range map[string]bool{
		"token": true, "new.token": true, "session.next.Token": true, "model.token": true, "acme.APIkey": true,
		"acme.pin": true, "cardNumber": true, "phone_number": true, "acme.userId": true, "db.password": true, "api_key": true,
		"passWord": true, "acme.userName": true, "my_userName": true, "acme.passPhrase": true, "birthDay": true, "acme_APIkey": true,
		"time_to_first_token": false, "gen_ai.server.time_per_output_token": false, "prompt_tokens": false, "acme.count": false, "": false,
	} {
		assert.Equal(t, want, IsPrivate(key), key)
	}
}
