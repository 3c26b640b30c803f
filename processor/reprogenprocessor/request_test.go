package reprogenprocessor

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// requested is the span of a request that failed.
func requested(method string, more map[string]any) failedCall {
	attrs := map[string]any{
		"http.request.method": method, "url.full": "http://192.0.2.1:8/users/7?full=1#top",
		"server.address": "192.0.2.1", "server.port": int64(8), "http.response.status_code": int64(500), "error.type": "500",
	}
	maps.Copy(attrs, more)
	return failedCall{name: method, attrs: attrs}
}

// arrived is what a test's server got.
type arrived struct {
	*http.Request
	body string
}

// statusServer answers with the status that its path begins with.
func statusServer(t *testing.T) (address string, seen *atomic.Pointer[arrived]) {
	seen = &atomic.Pointer[arrived]{}
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		seen.Store(&arrived{r, string(sent)})
		switch strings.Split(r.URL.Path, "/")[1] {
		case "ok":
		case "missing":
			http.Error(w, "no such thing", http.StatusNotFound)
		case "moved":
			http.Redirect(w, r, "/broken", http.StatusFound)
		case "silent":
			select {
			case <-r.Context().Done():
			case <-done:
			}
		default:
			http.Error(w, "it broke \u2603 "+r.Header.Get("Authorization")+"\x1b[31m", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(done) })
	return server.URL, seen
}

func TestRequests(t *testing.T) {
	url, _ := statusServer(t)
	const effects = "--allow-side-effects"
	to := func(path string, more ...string) []string {
		return append([]string{effects, "--base-url", url + path}, more...)
	}
	get := requested("GET", nil)
	withoutStatus := map[string]any{"http.response.status_code": int64(0), "error.type": ""}
	timeout := failing(requested("GET", withoutStatus), "requests.exceptions.ReadTimeout", "timed out")
	recordedHere := requested("GET", map[string]any{"url.full": url + "/users"})
	for name, tc := range map[string]struct {
		failedCall
		server bool
		args   []string
		env    []string
		exit   int
		reason string
		shown  string
	}{
		"no address":             {failedCall: get, args: []string{effects}, exit: 4, reason: "http://192.0.2.1:8"},
		"not without the flag":   {failedCall: get, args: []string{"--base-url", url}, exit: 4, reason: effects},
		"what would be sent":     {failedCall: get, args: append(to(""), "--dry-run"), exit: 0, shown: "request: GET /users/7?full=1\n"},
		"reproduced":             {failedCall: get, args: to(""), exit: 1, reason: "status 500", shown: "| it broke"},
		"answered":               {failedCall: get, args: to("/ok"), exit: 0},
		"another status":         {failedCall: get, args: to("/missing"), exit: 3, reason: "status 404, not status 500"},
		"a client's error":       {failedCall: requested("GET", map[string]any{"http.response.status_code": int64(404)}), args: to("/missing"), exit: 1},
		"the status as a type":   {failedCall: requested("GET", map[string]any{"http.response.status_code": int64(0)}), args: to(""), exit: 1},
		"a redirect":             {failedCall: get, args: to("/moved"), exit: 5, reason: "no redirect"},
		"a handler's exception":  {failedCall: failing(requested("GET", withoutStatus), "KeyError", "'x'"), server: true, args: to(""), exit: 1, reason: "was not recorded"},
		"a client's exception":   {failedCall: failing(requested("GET", withoutStatus), "KeyError", "'x'"), args: to(""), exit: 3},
		"nobody listens":         {failedCall: get, args: []string{effects, "--base-url", "http://127.0.0.1:1"}, exit: 3, reason: "ConnectionRefusedError"},
		"nobody listened":        {failedCall: failing(requested("GET", withoutStatus), "httpx.ConnectError", "refused"), args: []string{effects, "--base-url", "http://127.0.0.1:1"}, exit: 1},
		"no such name":           {failedCall: failing(requested("GET", withoutStatus), "httpx.ConnectError", "refused"), args: []string{effects, "--base-url", "http://" + strings.Repeat("a", 70) + ".test"}, exit: 5, reason: "cannot be sent"},
		"no address at all":      {failedCall: failing(requested("GET", withoutStatus), "httpx.ConnectError", "refused"), args: []string{effects, "--base-url", "http://a b/"}, exit: 5, reason: "cannot be sent"},
		"another encoding":       {failedCall: get, args: to(""), env: []string{"PYTHONIOENCODING=ascii"}, exit: 1, shown: `| it broke`},
		"no answer in time":      {failedCall: get, args: to("/silent", "--timeout", "3"), exit: 3, reason: "no answer"},
		"a timeout":              {failedCall: timeout, args: to("/silent", "--timeout", "3"), exit: 1},
		"the same text":          {failedCall: failing(get, "500", "it broke"), args: to("", "--match", "message"), exit: 1},
		"another text":           {failedCall: failing(get, "500", "all workers have been sent home"), args: to("", "--match", "message"), exit: 3},
		"frames":                 {failedCall: get, args: to("", "--match", "frame"), exit: 5},
		"another method":         {failedCall: requested("DELETE", nil), args: to(""), exit: 4, reason: "--allow-method DELETE"},
		"another method allowed": {failedCall: requested("DELETE", nil), args: to("", "--allow-method", "DELETE"), exit: 1},
		"yet another allowed":    {failedCall: requested("DELETE", nil), args: to("", "--allow-method", "POST"), exit: 4},
		"without its body":       {failedCall: requested("POST", nil), args: to("", "--allow-method", "POST"), exit: 5, reason: "--body FILE"},
		"with no body":           {failedCall: requested("POST", nil), args: to("", "--allow-method", "POST", "--body", "none"), exit: 1},
		"half a body":            {failedCall: requested("POST", map[string]any{"http.request.body": "ab", "http.request.body.size": int64(3)}), args: to("", "--allow-method", "POST"), exit: 5, reason: "not whole"},
		"no method":              {failedCall: requested("CONNECT", nil), args: to("", "--allow-method", "CONNECT"), exit: 5},
		"a header that splits":   {failedCall: requested("GET", map[string]any{"http.request.header.accept": []any{"a\r\nb: c"}}), args: to(""), exit: 5, reason: "header accept"},
		"a secret header":        {failedCall: requested("GET", map[string]any{"http.request.header.x-api-key": []any{"hunter2hunter2"}}), args: to(""), exit: 5, reason: "payload.headers.x-api-key"},
		"a secret, given again":  {failedCall: requested("GET", map[string]any{"http.request.header.x-api-key": []any{"hunter2hunter2"}}), args: to("", "--set", "headers.x-api-key=mine"), exit: 1},
		"a secret, given whole":  {failedCall: requested("GET", map[string]any{"http.request.header.x-api-key": []any{"hunter2hunter2"}}), args: to("", "--header", "X-API-Key: mine"), exit: 1},
		"no header":              {failedCall: get, args: to("", "--header", "a\nb: c"), exit: 2},
		"a secret in the path":   {failedCall: requested("GET", map[string]any{"url.full": "http://h/x?token=hunter2hunter2"}), args: to(""), exit: 5, reason: "payload.target"},
		"a secret in the host":   {failedCall: requested("GET", map[string]any{"url.full": "http://me:hunter2hunter2@h/x"}), args: to(""), exit: 1},
		"a key that is none":     {failedCall: get, args: to("", "--api-key-env", "K"), env: []string{"K=a\nb"}, exit: 5, reason: "K has characters"},

		"the recorded host":  {failedCall: recordedHere, args: []string{effects}, exit: 4, reason: "--base-url URL"},
		"a metadata service": {failedCall: get, args: []string{effects, "--base-url", "http://169.254.169.254/latest"}, exit: 4, reason: "metadata"},
		"another scheme":     {failedCall: get, args: []string{effects, "--base-url", "file://127.0.0.1/etc/passwd"}, exit: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			td := tc.traces()
			if tc.server {
				spans(td)[0].SetKind(ptrace.SpanKindServer)
			}
			produce(t, cfg, td)
			r := pythons(t)[0].run(t, onlyArtifact(t, cfg), tc.env, tc.args...)
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, tc.reason)
			assert.Contains(t, r.Stderr, tc.shown)
		})
	}
}

// addressProgram asks a script's own rule about addresses.
const addressProgram = `
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("repro", sys.argv[1])
repro = importlib.util.module_from_spec(spec)
spec.loader.exec_module(repro)
for host in sys.argv[2:]:
    try:
        repro.connect(repro.split_address("http://%s/" % host)[1], 1, 1)
    except repro.Verdict as refused:
        assert refused.code == 4 and "metadata" in refused.reason, refused.reason
        print("refused")
    except OSError:
        print("tried")
`

// TestRefusedAddresses: services that hand out a machine's credentials are not
// reached by any spelling of their address, by neither of the kinds that send.
func TestRefusedAddresses(t *testing.T) {
	t.Parallel()
	hosts := []string{
		"169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]",
		"[::169.254.169.254]", "[64:ff9b::169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]", "[::ffff:0:169.254.169.254]", "[2002:a9fe:a9fe::1]",
		"[fd00:ec2::254]", "[fd20:ce::254]", "100.100.100.200", "[::ffff:100.100.100.200]", "[64:ff9b::100.100.100.200]", "168.63.129.16",
		"192.0.0.192", "[fe80::1]", "0.0.0.0", "[::]", "224.0.0.1", "[ff02::1]", "169.254.170.2",
	}
	for kind, artifact := range map[string]string{"http_request": script(t, requested("GET", nil)), "genai_chat": script(t, asked(nil))} {
		for _, py := range pythons(t) {
			out, err := exec.Command(py.path, append([]string{"-B", "-c", addressProgram, filepath.Join(artifact, "repro.py"), "127.0.0.1"}, hosts...)...).Output()
			require.NoError(t, err)
			assert.Equal(t, "tried\n"+strings.Repeat("refused\n", len(hosts)), string(out), "%s: %s", py.path, kind)
		}
		r := pythons(t)[0].run(t, artifact, nil, "--allow-side-effects", "--base-url", "http://[64:ff9b::a9fe:a9fe]/")
		assert.Equal(t, 4, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		assert.Contains(t, r.Reason, "metadata services are")
	}
}

// TestConnectsToWhatWasLookedAt: a name whose first address nobody listens at is
// reached by the next, and one of whose addresses is refused by none.
func TestConnectsToWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	url, seen := statusServer(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	packages := t.TempDir()
	// The names that a test cannot make a resolver know.
	write(t, packages+"/sitecustomize.py", `
import socket
real = socket.getaddrinfo
asked = []
def getaddrinfo(host, *args, **kwargs):
    if host == "two.test": return real("127.0.0.2", *args, **kwargs) + real("127.0.0.1", *args, **kwargs)
    if host == "rebound.test":
        asked.append(host)
        return real("127.0.0.1" if len(asked) == 1 else "169.254.169.254", *args, **kwargs)
    if host == "mixed.test": return real("127.0.0.1", *args, **kwargs) + real("169.254.169.254", *args, **kwargs)
    return real(host, *args, **kwargs)
socket.getaddrinfo = getaddrinfo
`)
	artifact := script(t, requested("GET", nil))
	for host, exit := range map[string]int{"two.test": 1, "rebound.test": 1, "mixed.test": 4} {
		seen.Store(nil)
		r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, "--allow-side-effects", "--base-url", "http://"+host+":"+port)
		assert.Equal(t, exit, r.Exit, "%s: %s\n%s", host, r.Stdout, r.Stderr)
		assert.Equal(t, exit == 1, seen.Load() != nil, host)
	}
}

// unsentHeaders change what a request asks for, of whom, or as whom.
var unsentHeaders = strings.Fields(`x-original-url x-rewrite-url x-original-uri x-original-host x-remote-user remote-user x-forwarded-user
	x-forwarded-for x-forwarded-host x-forwarded-email x-real-ip true-client-ip cf-connecting-ip x-authenticated-user x-auth-request-user
	x-webauth-user x-user-id x-tenant-id x-amzn-oidc-data x-goog-authenticated-user-email x-ms-client-principal x-client-cert x-ssl-client-s-dn
	x-envoy-original-path x-envoy-upstream-rq-timeout-ms x-accel-redirect x-sendfile x-http-method x-method-override x_original_url X-Original-URL
	forwarded via proxy-authorization proxy-connection expect upgrade te trailer connection keep-alive transfer-encoding content-encoding
	accept-encoding set-cookie origin referer cache-control pragma x-csrf-token x-requested-with b3 baggage tracestate x-request-id x-debug
	x-middleware-subrequest x-invoke-path destination depth overwrite lock-token dav soapaction x-amz-target grpc-timeout x`)

// TestRequestAsSent compares what arrives with what was recorded, by all names
// that instrumentations use.
func TestRequestAsSent(t *testing.T) {
	t.Parallel()
	url, seen := statusServer(t)
	for name, tc := range map[string]struct {
		attrs         map[string]any
		args          []string
		target        string
		header        http.Header
		body, address string
	}{
		"a client's": {attrs: map[string]any{"http.request.method": "POST", "url.full": "https://api.example/v1/x?a=1&b=%20#f",
			"http.request.header.content-type": []any{"application/json"}, "http.request.header.accept": []any{"a", "b"},
			"http.request.header.authorization": []any{"Bearer hunter2hunter2"}, "http.request.header.cookie": []any{"a=b"},
			"http.request.header.host": []any{"evil"}, "http.request.header.content-length": []any{"5000"}, "http.request.header.x_http_method_override": []any{"DELETE"}, "http.request.header.traceparent": []any{"00-1-2-01"},
			"http.request.body": `{"n": 1}`, "http.request.body.size": int64(8)},
			target: "/p/v1/x?a=1&b=%20", header: http.Header{"Content-Type": {"application/json"}, "Accept": {"a", "b"}}, body: `{"n": 1}`, address: "https://api.example"},
		"a server's": {attrs: map[string]any{"http.request.method": "POST", "url.path": "/v1/x", "url.query": "a=1", "url.scheme": "http", "server.address": "api", "server.port": int64(8000)},
			args: []string{"--body", "none"}, target: "/p/v1/x?a=1", address: "http://api:8000"},
		"an old client's": {attrs: map[string]any{"http.method": "POST", "http.url": "http://h:9?x=1", "http.request.header.accept_language": "c", "http.request.body": "b"},
			target: "/p/?x=1", header: http.Header{"Accept-Language": {"c"}}, body: "b", address: "http://h:9"},
		"an old server's": {attrs: map[string]any{"http.method": "POST", "http.target": "/t?q=é x", "http.host": "h:9", "net.host.port": int64(9), "http.scheme": "http"},
			args: []string{"--body", "none"}, target: "/p/t?q=%C3%A9%20x", address: "http://h:9"},
	} {
		t.Run(name, func(t *testing.T) {
			// Nothing is sent that a proxy, a gateway or a framework takes for a fact.
			for _, header := range unsentHeaders {
				tc.attrs["http.request.header."+header] = []any{"evil"}
			}
			artifact := script(t, failedCall{attrs: tc.attrs, errorType: "E"})
			assert.Contains(t, text(t, artifact, "repro.py"), `"address": "`+tc.address+`"`)
			assert.NotContains(t, text(t, artifact, "repro.py"), "hunter2")
			pythons(t)[0].run(t, artifact, []string{"KEY=k-1"}, append(tc.args, "--allow-side-effects", "--base-url", url+"/p/", "--allow-method", "POST", "--api-key-env", "KEY")...)
			got := seen.Load()
			require.NotNil(t, got)
			assert.Equal(t, tc.target, got.RequestURI)
			assert.Equal(t, strings.TrimPrefix(url, "http://"), got.Host)
			assert.Equal(t, tc.body, got.body)
			want := http.Header{"Authorization": {"Bearer k-1"}, "Content-Length": got.Header["Content-Length"]}
			maps.Copy(want, tc.header)
			assert.Equal(t, want, got.Header)
		})
	}
	t.Run("the key is not shown", func(t *testing.T) {
		r := pythons(t)[0].run(t, script(t, requested("GET", nil)), []string{"KEY=key-of-mine"}, "--allow-side-effects", "--base-url", url, "--api-key-env", "KEY")
		assert.Contains(t, r.Stderr, "<REDACTED:key>")
		assert.NotContains(t, r.Stdout+r.Stderr, "key-of-mine")
	})
}

// TestWhatIsARequest: a method and a path make one.
func TestWhatIsARequest(t *testing.T) {
	for name, tc := range map[string]struct {
		failedCall
		want string
	}{
		"a route is no path":      {failedCall{attrs: map[string]any{"http.request.method": "GET", "http.route": "/users/{id}"}}, `"kind": "context"`},
		"a path without a method": {failedCall{attrs: map[string]any{"url.full": "http://h/"}}, `"kind": "context"`},
		"another method":          {failedCall{attrs: map[string]any{"http.request.method": "_OTHER", "http.request.method_original": "PROPFIND", "url.path": "/"}}, `"method": "PROPFIND"`},
		"no method at all":        {failedCall{attrs: map[string]any{"http.request.method": "get me\n", "url.path": "/"}}, `"reason": "payload_invalid"`},
		"a path that was cut":     {requested("GET", map[string]any{"url.full": "http://h/" + strings.Repeat("x", 9000)}), `"reason": "payload_truncated"`},
		"a body that was cut":     {requested("PUT", map[string]any{"http.request.body": strings.Repeat("x", 9000)}), `"reason": "payload_truncated"`},
		"a call is more":          {failedCall{payload: call("json", "dumps", "[]", "{}"), attrs: requested("GET", nil).attrs}, `"kind": "python_call"`},
		"a conversation is more":  {asked(requested("GET", nil).attrs), `"kind": "genai_chat"`},
		"a step is less":          {requested("GET", trained([]any{"train.py"}, nil).attrs), `"kind": "http_request"`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, specText(t, script(t, tc.failedCall)), tc.want)
		})
	}
}

// TestHostileRequests: what a request says is data in the script, and what it is
// in the request.
func TestHostileRequests(t *testing.T) {
	code := newSyntax(t, "http_request", `["payload", "body"]`)
	for name, s := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(s) > 4096 {
				return // it is cut, and that is another test's
			}
			url, seen := statusServer(t)
			artifact := script(t, failedCall{attrs: map[string]any{
				"http.request.method": "PUT", "url.path": "/" + s, "url.query": s, "server.address": s, "url.scheme": s, "http.request.body": s,
				"http.request.header.accept": []any{s},
			}, errorType: s, message: s})
			code.add(checkOf(t, artifact, string(jsontree.Encode(s))))
			args := []string{"--allow-side-effects", "--base-url", url, "--allow-method", "PUT"}
			r := pythons(t)[0].run(t, artifact, nil, args...)
			if strings.ContainsAny(s, "\r\n\x00\x1a\x1b\x7f\f") || !isLatin(s) {
				assert.Equal(t, 5, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				assert.Nil(t, seen.Load())
			} else {
				assert.Contains(t, []int{1, 3}, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				assert.Equal(t, s, seen.Load().body)
				assert.Equal(t, "/"+s, seen.Load().URL.Path)
			}
			for _, b := range []byte(r.Stdout + r.Stderr) {
				require.True(t, b == '\n' || b >= 0x20 && b <= 0x7E, "the terminal gets byte 0x%02x", b)
			}
		})
	}
}

func isLatin(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r > 0xFF || r >= 0x80 && r < 0xA0 })
}
