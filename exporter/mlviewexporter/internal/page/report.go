package page

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
)

// Forms of a report, as the query names them by format.
const (
	formHTML     = "html"
	formJSON     = "json"
	formMarkdown = "md"
)

// serveReportOfRun answers with the report of a run, beside the run that the query
// names by with, or the last good one.
func (h *Handler) serveReportOfRun(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	form := reportForm(query.Get("format"), r.Header.Get("Accept"))
	if form == "" {
		http.Error(w, "A report has the formats html, json and md.", http.StatusBadRequest)
		return
	}
	key, with := r.PathValue("key"), query.Get("with")
	w.Header().Add("Vary", "Accept")
	if form == formHTML {
		w.Header().Set("Content-Security-Policy", report.ContentSecurityPolicy+"; frame-ancestors 'none'")
	}
	h.serveMade(w, r, "report\x00"+form+"\x00"+key+"\x00"+with, func() (*document, error) {
		made, ok := ReportOf(h.source, key, with)
		if !ok {
			return nil, nil
		}
		return reportDocument(made, form)
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
	comparison, found := source.Compare(key, with)
	if !found {
		if with != "" {
			return nil, false
		}
		comparison = nil
	}
	return report.New(state, detail, comparison), true
}

// reportForm returns the form that a request asks for, "" for one that there is not.
// Without a format, browsers get HTML and others such as curl Markdown.
func reportForm(format, accept string) string {
	switch {
	case format == formHTML || format == formJSON || format == formMarkdown:
		return format
	case format != "":
		return ""
	case strings.Contains(accept, "text/html"):
		return formHTML
	case strings.Contains(accept, "application/json"):
		return formJSON
	default:
		return formMarkdown
	}
}

func reportDocument(made *report.Report, form string) (*document, error) {
	var out bytes.Buffer
	switch form {
	case formJSON:
		return jsonDocument(made)
	case formHTML:
		err := made.WriteHTML(&out)
		return newDocument("text/html; charset=utf-8", out.Bytes()), err
	default:
		err := made.WriteMarkdown(&out)
		return newDocument("text/markdown; charset=utf-8", out.Bytes()), err
	}
}
