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
