package report_test

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
)

// attacks are names that try to be something else than text.
var attacks = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</style><script>`, `</svg><a href=javascript:alert(1)>x</a>`,
	`'{{.}}' ${x} {{constructor}}`, "\x1b[31mred\x1b[0m", "\u202etxt.exe\u2066", "a|b|c", "a\\|b", "`", "```", "a`b``c", "\n\n# heading", "- item",
	"[click](javascript:alert(1))", "![x](http://evil.example/x.png)", "<http://evil.example>", "http://evil.example", "www.evil.example",
	"@everyone #1 owner/repo#2 GH-3", "&lt;b&gt;", "&#60;b>", "\r\n| x | y |", "~~~", "--- ", "a@b.example", "\xff\xfe", "\u2028\u2029", "\\", "\\`", "", " ", "\u05d0\u05d1",
}

// fill sets every text of a value to s and every number to f, and gives every list
// two entries.
func fill(v reflect.Value, s string, f float64) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Float64:
		v.SetFloat(f)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(max(-1e18, min(1e18, f))))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), s, f)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), s, f)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, s, f)
		v.SetMapIndex(reflect.ValueOf(s), value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(max(-6e10, min(2e11, f))), 0)))
			return
		}
		for _, field := range v.Fields() {
			fill(field, s, f)
		}
	default:
		panic(v.Kind())
	}
}

// everything returns a report of which every text is s and every number f.
func everything(s string, f float64) *report.Report {
	state, detail, comparison := new(api.State), new(api.RunDetail), new(api.Comparison)
	for _, of := range []any{state, detail, comparison} {
		fill(reflect.ValueOf(of).Elem(), s, f)
	}
	// A report has curves that are known, and more marks than one.
	comparison.Run.Curves[0].Name, comparison.With.Curves[0].Name = "loss", "loss"
	comparison.Parting.By, comparison.Parting.Curve = "steps", "loss"
	comparison.Parting.Positions = 20
	return report.New(state, detail, comparison)
}

// tags are the elements that the document has, and attributes those that they may
// have. None of them loads or runs anything.
var (
	tags = []string{
		"a", "b", "body", "caption", "code", "dd", "div", "dl", "dt", "figcaption", "figure", "footer", "h1", "h2", "h3", "head", "header", "html", "li", "line",
		"main", "meta", "nav", "p", "path", "pre", "rect", "section", "span", "strong", "style", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul",
	}
	attributes = regexp.MustCompile(`^(lang|charset|name|content|http-equiv|class|id|href|aria-[a-z]+|role|tabindex|scope|width|height|x|y|x1|x2|y1|y2|dx|d|viewbox|preserveaspectratio|overflow|focusable|vector-effect)$`)
)

// checkHTML fails the test if the document has any other element than its own, or
// not the text.
func checkHTML(t require.TestingT, document string) {
	tokens := html.NewTokenizer(strings.NewReader(document))
	policies, styles := 0, 0
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		token := tokens.Token()
		if kind == html.CommentToken {
			assert.Fail(t, "a comment", token.Data)
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		assert.Contains(t, tags, token.Data)
		if token.Data == "style" {
			styles++
		}
		for _, a := range token.Attr {
			assert.Regexp(t, attributes, a.Key)
			if a.Key == "href" {
				assert.Regexp(t, `^#[a-z]+$`, a.Val)
			}
			if a.Key == "http-equiv" {
				policies++
			}
		}
	}
	assert.Equal(t, 1, policies)
	assert.Equal(t, 1, styles)
	for _, never := range []string{"\x1b", "\u202e", "ZgotmplZ"} {
		assert.NotContains(t, document, never)
	}
	assert.True(t, utf8.ValidString(document))
}

// ownWords is what a line of Markdown has besides code spans.
var ownWords = regexp.MustCompile(`^[A-Za-z0-9 .,:;%'"/=×·–→…+()|*#-]*$`)

// checkMarkdown fails the test if anything but code spans and fenced commands has a
// character that Markdown could read.
func checkMarkdown(t require.TestingT, document string) {
	fence, columns := "", 0
	for line := range strings.Lines(document) {
		line = strings.TrimSuffix(line, "\n")
		if marks := strings.TrimSuffix(line, "sh"); strings.HasPrefix(line, "```") && strings.Trim(marks, "`") == "" {
			switch fence {
			case "":
				fence = marks
				continue
			case line:
				fence = ""
				continue
			}
		}
		if fence != "" {
			assert.NotContains(t, line, fence)
			continue
		}
		rest := withoutSpans(line)
		assert.Regexp(t, ownWords, rest)
		assert.NotRegexp(t, `://|www\.`, rest)
		// Every row of a table has as many cells as its head.
		bars := 0
		if strings.HasPrefix(line, "|") {
			bars = unescapedBars(line)
			if columns > 0 {
				assert.Equal(t, columns, bars, line)
			}
		}
		columns = bars
	}
	assert.Empty(t, fence, "a fence is open at the end")
	assert.NotContains(t, document, "\x1b")
	assert.True(t, utf8.ValidString(document))
}

// unescapedBars counts the bars that separate cells, as GitHub does: before code
// spans are known.
func unescapedBars(line string) (n int) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			n++
		}
	}
	return n
}

// withoutSpans removes the code spans of a line by CommonMark's rule: a row of
// backticks ends at the next row of as many.
func withoutSpans(line string) string {
	var out strings.Builder
	for line != "" {
		start := strings.IndexByte(line, '`')
		if start < 0 {
			out.WriteString(line)
			break
		}
		out.WriteString(line[:start])
		length := len(line[start:]) - len(strings.TrimLeft(line[start:], "`"))
		end := -1
		for at := start + length; at < len(line); {
			if line[at] != '`' {
				at++
				continue
			}
			row := len(line[at:]) - len(strings.TrimLeft(line[at:], "`"))
			if row == length {
				end = at + row
				break
			}
			at += row
		}
		if end < 0 {
			out.WriteString(line[start:]) // no span: the backticks stay
			break
		}
		line = line[end:]
	}
	return out.String()
}

func TestHostileTextsStayText(t *testing.T) {
	long := strings.Repeat("0123456789", 2000)
	for _, attack := range append(slices.Clone(attacks), long) {
		r := everything(attack, 1.5)
		checkHTML(t, html5(t, r))
		checkMarkdown(t, markdown(t, r))
		_, err := json.Marshal(r)
		require.NoError(t, err)
	}
	assert.Contains(t, html5(t, everything(attacks[0], 1)), "&lt;script&gt;alert(1)&lt;/script&gt;")
	assert.Contains(t, markdown(t, everything(attacks[0], 1)), "`<script>alert(1)</script>`")
}

func TestAnyNumberIsWritten(t *testing.T) {
	for _, f := range []float64{0, 1, -1, 1e-300, 1e300, -1e300, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e9, 0.999, math.NaN(), math.Inf(1), math.Inf(-1)} {
		r := everything("x", f)
		document := html5(t, r)
		checkHTML(t, document)
		checkMarkdown(t, markdown(t, r))
	}
}

// The page's own hostile fixture is one more.
func TestHostileFixture(t *testing.T) {
	d := dataOf(t, "hostile.json")
	for _, run := range d.State.Runs {
		detail := d.Runs[run.Key]
		if detail == nil {
			detail = &api.RunDetail{Run: run}
		}
		r := report.New(d.State, detail, nil)
		checkHTML(t, html5(t, r))
		checkMarkdown(t, markdown(t, r))
	}
}

func FuzzReport(f *testing.F) {
	for i, attack := range attacks {
		f.Add(attack, float64(i)*1e3)
	}
	f.Fuzz(func(t *testing.T, s string, n float64) {
		r := everything(s, n)
		checkHTML(t, html5(t, r))
		checkMarkdown(t, markdown(t, r))
	})
}
