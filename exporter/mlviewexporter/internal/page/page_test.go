package page_test

import (
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/page"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const fingerprint = "f0e1d2c3b4a59687"

func load(t testing.TB, name string) *page.Fixture {
	t.Helper()
	s, err := page.LoadFixture(filepath.Join("testdata", name))
	require.NoError(t, err)
	return s
}

func newHandler(t testing.TB, source page.Source, set page.Settings) *page.Handler {
	t.Helper()
	h := page.NewHandler(source, set)
	t.Cleanup(h.Close)
	return h
}

// get answers a request with the headers, given as name and value in turn.
func get(h http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "localhost:8890"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestHangs are the runs that hang, and change only if these do.
func TestHangs(t *testing.T) {
	needs, want := load(t, "incidents.json").State().Needs, 0
	for i := range needs {
		if kind := needs[i].Kind; kind == "looks_hung" || kind == "rank_missing" {
			want++
		}
	}
	require.Positive(t, want)
	ask := func(needs []api.Need, headers ...string) (*httptest.ResponseRecorder, []api.Need) {
		answer := get(newHandler(t, page.NewFixture(page.FixtureData{State: &api.State{Needs: needs}}), page.Settings{}), "/api/v1/hangs", headers...)
		var hangs []api.Need
		if answer.Code == http.StatusOK {
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &hangs))
		}
		return answer, hangs
	}
	first, hangs := ask(needs)
	require.Len(t, hangs, want)
	assert.NotEmpty(t, hangs[0].RunID)
	assert.NotEmpty(t, hangs[0].Evidence)

	later := slices.Clone(needs)
	for i := range later {
		value := float64(i) + 1e6
		later[i].Value = &value
	}
	again, _ := ask(later, "If-None-Match", first.Header().Get("ETag"))
	assert.Equal(t, http.StatusNotModified, again.Code)
	healthy, _ := ask(nil, "If-None-Match", first.Header().Get("ETag"))
	assert.Equal(t, "[]", healthy.Body.String())
	_, hangs = ask(slices.Repeat(needs, 1000))
	assert.Len(t, hangs, 256)
}

func TestOnlyGetAndHeadAreAnswered(t *testing.T) {
	h := newHandler(t, load(t, "incidents.json"), page.Settings{})
	for _, target := range []string{"/", "/api/v1/state", "/api/v1/events", "/reproductions/" + fingerprint, "/nothing"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
			r := httptest.NewRequest(http.MethodGet, target, nil)
			r.Host, r.Method = "localhost", method
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			assert.Equal(t, http.StatusMethodNotAllowed, w.Code, "%s %s", method, target)
			assert.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
		}
	}
}

func TestHeadHasTheHeadersOfGet(t *testing.T) {
	h := newHandler(t, load(t, "incidents.json"), page.Settings{})
	for _, target := range []string{"/", "/api/v1/state", "/assets/main.js", "/reproductions/" + fingerprint} {
		r := httptest.NewRequest(http.MethodHead, target, nil)
		r.Host = "localhost"
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, http.StatusOK, w.Code, target)
		assert.Empty(t, w.Body.String(), target)
		assert.Equal(t, get(h, target, "Accept", "text/html").Header(), w.Header(), target)
	}
	r := httptest.NewRequest(http.MethodHead, "/api/v1/events", nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	assert.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
}

// What is asked for when something opens: a span, and the past of the page.
func TestDetailsOfThePage(t *testing.T) {
	h := newHandler(t, load(t, "incidents.json"), page.Settings{})
	var span api.SpanDetail
	const trace = "/api/v1/traces/4bf92f3577b34da6a3ce929d0e0e4736/spans/"
	require.NoError(t, json.Unmarshal(get(h, trace+"s3").Body.Bytes(), &span))
	assert.Len(t, span.Attributes, 4)
	assert.Equal(t, "exception", span.Events[0].Name)
	assert.Equal(t, http.StatusNotFound, get(h, trace+"s9").Code)
	assert.Equal(t, http.StatusNotFound, get(h, trace).Code)
	for target, step := range map[string]float64{"/api/v1/history": 60, "/api/v1/history?range=3600": 60, "/api/v1/history?range=600": 10} {
		var past api.History
		require.NoError(t, json.Unmarshal(get(h, target).Body.Bytes(), &past))
		assert.InDelta(t, step, past.Step, 0, target)
		assert.Len(t, past.Times, 60)
		require.Len(t, past.GPUs, 64)
		assert.Len(t, past.GPUs[0].Activity, 60)
	}
}

func TestForeignNamesAreRefused(t *testing.T) {
	h := newHandler(t, load(t, "empty.json"), page.Settings{Hosts: []string{"GPU-login.example", "view.example:8443", "fe80::2"}})
	for host, status := range map[string]int{
		"localhost":                    200,
		"localhost:8890":               200,
		"LOCALHOST.":                   200,
		"view.localhost:1":             200,
		"127.0.0.1:8890":               200,
		"127.8.9.1":                    200,
		"[::1]:8890":                   200,
		"[::1]":                        200,
		"10.0.0.7:8890":                200,
		"gpu-login.example:8890":       200,
		"view.example":                 200,
		"evil.example":                 403,
		"evil.example:8890":            403,
		"localhost.evil.example":       403,
		"notlocalhost":                 403,
		"127.0.0.1.evil.example":       403,
		"localhost@evil.example":       403,
		"127.0.0.1:8890@evil.example":  403,
		"":                             403,
		"[":                            403,
		"gpu-login.example.evil":       403,
		"xn--localhost":                403,
		"127.1":                        403,
		"localhost:8890:evil.example":  403,
		"view.example\u0000evil":       403,
		strings.Repeat("a", 1<<16):     403,
		"sub.view.example":             403,
		"::ffff:127.0.0.1":             200,
		"[fe80::1%25eth0]:8890":        200,
		"0x7f000001":                   403,
		"2130706433":                   403,
		"evil.example#localhost":       403,
		"evil.example/localhost":       403,
		"localhost/.evil.example:8890": 403,
	} {
		r := get(h, "/api/v1/state", "Host", host)
		assert.Equal(t, status, r.Code, "%.60q", host)
		if status == 403 {
			text := r.Body.String()
			assert.Contains(t, text, "With `auth` the exporter ml_view answers to any name.")
			assert.NotContains(t, text, "needs")
		}
	}
}

func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	h := newHandler(t, load(t, "incidents.json"), page.Settings{MaxClients: 1})
	answers := map[string]*httptest.ResponseRecorder{"foreign host": get(h, "/", "Host", "evil.example")}
	for _, target := range []string{"/", "/assets/main.js", "/api/v1/state", "/api/v1/runs/r-llama", "/reproductions/" + fingerprint, "/nothing", "//evil.example/..", "/assets/../handler.go"} {
		answers[target] = get(h, target, "Accept", "text/html")
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answers["POST"] = w
	for name, a := range answers {
		csp := a.Header().Get("Content-Security-Policy")
		for _, directive := range []string{"default-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "object-src 'none'"} {
			assert.Contains(t, csp, directive, name)
		}
		assert.NotContains(t, csp, "unsafe", name)
		assert.Equal(t, "nosniff", a.Header().Get("X-Content-Type-Options"), name)
		assert.Equal(t, "no-referrer", a.Header().Get("Referrer-Policy"), name)
		assert.Equal(t, "same-origin", a.Header().Get("Cross-Origin-Resource-Policy"), name)
		assert.Empty(t, a.Header().Get("Access-Control-Allow-Origin"), name)
		if !strings.Contains(name, "main.js") && name != "/" {
			assert.Equal(t, "no-store", a.Header().Get("Cache-Control"), name)
		}
	}
}

func TestBrowsersGetThePageAndOthersText(t *testing.T) {
	source := load(t, "incidents.json")
	h := newHandler(t, source, page.Settings{Interval: time.Hour})
	browser := get(h, "/", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	assert.Equal(t, "text/html; charset=utf-8", browser.Header().Get("Content-Type"))
	assert.Contains(t, browser.Body.String(), "<main id=\"main\"")
	assert.Contains(t, browser.Header().Values("Vary"), "Accept")

	state := source.State()
	for target, want := range map[string]text.Options{
		"/": {Width: 120}, "/?width=100": {Width: 100}, "/?width=1": {Width: 80}, "/?width=999999": {Width: 200}, "/?width=-3&color=1": {Width: 80, Color: true},
		"/?width=x&color=y": {Width: 120}, "/?color=true": {Width: 120, Color: true},
	} {
		r := get(h, target, "Accept", "*/*")
		assert.Equal(t, "text/plain; charset=utf-8", r.Header().Get("Content-Type"))
		assert.Equal(t, string(text.Of(state, want)), r.Body.String(), target)
	}
	narrow := string(text.Of(state, text.Options{Width: 90}))
	assert.Equal(t, narrow, get(h, "/?width=90", "Accept", "text/html").Body.String(), "a link of the page")
	state.Runs = nil
	assert.Equal(t, narrow, get(h, "/?width=90").Body.String(), "a form is written once for all readers")
}

// counted counts the runs that it is asked for.
type counted struct {
	*page.Fixture
	runs int
}

func (a *counted) Run(key string) (*api.RunDetail, bool) {
	a.runs++
	return a.Fixture.Run(key)
}

func TestManyReadersOfARunCostAsMuchAsOne(t *testing.T) {
	source := &counted{Fixture: load(t, "incidents.json")}
	synctest.Test(t, func(t *testing.T) {
		h := page.NewHandler(source, page.Settings{Interval: time.Second})
		defer h.Close()
		first := get(h, "/api/v1/runs/r-llama").Body.String()
		for range 10 {
			assert.Equal(t, first, get(h, "/api/v1/runs/r-llama").Body.String())
		}
		assert.Equal(t, 1, source.runs)
		time.Sleep(time.Second)
		require.Equal(t, 200, get(h, "/api/v1/runs/r-llama").Code)
		assert.Equal(t, 2, source.runs, "asked again after an interval")
	})
}

// comparing is a source that has every comparison, and waits in that with the run slow.
type comparing struct {
	*page.Fixture
	asked, until chan struct{}
}

func (s *comparing) Compare(_, with string) (*api.Comparison, bool) {
	if with == "slow" {
		close(s.asked)
		<-s.until
	}
	return &api.Comparison{}, true
}

func TestDetailsNeitherHoldUpNorEvictTheState(t *testing.T) {
	source := &comparing{load(t, "incidents.json"), make(chan struct{}), make(chan struct{})}
	h := newHandler(t, source, page.Settings{Interval: time.Hour})
	first := get(h, "/api/v1/state").Body.String()
	for i := range 100 {
		require.Equal(t, http.StatusOK, get(h, "/api/v1/runs/r-llama/compare?with="+strconv.Itoa(i)).Code)
	}
	source.State().Runs = nil
	state, compared := make(chan string, 1), make(chan int, 1)
	go func() { compared <- get(h, "/api/v1/runs/r-llama/compare?with=slow").Code }()
	<-source.asked
	go func() { state <- get(h, "/api/v1/state").Body.String() }()
	select {
	case body := <-state:
		assert.Equal(t, first, body)
	case <-time.After(10 * time.Second):
		assert.Fail(t, "the state waits for the details")
	}
	close(source.until)
	assert.Equal(t, http.StatusOK, <-compared)
}

func TestOtherPagesGetNoAnswer(t *testing.T) {
	h := newHandler(t, load(t, "incidents.json"), page.Settings{})
	assert.Equal(t, 403, get(h, "/api/v1/state", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors").Code)
	assert.Equal(t, 200, get(h, "/api/v1/state", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors").Code)
	assert.Equal(t, 200, get(h, "/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Accept", "text/html").Code, "a link leads to the page")
}

func TestAnEmptyNameAllowsNoRequest(t *testing.T) {
	h := newHandler(t, load(t, "incidents.json"), page.Settings{Hosts: []string{""}})
	for _, host := range []string{"", "a:b:c:d:e", "evil:port"} {
		assert.Equal(t, 403, get(h, "/", "Host", host).Code, host)
	}
}

func TestTheStateIsServedAsJSON(t *testing.T) {
	source := load(t, "incidents.json")
	h := newHandler(t, source, page.Settings{})
	var got api.State
	r := get(h, "/api/v1/state")
	assert.Equal(t, "application/json", r.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(r.Body.Bytes(), &got))
	assert.Equal(t, *source.State(), got)

	zipped := get(h, "/api/v1/state", "Accept-Encoding", "br, gzip")
	assert.Equal(t, "gzip", zipped.Header().Get("Content-Encoding"))
	plain, err := gzip.NewReader(zipped.Body)
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(plain).Decode(&got))
	assert.Empty(t, get(h, "/api/v1/state", "Accept-Encoding", "gzip;q=0, br").Header().Get("Content-Encoding"))

	next := page.FleetData(3, 3, 0).State
	source.Set(next)
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/state").Body.Bytes(), &got))
	assert.Len(t, got.Runs, 3, "the answer is that of the new state")
}

func TestRunsAndTracesAreFoundByTheirKeys(t *testing.T) {
	const key = "a/b?c#d%2e <x>"
	h := newHandler(t, page.NewFixture(page.FixtureData{
		Runs:   map[string]*api.RunDetail{key: {Run: api.Run{ID: "1"}}},
		Traces: map[string]*api.Trace{"4bf9": {ID: "4bf9"}},
	}), page.Settings{})
	r := get(h, "/api/v1/runs/a%2Fb%3Fc%23d%252e%20%3Cx%3E")
	assert.Equal(t, 200, r.Code)
	assert.Contains(t, r.Body.String(), `"id":"1"`)
	assert.Equal(t, 200, get(h, "/api/v1/traces/4bf9").Code)
	for _, target := range []string{"/api/v1/runs/", "/api/v1/runs/x", "/api/v1/traces/x"} {
		assert.Equal(t, 404, get(h, target).Code, target)
	}
}

func TestTheSchemaIsServed(t *testing.T) {
	h := newHandler(t, load(t, "empty.json"), page.Settings{})
	assert.JSONEq(t, string(schema.State), get(h, "/api/v1/schema.json").Body.String())
}

// asked records the fingerprints that the page asks its source for.
type asked struct {
	*page.Fixture
	fingerprints []string
}

func (a *asked) Report(f string) ([]byte, bool) {
	a.fingerprints = append(a.fingerprints, f)
	return a.Fixture.Report(f)
}

func TestReportsAreServedAsTextByFingerprintOnly(t *testing.T) {
	source := &asked{Fixture: page.NewFixture(page.FixtureData{Reports: map[string]string{fingerprint: "<script>alert(1)</script>"}})}
	h := newHandler(t, source, page.Settings{})
	r := get(h, "/reproductions/"+fingerprint)
	assert.Equal(t, "text/plain; charset=utf-8", r.Header().Get("Content-Type"))
	assert.Equal(t, "<script>alert(1)</script>", r.Body.String())
	assert.Equal(t, 404, get(h, "/reproductions/0000000000000000").Code)
	for _, name := range []string{"F0E1D2C3B4A59687", fingerprint + "0", "f0", "..", "%2e%2e", "..%2f..%2fetc%2fpasswd", fingerprint + "%00", fingerprint + "%0a", fingerprint + "/report.md", "report.md"} {
		assert.NotEqual(t, 200, get(h, "/reproductions/"+name).Code, name)
	}
	assert.Equal(t, []string{fingerprint, "0000000000000000"}, source.fingerprints)
}

func TestAssetsAreKeptUntilTheyChange(t *testing.T) {
	h := newHandler(t, load(t, "empty.json"), page.Settings{})
	for name, contentType := range map[string]string{
		"/assets/main.js": "text/javascript; charset=utf-8", "/assets/style.css": "text/css; charset=utf-8",
		"/assets/icon.svg": "image/svg+xml", "/assets/uPlot.LICENSE.txt": "text/plain; charset=utf-8",
	} {
		tags := make(map[string]bool)
		for _, encoding := range []string{"", "gzip"} {
			r := get(h, name, "Accept-Encoding", encoding)
			assert.Equal(t, 200, r.Code)
			assert.Equal(t, contentType, r.Header().Get("Content-Type"))
			assert.Equal(t, encoding, r.Header().Get("Content-Encoding"))
			assert.Equal(t, "no-cache", r.Header().Get("Cache-Control"))
			tag := r.Header().Get("ETag")
			assert.False(t, tags[tag], "other bytes have another tag")
			tags[tag] = true
			again := get(h, name, "Accept-Encoding", encoding, "If-None-Match", tag)
			assert.Equal(t, 304, again.Code)
			assert.Empty(t, again.Body.String())
			assert.Equal(t, 200, get(h, name, "Accept-Encoding", encoding, "If-None-Match", `"x"`).Code)
		}
	}
	for _, name := range []string{"/assets/", "/assets/nothing", "/assets/%2e%2e%2fhandler.go", "/assets/..%2fhandler.go"} {
		assert.NotEqual(t, 200, get(h, name).Code, name)
	}
}

func TestFixturesAreStates(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, file := range files {
		content, err := os.Open(file)
		require.NoError(t, err)
		decoder := json.NewDecoder(content)
		decoder.DisallowUnknownFields()
		var d page.FixtureData
		require.NoError(t, decoder.Decode(&d), file)
		require.NoError(t, content.Close())
		for _, need := range d.State.Needs {
			if need.Run != "" {
				assert.True(t, hasRun(d.State, need.Run), "%s: need %q", file, need.Key)
			}
		}
	}
}

func hasRun(s *api.State, key string) bool {
	for _, r := range s.Runs {
		if r.Key == key {
			return true
		}
	}
	return false
}
