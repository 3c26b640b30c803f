package reproductions

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShellQuote(t *testing.T) {
	for argument, want := range map[string]string{
		"":                   "''",
		"/a/b-c_1.py":        "/a/b-c_1.py",
		"/a b":               "'/a b'",
		"it's":               `'it'\''s'`,
		"$(reboot)":          "'$(reboot)'",
		"~/x":                "'~/x'",
		"a\x1b[2J'\\":        `$'a\033[2J\'\\'`,
		"\u202e1":            `$'\342\200\2561'`,
		"\x001\xff":          `$'\0001\377'`,
		"name\nwith newline": `$'name\012with newline'`,
	} {
		assert.Equal(t, want, shellQuote(argument))
	}
}

// FuzzShellQuote lets a shell read what was quoted.
func FuzzShellQuote(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("there is no bash to read the words")
	}
	for _, seed := range []string{"", "a b", "it's", "\x1b'\\\n1", "$(id)", "\u202e", "\xff0", "-n", "*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, argument string) {
		if strings.ContainsRune(argument, 0) || len(argument) > 1000 {
			t.Skip("no path has this")
		}
		quoted := shellQuote(argument)
		for _, r := range quoted {
			require.True(t, r >= 0x20 && r <= 0x7e)
		}
		output, err := exec.Command(bash, "-c", "printf %s/ "+quoted).Output()
		require.NoError(t, err)
		assert.Equal(t, argument+"/", string(output))
	})
}
