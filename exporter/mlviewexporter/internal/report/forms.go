package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	htmltemplate "html/template"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

//go:embed report.html report.css report.md
var files embed.FS

// style is the style sheet of the document.
var style = func() string {
	css, err := files.ReadFile("report.css")
	if err != nil {
		panic(err) // The file is in the binary.
	}
	return string(css)
}()

// ContentSecurityPolicy permits the document of WriteHTML its own style sheet and
// nothing else: no script, no image, no font, no address. The document says it
// itself, for a reader who opens the file; a server also sends it.
var ContentSecurityPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

var html = htmltemplate.Must(htmltemplate.New("report.html").Funcs(htmltemplate.FuncMap{
	"percent": func(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + "%" },
	"style":   func() htmltemplate.CSS { return htmltemplate.CSS(style) }, //nolint:gosec // the embedded file
	"policy":  func() string { return ContentSecurityPolicy },
}).ParseFS(files, "report.html"))

var markdown = template.Must(template.New("report.md").Funcs(template.FuncMap{"join": joined, "fence": fenceOf}).ParseFS(files, "report.md"))

// WriteHTML writes the report as one HTML document that loads nothing and has no
// script. An error is that of w.
func (r *Report) WriteHTML(w io.Writer) error { return r.write(w, html) }

// WriteMarkdown writes the report as Markdown of GitHub's and GitLab's kind, without
// the curves. What telemetry has said stands in code spans, in which neither markup
// nor names of people, issues or addresses have a meaning. An error is that of w.
func (r *Report) WriteMarkdown(w io.Writer) error { return r.write(w, markdown) }

func (r *Report) write(w io.Writer, form interface {
	Execute(w io.Writer, data any) error
}) error {
	var out bytes.Buffer
	if err := form.Execute(&out, r.layout()); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// joined joins the texts that are not empty, as Markdown.
func joined(cells []cell, separator string) string {
	known := api.Where(slices.Values(cells), func(c cell) bool { return c.Text != "" })
	return strings.Join(api.Mapped(known, cell.Markdown), separator)
}

// plainMarkdown are texts of letters, digits, and signs in words and numbers that have no
// meaning within a line of Markdown. No line begins with one.
var plainMarkdown = regexp.MustCompile(`^[A-Za-z0-9 .,:;%'"/=×·–→…+()-]*$`)

// Markdown returns the text as it is if it is the report's own and has only letters,
// digits and plain signs, else as a code span.
func (c cell) Markdown() string {
	if c.Text == "" {
		return ""
	}
	address := strings.Contains(c.Text, "://") || strings.Contains(strings.ToLower(c.Text), "www.")
	if !c.Said && !address && plainMarkdown.MatchString(c.Text) {
		return c.Text
	}
	return codeSpan(c.Text)
}

// codeSpan returns a text of one line as a code span that can stand in a table. A
// vertical bar, which would end the table's cell, is escaped as printable texts
// escape other characters.
func codeSpan(text string) string {
	text = strings.ReplaceAll(text, "|", `\x7c`)
	fence := fenceOf(text, 1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || strings.TrimSpace(text) == "" {
		text = " " + text + " "
	}
	return fence + text + fence
}

// fenceOf returns the shortest row of backticks that the text does not have, of at least
// a number of them.
func fenceOf(text string, least int) string {
	fence := strings.Repeat("`", least)
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}
