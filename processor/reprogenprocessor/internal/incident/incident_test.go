package incident

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// TestIDs: a rank is a number, and what is too long is no id.
func TestIDs(t *testing.T) {
	attributes := func(key string, value any) pcommon.Map {
		m := pcommon.NewMap()
		require.NoError(t, m.PutEmpty(key).FromRaw(value))
		return m
	}
	for value, want := range map[any]string{
		7: "7", 7.0: "7", "7": "7", strings.Repeat("7", 20): strings.Repeat("7", 20), strings.Repeat("7", 21): "", "": "",
	} {
		assert.Equal(t, want, RankOf(pcommon.NewMap(), attributes("ml.rank.global", value)), value)
	}
	for _, id := range []string{"a", "of two words", strings.Repeat("x", 256)} {
		assert.Equal(t, id, CorrelationOf(attributes("correlation_id", id)))
	}
	assert.Empty(t, CorrelationOf(attributes("correlation_id", strings.Repeat("x", 257))))
}
