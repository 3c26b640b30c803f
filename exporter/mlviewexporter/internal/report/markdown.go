package report

import (
	"bytes"
	"io"
	"strings"
)

// WriteMarkdown writes the report as Markdown of GitHub's and GitLab's kind, without
// the curves. What telemetry has said stands in code spans, in which neither markup
// nor names of people, issues or addresses have a meaning. An error is that of w.
func (r *Report) WriteMarkdown(w io.Writer) error {
	p := r.layout()
	var m markdown
	m.line("# " + p.Title + ": " + p.Service.markdown() + ", " + p.Run.markdown())
	if p.Unreal != nil {
		m.line("**" + p.Unreal.Name + ":** " + p.Unreal.Value.Text)
	}
	m.line(own(p.Summary).markdown())
	facts := table{Heads: []string{"", ""}}
	for _, f := range p.Facts {
		facts.Rows = append(facts.Rows, []cell{own(f.Name), f.Value})
	}
	m.table(facts)
	for i := range p.Sections {
		m.section(&p.Sections[i])
	}
	m.line("---")
	m.line(own(p.Footer).markdown())
	_, err := w.Write(m.out.Bytes())
	return err
}

type markdown struct{ out bytes.Buffer }

// line writes a paragraph.
func (m *markdown) line(text string) {
	m.out.WriteString(text)
	m.out.WriteString("\n\n")
}

func (m *markdown) section(s *section) {
	m.line("## " + s.Title)
	for _, note := range s.Notes {
		m.line(joined(note, " "))
	}
	for i := range s.Items {
		m.item(&s.Items[i])
	}
	for _, b := range s.Bars {
		t := table{Caption: b.Caption, Heads: []string{"what", "share"}, Number: []bool{false, true}}
		for _, part := range b.Parts {
			t.Rows = append(t.Rows, []cell{own(part.Name), own(part.Value)})
		}
		m.table(t)
	}
	if len(s.Figures) > 0 {
		t := table{Caption: "Curves, which the HTML and JSON forms have", Heads: []string{"curve", "range"}}
		for _, f := range s.Figures {
			t.Rows = append(t.Rows, []cell{own(f.Title), own(f.Says)})
		}
		m.table(t)
	}
	for _, t := range s.Tables {
		m.table(t)
	}
}

func (m *markdown) item(i *item) {
	m.line("### " + joined(i.Head, " · "))
	for _, line := range i.Lines {
		m.out.WriteString("- " + line.Name + ": " + line.Value.markdown() + "\n")
	}
	if len(i.Lines) > 0 {
		m.out.WriteByte('\n')
	}
	for _, command := range i.Commands {
		fence := fenceOf(command, 3)
		m.line(fence + "sh\n" + command + "\n" + fence)
	}
}

// joined joins the texts that are not empty.
func joined(cells []cell, separator string) string {
	var all []string
	for _, c := range cells {
		if c.Text != "" {
			all = append(all, c.markdown())
		}
	}
	return strings.Join(all, separator)
}

func (m *markdown) table(t table) {
	if len(t.Rows) == 0 {
		return
	}
	if t.Caption != "" {
		m.line("**" + t.Caption + "**")
	}
	m.out.WriteString("| " + strings.Join(t.Heads, " | ") + " |\n|")
	for i := range t.Heads {
		if i < len(t.Number) && t.Number[i] {
			m.out.WriteString(" ---: |")
		} else {
			m.out.WriteString(" --- |")
		}
	}
	m.out.WriteByte('\n')
	for _, row := range t.Rows {
		m.out.WriteByte('|')
		for _, c := range row {
			m.out.WriteString(" " + c.markdown() + " |")
		}
		m.out.WriteByte('\n')
	}
	m.out.WriteByte('\n')
}

// plainMarkdown are the signs in words and numbers that have no meaning within a line
// of Markdown. No line begins with one.
const plainMarkdown = " .,:;%'\"/=×·–→…+-()"

// markdown returns the text as it is if it is the report's own and has only letters,
// digits and plain signs, else as a code span.
func (c cell) markdown() string {
	if c.Text == "" {
		return ""
	}
	plain := !c.Said && !strings.Contains(c.Text, "://") && !strings.Contains(strings.ToLower(c.Text), "www.")
	for _, char := range c.Text {
		letter := char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z' || char >= '0' && char <= '9'
		plain = plain && (letter || strings.ContainsRune(plainMarkdown, char))
	}
	if plain {
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

// fenceOf returns a row of backticks that is longer than any in the text, and has at
// least a number of them.
func fenceOf(text string, least int) string {
	longest, row := least-1, 0
	for i := range len(text) {
		if text[i] != '`' {
			row = 0
			continue
		}
		row++
		longest = max(longest, row)
	}
	return strings.Repeat("`", longest+1)
}
