package reprogenprocessor

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPayloadElsewhere: a payload that is not on the span is read by the
// script alone, and only if it is the one that was recorded.
func TestPayloadElsewhere(t *testing.T) {
	t.Parallel()
	right := mean().payload
	other := call("os", "getcwd", "[]", "{}")
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		write(t, path, content)
		return "file://" + path
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "fifo"), 0o600))
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/right", http.StatusFound)
		case "/right":
			_, _ = w.Write([]byte(right))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	given := filepath.Join(folder, "given")
	write(t, given, right)
	long := right + strings.Repeat(" ", 1<<20)
	twice := `{"python_module":"statistics","python_module":"statistics","function":"mean","args":[[]]}`
	cased := `{"python_module":"statistics","Function":"mean","function":"mean","args":[[]]}`
	for name, tc := range map[string]struct {
		uri    string
		of     string // what was recorded; right, if empty
		args   []string
		exit   int
		reason string
		asks   bool
	}{
		"a file":                     {uri: file("right", right), exit: 1},
		"a file, not without a flag": {uri: file("right", right), args: []string{"--json"}, exit: 5, reason: "--fetch-payload localhost"},
		"a file with a blank":        {uri: strings.Replace(file("a b", right), "a b", "a%20b", 1), exit: 1},
		"a file of this machine":     {uri: strings.Replace(file("right", right), "file://", "file://localhost", 1), exit: 1},
		"another machine's":          {uri: "file://elsewhere/right", exit: 5, reason: "--payload FILE"},
		"no such file":               {uri: "file://" + folder + "/none", exit: 5, reason: "--payload FILE gives it"},
		"a folder":                   {uri: "file://" + folder, exit: 5, reason: "--payload FILE"},
		"a pipe":                     {uri: "file://" + folder + "/fifo", exit: 5, reason: "no regular file"},
		"a device":                   {uri: "file:///dev/zero", exit: 5, reason: "no regular file"},
		"too large":                  {uri: file("long", long), of: long, exit: 5, reason: "more than 1048576 bytes"},
		"changed since":              {uri: file("changed", right+" "), exit: 5, reason: "SHA-256 differs"},
		"a key twice":                {uri: file("twice", twice), of: twice, exit: 5, reason: "a key twice"},
		"a key in two ways":          {uri: file("cased", cased), of: cased, exit: 5, reason: "in two ways"},
		"no call":                    {uri: file("text", "text"), of: "text", exit: 5, reason: "is no call"},
		"what no gate permits":       {uri: file("other", other), of: other, exit: 4, reason: "module os is not allowed"},
		"not by HTTP":                {uri: server.URL + "/right", exit: 5, reason: "--fetch-payload 127.0.0.1"},
		"not from another host":      {uri: server.URL + "/right", args: []string{"--fetch-payload", "example.com"}, exit: 5, reason: "--fetch-payload 127.0.0.1"},
		"by HTTP":                    {uri: server.URL + "/right", args: []string{"--fetch-payload", "127.0.0.1"}, exit: 1, asks: true},
		"what a server has no more":  {uri: server.URL + "/gone", args: []string{"--fetch-payload", "127.0.0.1"}, exit: 5, reason: "status 404", asks: true},
		"what is moved":              {uri: server.URL + "/moved", args: []string{"--fetch-payload", "127.0.0.1"}, exit: 5, reason: "status 302", asks: true},
		"a metadata service":         {uri: "http://169.254.169.254/x", args: []string{"--fetch-payload", "169.254.169.254"}, exit: 4, reason: "metadata"},
		"an address of another kind": {uri: "s3://bucket/key", exit: 5, reason: "addresses of the form s3 are not read"},
		"given":                      {uri: "s3://bucket/key", args: []string{"--payload", given}, exit: 1},
		"another one given":          {uri: "s3://bucket/key", of: other, args: []string{"--payload", given}, exit: 5, reason: "SHA-256 differs"},
		"a signed address":           {uri: "https://bucket.example/key?X-Amz-Signature=0123456789abcdef", exit: 5, reason: "its address was withheld"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.of == "" {
				tc.of = right
			}
			sum := sha256.Sum256([]byte(tc.of))
			cfg := testConfig(t, "statistics")
			produce(t, cfg, failedCall{errorType: "statistics.StatisticsError", attrs: map[string]any{
				"repro.payload.uri": tc.uri, "repro.payload.sha256": hex.EncodeToString(sum[:])}}.traces())
			assert.Zero(t, asked.Swap(0), "the collector fetches nothing")
			artifact := onlyArtifact(t, cfg)
			if tc.args == nil {
				tc.args = []string{"--fetch-payload", "localhost"}
			}
			r := pythons(t)[0].run(t, artifact, nil, tc.args...)
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, tc.reason)
			assert.Equal(t, tc.asks, asked.Swap(0) > 0)
			assert.Contains(t, text(t, artifact, "repro.py"), "\"payload\": null", "nothing of the payload is in the artifact")
			assert.Contains(t, text(t, artifact, "report.md"), "repro.py --payload FILE\n")
		})
	}
}

// TestAddressOfAPayload says which addresses a script could ever check.
func TestAddressOfAPayload(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for name, tc := range map[string]struct {
		attrs map[string]any
		want  string
	}{
		"with a hash":          {map[string]any{"repro.payload.uri": "file:///x", "repro.payload.sha256": sum}, `"kind": "python_call"`},
		"Snakepit's":           {map[string]any{"snakepit.payload.uri": "file:///x", "snakepit.payload.sha256": strings.ToUpper(sum)}, `"kind": "python_call"`},
		"without a hash":       {map[string]any{"repro.payload.uri": "file:///x"}, `"reason": "payload_unverified"`},
		"with half a hash":     {map[string]any{"repro.payload.uri": "file:///x", "repro.payload.sha256": "ab"}, `"reason": "payload_unverified"`},
		"no address":           {map[string]any{"repro.payload.uri": "x", "repro.payload.sha256": sum}, `"reason": "payload_invalid"`},
		"a very long one":      {map[string]any{"repro.payload.uri": "file:///" + strings.Repeat("x", 3000), "repro.payload.sha256": sum}, `"reason": "payload_invalid"`},
		"too large":            {map[string]any{"repro.payload.uri": "file:///x", "repro.payload.sha256": sum, "repro.payload.size": 2 << 20}, `"reason": "payload_too_large"`},
		"the payload as well":  {map[string]any{"repro.payload": mean().payload, "repro.payload.uri": "file:///x"}, `"function": "mean"`},
		"an empty payload too": {map[string]any{"repro.payload": "", "repro.payload.uri": "file:///x", "repro.payload.sha256": sum}, `"payload_ref": {`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			produce(t, cfg, failedCall{attrs: tc.attrs}.traces())
			if !strings.Contains(text(t, onlyArtifact(t, cfg), "repro.py"), tc.want) {
				t.Errorf("%s is not there", tc.want)
			}
		})
	}
}
