package mllinesconnector

import (
	"bufio"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// other names further files whose lines say nothing of a training.
var other = flag.String("other", "", "a pattern of files, of other software's lines, of which none may make a span")

// TestOtherSoftware: lines of software that does not train make no spans. The files of
// testdata/other are parts of what it printed here.
func TestOtherSoftware(t *testing.T) {
	files, err := filepath.Glob("testdata/other/*.gz")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	if *other != "" {
		more, err := filepath.Glob(*other)
		require.NoError(t, err)
		require.NotEmpty(t, more, *other)
		files = append(files, more...)
	}
	all := 0
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		var text io.Reader = file
		if strings.HasSuffix(name, ".gz") {
			text, err = gzip.NewReader(file)
			require.NoError(t, err)
		}
		r := newRig(t, nil)
		scan := bufio.NewScanner(text)
		scan.Buffer(nil, 16<<20)
		lines := 0
		for more := true; more; {
			ld := plog.NewLogs()
			records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
			for more = scan.Scan(); more; more = scan.Scan() {
				record := records.AppendEmpty()
				record.Body().SetStr(scan.Text())
				record.SetTimestamp(pcommon.NewTimestampFromTime(r.at))
				if lines++; records.Len() == 1000 {
					break
				}
			}
			r.at = r.at.Add(time.Second)
			require.NoError(t, r.lines.ConsumeLogs(t.Context(), ld))
			for _, s := range r.describe() {
				t.Errorf("%s, up to line %d: %s", name, lines, s)
			}
			if t.Failed() {
				break
			}
		}
		require.NoError(t, scan.Err())
		require.NoError(t, file.Close())
		r.wait(time.Hour)
		assert.Empty(t, r.describe(), name)
		all += lines
	}
	t.Logf("%d lines of %d files", all, len(files))
}
