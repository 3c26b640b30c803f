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
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/schema"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/hostnames"
)

// Reported is what a report shows.
type Reported interface {
	// State returns the current State, which nobody changes afterwards.
	State() *api.State
	// Run returns the details of the run with the key of its row.
	Run(key string) (*api.RunDetail, bool)
	// Compare returns the run with a key beside the run with the key with, or beside
	// its last good one if with is empty.
	Compare(key, with string) (*api.Comparison, bool)
}

// Source is what the page shows. Its methods are safe for concurrent use.
type Source interface {
	Reported
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
	// AnyHost answers requests for any name. The check of names protects a page that needs
	// no credentials from the pages of others in the same browser; these have no
	// credentials of this page.
	AnyHost bool
}

// Handler serves the page. Close ends its streams.
type Handler struct {
	source  Source
	anyHost bool
	hosts   hostnames.Set
	mux     *http.ServeMux
	stream  *stream
	// Details have a cache of their own: one that takes long does not hold up the State, and many
	// of them leave it in its cache.
	states, details cache
}

// NewHandler returns a Handler that shows the source.
func NewHandler(source Source, set Settings) *Handler {
	interval := cmp.Or(set.Interval, 2*time.Second)
	h := &Handler{
		source: source, anyHost: set.AnyHost, hosts: hostnames.Of(set.Hosts...), mux: http.NewServeMux(),
		stream: newStream(source, interval, cmp.Or(set.MaxClients, 32)),
		states: cache{keep: interval}, details: cache{keep: interval},
	}

	h.mux.Handle("GET /", http.NotFoundHandler()) // Other methods are not allowed, whatever the path.
	h.mux.HandleFunc("GET /{$}", h.serveRoot)
	for name, file := range assets() {
		h.mux.HandleFunc("GET /assets/"+name, file.serve)
	}
	h.mux.HandleFunc("GET /api/v1/state", func(w http.ResponseWriter, r *http.Request) {
		state := source.State()
		h.states.serve(w, r, state, func() (*document, error) { return jsonDocument(state) })
	})
	h.mux.HandleFunc("GET /api/v1/hangs", func(w http.ResponseWriter, r *http.Request) {
		state := source.State()
		h.states.serve(w, r, [2]any{state, "hangs"}, func() (*document, error) { return hangsDocument(state.Needs) })
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
	h.mux.HandleFunc("GET /api/v1/schema.json", newDocument("application/schema+json", schema.State).serve)
	return h
}

// Close ends all streams at once and refuses new ones. Other requests are still
// answered.
func (h *Handler) Close() { h.stream.close() }

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	SetSecurityHeaders(w.Header())
	if !h.anyHost && !h.hosts.Has(r.Host) {
		http.Error(w, "This name is not known to the page. Use the address or the name of the machine, or localhost. "+
			"With `auth` the exporter ml_view answers to any name.", http.StatusForbidden)
		return
	}
	// A page of another site asks, other than by a link to the page. The browser would not show
	// it the answer, which costs time all the same.
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		http.Error(w, "This page answers no requests of other pages.", http.StatusForbidden)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// maxHangs is how many hangs are named.
const maxHangs = 256

// hangsDocument says which runs hang, without what changes while they do. Collectors ask for it
// time and again, so that it has a tag.
func hangsDocument(needs []api.Need) (*document, error) {
	all := []api.Need{}
	for _, need := range needs {
		if len(all) < maxHangs && slices.Contains(mlattr.Hangs(), need.Kind) {
			need.Value, need.GPUHours, need.Before = nil, nil, []api.Change{}
			all = append(all, need)
		}
	}
	made, err := jsonDocument(all)
	made.tag = mlattr.Digest(tagBytes, string(made.plain))
	return made, err
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
	h.states.serve(w, r, [2]any{state, form}, func() (*document, error) {
		return newDocument("text/plain; charset=utf-8", text.Of(state, form)), nil
	})
}

// serveDetail answers requests below /api/v1 with what is found, as JSON. query is the
// parameter that tells it apart from others of its path, empty for none.
func serveDetail[T any](h *Handler, pattern, query string, find func(r *http.Request, value string) (*T, bool)) {
	h.mux.HandleFunc("GET /api/v1/"+pattern, func(w http.ResponseWriter, r *http.Request) {
		value := ""
		if query != "" {
			value = r.URL.Query().Get(query)
		}
		h.details.serve(w, r, [2]string{r.URL.Path, value}, func() (*document, error) {
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
	h.details.serve(w, r, [3]string{form.Name, key, with}, func() (*document, error) {
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
func ReportOf(source Reported, key, with string) (made *report.Report, ok bool) {
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
