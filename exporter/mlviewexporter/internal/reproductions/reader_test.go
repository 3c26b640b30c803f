package reproductions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/reproductions"
)

const (
	groupA       = "aaaaaaaaaaaaaaaa"
	groupB       = "bbbbbbbbbbbbbbbb"
	traceID      = "0123456789abcdef0123456789abcdef"
	traceAndSpan = "-" + traceID + "-0123456789abcdef"
)

// write makes a file below a folder with all folders that it needs.
func write(t testing.TB, content string, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// report is a report as repro_gen writes it.
func report(flags, needs string) string {
	return "# Reproduction of a failure\n\nWritten by otelcol-ml.\n\n## To reproduce\n\n```\npython3 repro.py --dry-run\npython3 repro.py" + flags +
		"\n```\n\nWith `--plain` it prints the call alone.\n\n" + needs + "## Error\n\nType:\n\n```text\nValueError\n```\n\n"
}

// context is the report of a failure that cannot be replayed.
const context = "# Reproduction of a failure\n\nNo replay: the call was not recorded.\n`python3 repro.py` shows what is known.\n\n## Error\n\nMessage:\n\n````text\n\n## To reproduce\n\n```\npython3 repro.py --dry-run\npython3 repro.py --allow-unsafe\n```\n````\n"

// artifact writes an artifact and returns the path of its script.
func artifact(t testing.TB, folder, group, at, report string) string {
	t.Helper()
	write(t, report, folder, group, at+traceAndSpan, "report.md")
	return write(t, "", folder, group, at+traceAndSpan, "repro.py")
}

func failures(t *testing.T, r *reproductions.Reader) []api.Failure {
	t.Helper()
	found, err := r.Failures(t.Context())
	require.NoError(t, err)
	return found
}

func at(hour, minute int) *time.Time {
	return new(time.Date(2026, 11, 20, hour, minute, 0, 0, time.UTC))
}

func TestFailures(t *testing.T) {
	folder := t.TempDir()
	assert.Empty(t, failures(t, reproductions.Open(filepath.Join(folder, "not-there"))))

	// A, first seen before B and last seen after it, has two artifacts.
	artifact(t, folder, groupA, "20261120T100000Z", report(" --older", ""))
	newer := artifact(t, folder, groupA, "20261120T100500Z", report(" --allow-module os:system --set PATH=VALUE", "It needs:\n\n- Python module os\n- device cuda:0\n\n"))
	write(t, `{"kind":"python_call","type":"ValueError","message":"no","count":7,"services":["worker","other"],"versions":["1","2"],
		"variants":[{"id":"x"},{"id":"y"}],"first_seen":"2026-11-20T10:00:00Z","last_seen":"2026-11-20T11:00:00Z","unknown":[1]}`, folder, groupA, "group.json")
	context := artifact(t, folder, groupB, "20261120T103000Z", context)
	write(t, `{"kind":"context","type":"KeyError","count":1,"last_seen":"2026-11-20T10:30:00Z"}`, folder, groupB, "group.json")
	hang := write(t, "# Run r looks hung\n", folder, "dddddddddddddddd", "20261120T090000Z"+traceAndSpan, "report.md")
	write(t, `{"kind":"hang","type":"looks_hung","message":"Run r looks hung","count":1,"last_seen":"2026-11-20T09:00:00Z"}`, folder, "dddddddddddddddd", "group.json")
	// What repro_gen did not write.
	write(t, "", folder, "not-a-group", "20291120T103000Z"+traceAndSpan, "repro.py")
	write(t, "", folder, groupB, "20291120T103000Z"+strings.ToUpper(traceAndSpan), "repro.py")
	write(t, "", folder, groupB, "20291120T103000Z"+traceAndSpan, "other.py")
	write(t, "", folder, "cccccccccccccccc")

	assert.Equal(t, []api.Failure{
		{
			Key: groupA, Kind: "python_call", Class: "ValueError", Message: "no", Service: "worker", Version: "2", Count: 7, Variants: 2,
			FirstSeen: at(10, 0), LastSeen: at(11, 0), TraceID: traceID, Report: "/reproductions/" + groupA,
			Command: "python3 " + newer + " --set PATH=VALUE", Replays: true,
			Requires: []string{"--set PATH=VALUE", "Python module os", "device cuda:0"}, Fill: []string{"PATH=VALUE"},
		},
		{
			Key: groupB, Kind: "context", Class: "KeyError", Count: 1, LastSeen: at(10, 30), TraceID: traceID,
			Report: "/reproductions/" + groupB, Command: "python3 " + context, Why: "the call was not recorded",
		},
		{
			Key: "dddddddddddddddd", Kind: "hang", Class: "looks_hung", Message: "Run r looks hung", Count: 1, LastSeen: at(9, 0),
			Report: "/reproductions/dddddddddddddddd", Command: "cat " + hang,
		},
	}, failures(t, reproductions.Open(folder)))
}

// Whatever a report says, a command to copy has no flag that permits something, and no
// value that telemetry chose.
func TestCommandsPermitNothing(t *testing.T) {
	for flags, want := range map[string]string{
		"": "", " --allow-side-effects": "", " --allow-module pip.__main__:main": "", " --allow-unsafe --body FILE": " --body FILE",
		" --base-url URL --allow-side-effects --allow-method POST --set PATH=VALUE": " --base-url URL --set PATH=VALUE",
		" --base-url http://attacker.example --api-key-env HF_TOKEN":                "",
		" --script /tmp/theirs.py --checkpoint PATH":                                " --checkpoint PATH",
		" --allow-module URL --allow_module URL --no-isolate --pdb":                 "",
		" FILE --setup=/tmp/theirs.py x;reboot FILE -c FILE --Allow FILE":           "",
	} {
		folder := t.TempDir()
		newest := artifact(t, folder, groupA, "20261120T100000Z", report(flags, ""))
		write(t, "{}", folder, groupA, "group.json")
		assert.Equal(t, "python3 "+newest+want, failures(t, reproductions.Open(folder))[0].Command)
	}
}

func TestReport(t *testing.T) {
	folder := t.TempDir()
	artifact(t, folder, groupA, "20261120T100000Z", "older")
	artifact(t, folder, groupA, "20261120T100500Z", "newer")
	write(t, "secret", folder, "secret")
	r := reproductions.Open(folder)
	got, ok := r.Report(groupA)
	assert.True(t, ok)
	assert.Equal(t, "newer", string(got))
	for _, name := range []string{"", groupB, "../" + filepath.Base(folder) + "/" + groupA, "secret", groupA + "/.", strings.ToUpper(groupA)} {
		_, ok := r.Report(name)
		assert.False(t, ok, name)
	}
}

// A group is read again if its files changed, also shortly after the last
// reading, when their times may still be the same.
func TestChangedGroups(t *testing.T) {
	folder := t.TempDir()
	old := artifact(t, folder, groupA, "20261120T100000Z", report("", ""))
	r := reproductions.Open(folder)
	recently := time.Now().Add(time.Hour) // however long the test takes
	for _, count := range []int64{1, 2} {
		summary := write(t, fmt.Sprintf(`{"count":%d}`, count), folder, groupA, "group.json")
		for _, name := range []string{summary, filepath.Join(folder, groupA)} {
			require.NoError(t, os.Chtimes(name, recently, recently))
		}
		assert.Equal(t, count, failures(t, r)[0].Count)
	}
	newer := artifact(t, folder, groupA, "20261120T100500Z", report("", ""))
	assert.Equal(t, "python3 "+newer, failures(t, r)[0].Command)
	require.NoError(t, os.RemoveAll(filepath.Dir(newer)))
	assert.Equal(t, "python3 "+old, failures(t, r)[0].Command)
	require.NoError(t, os.RemoveAll(filepath.Join(folder, groupA)))
	assert.Empty(t, failures(t, r))
}

// A group whose files have not changed is not read again.
func TestUnchangedGroups(t *testing.T) {
	folder := t.TempDir()
	script := artifact(t, folder, groupA, "20261120T100000Z", report("", ""))
	summary := write(t, `{"count":1}`, folder, groupA, "group.json")
	before := time.Now().Add(-time.Hour)
	setTimes := func() {
		for _, name := range []string{summary, filepath.Join(folder, groupA)} {
			require.NoError(t, os.Chtimes(name, before, before))
		}
	}
	setTimes()
	r := reproductions.Open(folder)
	assert.EqualValues(t, 1, failures(t, r)[0].Count)
	write(t, `{"count":2}`, summary)
	require.NoError(t, os.Remove(script))
	setTimes()
	assert.EqualValues(t, 1, failures(t, r)[0].Count, "read again")
}

func TestUnreadableGroup(t *testing.T) {
	for name, content := range map[string]string{
		"not JSON": "{", "too large": strings.Repeat(" ", 256<<10) + "{}", "another form": `{"count":"many"}`,
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			script := artifact(t, folder, groupA, "20261120T100000Z", report("", ""))
			write(t, content, folder, groupA, "group.json")
			got, err := reproductions.Open(folder).Failures(t.Context())
			require.ErrorContains(t, err, groupA)
			require.Len(t, got, 1, "what could be read")
			assert.Equal(t, at(10, 0), got[0].LastSeen, "of the artifact's name")
			assert.Equal(t, "python3 "+script, got[0].Command)
		})
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	script := write(t, "", outside, "20261120T100000Z"+traceAndSpan, "repro.py")
	secret := write(t, `{"type":"secret"}`, outside, "group.json")

	folder := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(folder, groupA)))
	r := reproductions.Open(folder)
	assert.Empty(t, failures(t, r))
	_, ok := r.Report(groupA)
	assert.False(t, ok)

	// Nor inside of the directory.
	inside := filepath.Join(folder, groupB)
	write(t, "", inside, "20261120T100000Z"+traceAndSpan, "repro.py")
	write(t, "no report", inside, "other")
	require.NoError(t, os.Symlink(secret, filepath.Join(inside, "group.json")))
	require.NoError(t, os.Symlink("../other", filepath.Join(inside, "20261120T100000Z"+traceAndSpan, "report.md")))
	got, err := r.Failures(t.Context())
	require.ErrorContains(t, err, "not a regular file")
	assert.Empty(t, got[0].Class)
	_, ok = r.Report(groupB)
	assert.False(t, ok)

	require.NoError(t, os.RemoveAll(inside))
	write(t, "", inside, "20261120T100000Z"+traceAndSpan, "other.py")
	require.NoError(t, os.Symlink(script, filepath.Join(inside, "20261120T100000Z"+traceAndSpan, "repro.py")))
	assert.Empty(t, failures(t, r))
	_, ok = r.Report(groupB)
	assert.False(t, ok)
}

// Whatever the files hold, the command is one line that a terminal shows as it is.
func FuzzReader(f *testing.F) {
	f.Add(`{"kind":"python_call","type":"ValueError"}`, report(" --allow-module a:b", "It needs:\n\n- Python module a\n\n"))
	f.Add(`{"count":-1,"message":"\ud800\u001b"}`, report(" ;reboot $(reboot) `reboot` \x1b[2J", ""))
	f.Add("", context)
	f.Add("null", "\n## To reproduce\n\n```\npython3 repro.py --dry-run\npython3 repro.py\n```\n")
	f.Fuzz(func(t *testing.T, group, report string) {
		folder := t.TempDir()
		artifact(t, folder, groupA, "20261120T100000Z", report)
		write(t, group, folder, groupA, "group.json")
		got, _ := reproductions.Open(folder).Failures(t.Context()) // the error is of hostile content
		require.Len(t, got, 1)
		assert.Regexp(t, "^python3 [ -~]+$", got[0].Command)
		assert.NotContains(t, got[0].Command, " --allow")
		assert.True(t, utf8.ValidString(got[0].Message) && utf8.ValidString(got[0].Class))
		assert.GreaterOrEqual(t, got[0].Count, int64(0))
		text, ok := reproductions.Open(folder).Report(groupA)
		assert.True(t, !ok || string(text) == report)
	})
}
