package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strconv"
)

//go:embed report.html report.css
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

var document = template.Must(template.New("report.html").Funcs(template.FuncMap{
	"percent": func(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + "%" },
	"sum":     func(parts []part, n int) string { return percentBefore(parts, n) },
	"number":  func(t table, column int) bool { return column < len(t.Number) && t.Number[column] },
	"shade":   func(n int) string { return "t" + strconv.Itoa(n) },
	"series":  func(n int) string { return "l" + strconv.Itoa(n) },
	"style":   func() template.CSS { return template.CSS(style) }, //nolint:gosec // the embedded file
	"policy":  func() string { return ContentSecurityPolicy },
}).ParseFS(files, "report.html"))

// percentBefore returns where a part of a bar begins.
func percentBefore(parts []part, n int) string {
	sum := 0.0
	for _, p := range parts[:n] {
		sum += p.Share
	}
	return strconv.FormatFloat(100*sum, 'f', 2, 64) + "%"
}

// WriteHTML writes the report as one HTML document that loads nothing and has no
// script. An error is that of w.
func (r *Report) WriteHTML(w io.Writer) error {
	var out bytes.Buffer
	if err := document.Execute(&out, r.layout()); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}
