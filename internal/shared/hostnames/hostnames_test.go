package hostnames

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	own, err := os.Hostname()
	require.NoError(t, err)
	names := Of("Gateway-1.example.org.", "")
	for header, known := range map[string]bool{
		"localhost": true, "LOCALHOST:8890": true, "a.localhost": true, "localhost.": true, own: true, own + ":80": true,
		"127.0.0.1": true, "10.0.0.7:8889": true, "[::1]:8890": true, "[::1]": true, "gateway-1.example.org:8889": true,
		"": false, "attacker.example": false, "attacker.example:8889": false, "localhost.attacker.example": false,
		"notlocalhost": false, "127.0.0.1.attacker.example": false, "localhost:8890:1": false, "localhost:a": false, "[": false,
	} {
		assert.Equal(t, known, names.Has(header), "%q", header)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("[::1]:80")
	f.Add("localhost:x")
	f.Fuzz(func(_ *testing.T, header string) { Of().Has(header) })
}
