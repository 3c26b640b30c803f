package upgrade

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var write = flag.String("write", "", "write testdata/NAME.tar.gz, state of the collector under test")

// What earlier versions wrote is read: queued spans are sent, the page shows runs and
// failures, known versions are no changes, and files stay.
func TestPinnedState(t *testing.T) {
	if *write != "" {
		folder := t.TempDir()
		in := fill(t, this(t), folder)
		pack(t, folder, in, testdata(*write+".tar.gz"))
	}
	archives, err := filepath.Glob(testdata("*.tar.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			t.Parallel()
			folder, in := unpack(t, archive)
			age(t, folder, in.Written)
			check(t, this(t), folder, in, "")
		})
	}
}
