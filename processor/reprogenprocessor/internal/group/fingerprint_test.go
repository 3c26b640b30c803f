package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestVersionsOfFrameworks(t *testing.T) {
	for name, tc := range map[string]struct {
		packages any
		want     []string
	}{
		"a map":          {map[string]any{"torch": "2.4.0+cu121", "numpy": "2.0.1", "requests": "2.0"}, []string{"torch 2.4.0+cu121", "numpy 2.0.1"}},
		"pip freeze":     {"numpy==2.0.1\ntorch==2.4.0\ntorchvision==0.19\n", []string{"torch 2.4.0", "numpy 2.0.1"}},
		"JSON":           {`{"torch": "2.4.0", "jax":"0.4"}`, []string{"torch 2.4.0", "jax 0.4"}},
		"others":         {"torchvision==0.19, mytorch==1", nil},
		"another's name": {"torch2==1.0", nil},
		"without number": {"torch @ file:///x", nil},
		"a list":         {[]any{"torch"}, nil},
	} {
		v := pcommon.NewValueEmpty()
		require.NoError(t, v.FromRaw(tc.packages))
		assert.Equal(t, tc.want, versionsIn(v), name)
	}
}
