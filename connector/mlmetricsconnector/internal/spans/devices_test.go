package spans

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestDevices(t *testing.T) {
	for text, want := range map[string]string{
		"cuda:0":              "cuda:0",
		"{:cuda, 0}":          "cuda:0",
		"{:cuda,11}":          "cuda:11",
		":mps":                "mps",
		"cpu":                 "cpu",
		"nil":                 "",
		"":                    "",
		"{:cuda}":             "",
		"{:cuda, 0} and more": "",
		"two words":           "",
	} {
		assert.Equal(t, want, device(pcommon.NewValueStr(text)), text)
	}
	assert.Equal(t, "3", device(pcommon.NewValueInt(3)))
	assert.LessOrEqual(t, len(device(pcommon.NewValueStr("{:"+strings.Repeat("x", 500)+", 0}"))), 128)
}

func TestAtoms(t *testing.T) {
	assert.True(t, isAtom("segfault"))
	assert.True(t, isAtom("high_crash_rate"))
	for _, text := range []string{"", "{:exit_status,137}", "Elixir.X", "137"} {
		assert.False(t, isAtom(text), text)
	}
}
