package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	htmltemplate "html/template"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

//go:embed report.html report.md
var files embed.FS

// style is the style sheet of the HTML.
//
//go:embed report.css
var style string

// policy permits the HTML its own style sheet and nothing else: no script, no image, no
// font, no address.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

var html = htmltemplate.Must(htmltemplate.New("report.html").Funcs(htmltemplate.FuncMap{
	"percent": func(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + "%" },
	"style":   func() htmltemplate.CSS { return htmltemplate.CSS(style) }, //nolint:gosec // the embedded file
	"policy":  func() string { return policy },
}).ParseFS(files, "report.html"))

var markdown = template.Must(template.New("report.md").Funcs(template.FuncMap{"join": joined, "fence": fenceOf}).ParseFS(files, "report.md"))

// Form is a form of a report.
type Form struct {
	// Name names the form in a query, and ends the names of its files.
	Name        string
	ContentType string
	// accepted is what who wants the form accepts.
	accepted string
	// Policy is the content security policy of the form, empty without one. The form says
	// it itself, for a reader who opens the file; a server also sends it.
	Policy string
	// Write writes the report. An error is that of w.
	Write func(r *Report, w io.Writer) error
}

// Forms are the forms of a report. HTML is one document that loads nothing and has no
// script. Markdown is that of GitHub and GitLab, without the curves: what telemetry has
// said stands in code spans, in which neither markup nor names of people, issues or
// addresses have a meaning.
var Forms = []Form{
	{"html", "text/html; charset=utf-8", "text/html", policy, func(r *Report, w io.Writer) error { return html.Execute(w, r.layout()) }},
	{"json", "application/json", "application/json", "", func(r *Report, w io.Writer) error { return json.NewEncoder(w).Encode(r) }},
	{"md", "text/markdown; charset=utf-8", "", "", func(r *Report, w io.Writer) error { return markdown.Execute(w, r.layout()) }},
}

// FormOf returns the form with a name, or nil. Without a name, browsers get HTML and others
// such as curl Markdown.
func FormOf(name, accept string) *Form {
	return mlattr.Find(Forms, func(f *Form) bool { return f.Name == name || name == "" && strings.Contains(accept, f.accepted) })
}

// joined joins the texts that are not empty, as Markdown.
func joined(cells []cell, separator string) string {
	known := mlattr.Where(slices.Values(cells), func(c cell) bool { return c.Text != "" })
	return strings.Join(mlattr.Mapped(known, cell.Markdown), separator)
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
