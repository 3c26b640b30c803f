// Package page serves the live page: the document for a browser, the same as
// JSON and as text, and a stream of changed rows.
//
// It answers only GET and HEAD, and only requests whose Host is an address, a
// name of this machine or a configured name. Everything that it shows came from
// a sender of telemetry: it goes into the page as text, never as markup, and the
// page loads nothing from elsewhere. README.md describes the page's structure.
package page

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/hostnames"
)

// unwritable says that a document cannot be made.
const unwritable = "The answer cannot be written."

// Source is what the page shows. Its methods are safe for concurrent use.
type Source interface {
	// State returns the current State, which nobody changes afterwards.
	State() *api.State
	// Run returns the details of the run with the key of its row.
	Run(key string) (*api.RunDetail, bool)
	// Compare returns the run with a key beside the run with the key with, or beside
	// its last good one if with is empty.
	Compare(key, with string) (*api.Comparison, bool)
	// Trace returns the trace with the id.
	Trace(id string) (*api.Trace, bool)
	// Span returns what an opened span shows, by the ids of its trace and of itself.
	Span(trace, span string) (*api.SpanDetail, bool)
	// History returns the last hour of the page as a whole, or the last ten minutes.
	History(short bool) *api.History
	// Report returns the report of the reproduction with the fingerprint of 16
	// hexadecimal digits.
	Report(fingerprint string) ([]byte, bool)
}

// Settings configure a Handler.
type Settings struct {
	// Interval is the time between two updates of an open page; 0 means 2 s.
	Interval time.Duration
	// MaxClients is the most streams at a time; 0 means 32.
	MaxClients int
	// Hosts are the names of the Host header that are answered besides addresses,
	// localhost and the machine's name, without a port.
	Hosts []string
	// Schema is the JSON schema of the State. Without it the schema is not found.
	Schema []byte
}

// Handler serves the page. Close ends its streams.
type Handler struct {
	source Source
	hosts  hostnames.Set
	mux    *http.ServeMux
	stream *stream

	states, details cache
}

// NewHandler returns a Handler that shows the source.
func NewHandler(source Source, set Settings) *Handler {
	if set.Interval <= 0 {
		set.Interval = 2 * time.Second
	}
	if set.MaxClients <= 0 {
		set.MaxClients = 32
	}
	h := &Handler{source: source, hosts: hostnames.Of(set.Hosts...), mux: http.NewServeMux()}
	h.states.keep, h.details.keep = set.Interval, set.Interval
	h.stream = &stream{source: source, interval: set.Interval, maxClients: set.MaxClients, clients: make(map[*client]struct{})}

	h.mux.HandleFunc("GET /{$}", h.serveRoot)
	h.mux.HandleFunc("GET /assets/{name}", serveAsset)
	h.mux.HandleFunc("GET /api/v1/state", func(w http.ResponseWriter, r *http.Request) {
		state := source.State()
		h.states.serve(w, r, state, "The state cannot be written as JSON.", func() (*document, error) { return jsonDocument(state) })
	})
	serveDetail(h, "runs/{key}", "", func(r *http.Request, _ string) (*api.RunDetail, bool) { return source.Run(r.PathValue("key")) })
	// with is another run than the last good one.
	serveDetail(h, "runs/{key}/compare", "with", func(r *http.Request, with string) (*api.Comparison, bool) {
		return source.Compare(r.PathValue("key"), with)
	})
	serveDetail(h, "traces/{id}", "", func(r *http.Request, _ string) (*api.Trace, bool) { return source.Trace(r.PathValue("id")) })
	serveDetail(h, "traces/{id}/spans/{span}", "", func(r *http.Request, _ string) (*api.SpanDetail, bool) {
		return source.Span(r.PathValue("id"), r.PathValue("span"))
	})
	serveDetail(h, "history", "range", func(_ *http.Request, seconds string) (*api.History, bool) {
		short := seconds == "600"
		return source.History(short), short || seconds == "" || seconds == "3600"
	})
	h.mux.HandleFunc("GET /api/v1/runs/{key}/report", h.serveReportOfRun)
	h.mux.HandleFunc("GET /api/v1/events", h.stream.serve)
	h.mux.HandleFunc("GET /reproductions/{fingerprint}", h.serveReport)
	if len(set.Schema) > 0 {
		schema := newDocument("application/schema+json", set.Schema)
		h.mux.HandleFunc("GET /api/v1/schema.json", schema.serve)
	}
	return h
}

// Close ends all streams at once and refuses new ones. Other requests are still
// answered.
func (h *Handler) Close() { h.stream.close() }

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	SetSecurityHeaders(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "This page changes nothing: it answers only GET and HEAD.", http.StatusMethodNotAllowed)
		return
	}
	if !h.hosts.Has(r.Host) {
		http.Error(w, "This name is not known to the page. Use the address or the name of the machine, or localhost. "+
			"With `auth` the exporter ml_view answers to any name.", http.StatusForbidden)
		return
	}
	if fromElsewhere(r) {
		http.Error(w, "This page answers no requests of other pages.", http.StatusForbidden)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// serveRoot answers browsers, which accept text/html, with the page, and others
// such as curl with the text form.
func (h *Handler) serveRoot(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	query := r.URL.Query()
	if strings.Contains(r.Header.Get("Accept"), "text/html") && !query.Has("width") {
		assets()["index.html"].serve(w, r)
		return
	}
	width, _ := strconv.Atoi(query.Get("width"))
	color, _ := strconv.ParseBool(query.Get("color"))
	state, form := h.source.State(), text.Options{Width: width, Color: color}.Within()
	h.states.serve(w, r, formOfState{state, form}, unwritable, func() (*document, error) {
		return newDocument("text/plain; charset=utf-8", text.Of(state, form)), nil
	})
}

// formOfState names the text of a State.
type formOfState struct {
	state *api.State
	text.Options
}

// serveDetail answers requests below /api/v1 with what is found, as JSON. query is the
// parameter that tells it apart from others of its path, empty for none.
func serveDetail[T any](h *Handler, pattern, query string, find func(r *http.Request, value string) (*T, bool)) {
	h.mux.HandleFunc("GET /api/v1/"+pattern, func(w http.ResponseWriter, r *http.Request) {
		value := ""
		if query != "" {
			value = r.URL.Query().Get(query)
		}
		h.details.serve(w, r, [2]string{r.URL.Path, value}, unwritable, func() (*document, error) {
			if detail, ok := find(r, value); ok {
				return jsonDocument(detail)
			}
			return nil, nil
		})
	})
}

var fingerprint = regexp.MustCompile(`^[0-9a-f]{16}$`)

// serveReport serves a report as plain text. The client names only a fingerprint:
// no part of a path comes from it.
func (h *Handler) serveReport(w http.ResponseWriter, r *http.Request) {
	if id := r.PathValue("fingerprint"); fingerprint.MatchString(id) {
		if report, ok := h.source.Report(id); ok {
			newDocument("text/plain; charset=utf-8", report).serve(w, r)
			return
		}
	}
	http.NotFound(w, r)
}

// SetSecurityHeaders lets the page load and send nothing but its own files and
// data, and lets no other page embed or read it.
func SetSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// fromElsewhere reports whether a page of another site asks, other than by a link
// to the page. The browser would not show it the answer, which costs time all the
// same.
func fromElsewhere(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// serveReportOfRun answers with the report of a run, beside the run that the query
// names by with, or the last good one.
func (h *Handler) serveReportOfRun(w http.ResponseWriter, r *http.Request) {
	key, query := r.PathValue("key"), r.URL.Query()
	form := report.FormOf(query.Get("format"), r.Header.Get("Accept"))
	if form == nil {
		http.Error(w, "A report has the formats html, json and md.", http.StatusBadRequest)
		return
	}
	with := query.Get("with")
	w.Header().Add("Vary", "Accept")
	if form.Policy != "" {
		w.Header().Set("Content-Security-Policy", form.Policy+"; frame-ancestors 'none'")
	}
	h.details.serve(w, r, [3]string{form.Name, key, with}, unwritable, func() (*document, error) {
		made, ok := ReportOf(h.source, key, with)
		if !ok {
			return nil, nil
		}
		var out bytes.Buffer
		err := form.Write(made, &out)
		return newDocument(form.ContentType, out.Bytes()), err
	})
}

// ReportOf returns the report of the run with a key, beside the run with the key
// with, or the last good one if that is empty. ok is false if there is no such run.
func ReportOf(source Source, key, with string) (made *report.Report, ok bool) {
	state := source.State()
	detail, ok := source.Run(key)
	if !ok {
		return nil, false
	}
	comparison, ok := source.Compare(key, with)
	if !ok && with != "" {
		return nil, false
	}
	return report.New(state, detail, comparison), true
}
