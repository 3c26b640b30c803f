//go:build cgo && linux

package nvmlsource

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestArchitectureName(t *testing.T) {
	assert.Equal(t, "hopper", architectures[9])
	assert.Equal(t, "blackwell", architectures[10])
	assert.Empty(t, architectures[0xffffffff], "younger than this package")
}

func TestCUDAVersion(t *testing.T) {
	for number, expected := range map[int]string{
		12080: "12.8", 13000: "13.0", 11020: "11.2", 9000: "9.0", 0: "", -1: "",
	} {
		assert.Equal(t, expected, cudaVersion(number), number)
	}
}

func TestOnlyNode(t *testing.T) {
	for name, test := range map[string]struct {
		set   []uint
		node  int
		found bool
	}{
		"none":         {[]uint{0, 0}, 0, false},
		"first":        {[]uint{1, 0}, 0, true},
		"third":        {[]uint{4, 0}, 2, true},
		"second word":  {[]uint{0, 2}, 65, true},
		"several":      {[]uint{3}, 0, false},
		"of two words": {[]uint{1, 1}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			node, found := onlyNode(test.set)
			assert.Equal(t, test.found, found)
			assert.Equal(t, test.node, node)
		})
	}
}
