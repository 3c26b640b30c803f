package httprequest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckHost(t *testing.T) {
	for _, entry := range []string{"models.internal", "models.internal:8000", "localhost", "10.0.0.7:80", "[fd00::7]:8000", "[::1]", "a_b"} {
		require.NoError(t, CheckHost(entry), entry)
	}
	for _, entry := range []string{
		"", "*", "*.internal", "http://models.internal", "models.internal/v1", "models.internal:", "models.internal:0", "models.internal:70000",
		"models.internal:+8", "models.internal:08", "fd00::7", "[fd00::7", "[fe80::1%eth0]", "[10.0.0.7]", "a b", "a\n", "-a", "a..b", "user@host", ":80",
	} {
		assert.ErrorContains(t, CheckHost(entry), "host:port", "%q", entry)
	}
}
