package vocabularypage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// page collects Markdown.
type page struct{ text strings.Builder }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

// list writes what a client sends, or nothing where there is none.
func (p *page) list(title string, items []string) {
	if len(items) > 0 {
		p.printf("\n%s\n\n- %s\n", title, strings.Join(items, "\n- "))
	}
}

// writePage returns the vocabulary as Markdown.
func writePage(meanings map[string]string) (string, error) {
	p := new(page)
	p.text.WriteString(`# Vocabulary

<!-- Generated from internal/mlattr by "go generate". Do not edit. -->

The attributes, spans and metrics that ` + "`ml_enrich`" + ` reads, and their canonical
names; [vocabulary-notes.md](evidence/vocabulary-notes.md) has what clients were seen to
send. A client's attribute keeps its name, and the canonical attribute is added unless it is
there. Of several attributes with one canonical name the first below counts, after the
user's own ` + "`aliases`" + `. Numbers may be numeric text.

## Canonical attributes

A label in Prometheus has underscores in place of dots. Attributes that are only read serve
to derive others and are never written.
`)
	if err := p.attributes(meanings); err != nil {
		return "", err
	}
	p.measures()
	p.text.WriteString(`
## Clients

The name in code is the client's name under ` + "`vocabularies`" + `. A client's rules apply
where it is recognised: by its service or scope, by keys or metrics in its own name space,
or by the names of spans under *alone*. Only the listed keys of a name space
count. The lists have the canonical name, what the client sends on its resource, spans and log
records, points and metrics, and how the value is read unless it is copied.
`)
	for _, t := range vocabulary.Tables() {
		p.client(&t)
	}
	p.general()
	return p.text.String(), nil
}

// general writes the rules for keys of spans that no table lists.
func (p *page) general() {
	p.text.WriteString(`
## Clients that no table lists

A key of a span that is not listed above is read by its last one or two words, in small
letters and without separators: ` + "`acme.usage.prompt_tokens`" + ` and ` + "`x.promptTokens`" + ` are
both ` + "`prompttokens`" + `. Tokens behind a word such as ` + "`details`" + `, ` + "`cache`" + ` or ` + "`audio`" + ` are a
part of others and not read. *Only on spans of models* is a span that states tokens or an
operation of a model.

- The usage may be JSON within the span's output, or in an event.
- An event that names a model and has messages makes its span a request.
- A span with a model and tokens that is named after a request, such as call_llm or LLM, is one.
- A total completes what the parts leave out: tokens of caches, of reasoning, or one side.
- Of a model that is named by its path (` + "`projects/p/locations/l/publishers/google/models/m`" + `, ` + "`models/m`" + `) the
  last part counts, whatever attribute names it.
- A request failed if its level or its finish reason is an error, whatever its status.
`)
	words, weak := make(map[string][]string), make(map[string]bool)
	for _, r := range vocabulary.GeneralRules() {
		if r.Canonical != "" {
			words[r.Canonical], weak[r.Canonical] = append(words[r.Canonical], r.Words...), r.Weak
		}
	}
	for i, title := range []string{"Everywhere:", "Only on spans of models:"} {
		p.printf("\n%s\n\n", title)
		for _, canonical := range slices.Sorted(maps.Keys(words)) {
			if weak[canonical] == (i == 1) {
				slices.Sort(words[canonical])
				p.printf("- %s: %s\n", code(canonical), codes(words[canonical]))
			}
		}
	}
}

func (p *page) attributes(meanings map[string]string) error {
	var items []string
	for _, a := range vocabulary.Attributes() {
		text := meanings[a.Name]
		if text == "" {
			return fmt.Errorf("%q has no comment that begins with its constant's name", a.Name)
		}
		if a.OnlyRead {
			text += " Only read."
		}
		name := a.Name
		if strings.HasSuffix(name, ".") {
			name += "*"
		}
		kind := strings.TrimSpace(a.Kind.String() + " " + unit(a.Unit))
		if kind == "string" {
			items = append(items, code(name)+": "+text)
			continue
		}
		items = append(items, fmt.Sprintf("%s (%s): %s", code(name), kind, text))
	}
	p.list("Each with its type and unit; one without is a string:", items)
	return nil
}

// prometheusLabel returns the label that the prometheus exporter makes of a
// canonical key, which has small letters, digits, dots and single underscores
// only. e2e/smoke compares it with the exporter.
func prometheusLabel(key string) string { return strings.ReplaceAll(key, ".", "_") }

func (p *page) measures() {
	p.text.WriteString(`
## What metrics are about

A metric keeps its name, unit and values. Rates are derived from counters and
histograms of ` + "`ml.tokens`" + ` and from histograms of ` + "`ml.token.throughput`" + `. A name is
found with and without ` + "`_total`" + ` at its end and ` + "`ray_`" + ` before it, and with any
characters in place of its dots and colons. The unit is the metric's own, or else the
client's below, or else the one here. In the configuration:
` + "`metrics: {acme.tokens: {as: ml.tokens, unit: \"{token}\", token_type: output}}`" + `.
`)
	var items, units []string
	seen := make(map[table.Dimension]bool)
	for _, m := range table.Measures {
		items = append(items, fmt.Sprintf("%s (%s): %s", code(m.Name), strings.TrimSpace(string(m.Dimension)+" "+unit(m.Unit)), m.Description))
		if !seen[m.Dimension] {
			seen[m.Dimension] = true
			units = append(units, string(m.Dimension)+": "+codes(vocabulary.UnitsOf(m.Name)))
		}
	}
	p.list("What `as` can be:", items)
	p.list("Values are converted from these units. A count may come in any unit in braces.", units)
}

func (p *page) client(t *vocabulary.Vocabulary) {
	p.printf("\n### %s\n\n", t.Title)
	if t.System == 0 {
		p.text.WriteString("Always understood.")
	} else {
		p.printf("`%s`.", t.Name)
	}
	if t.Page != "" {
		p.printf(" <%s>", t.Page)
	}
	p.text.WriteString("\n")
	p.recognition(t)
	p.traits(t)
	p.aliases("Resource:", t.Resource)
	p.aliases("Spans, logs:", t.Span)
	for _, m := range t.SpanMaps {
		p.aliases("In the map or JSON "+code(m.Source)+":", m.Fields)
	}
	var items []string
	for _, prefix := range t.SpanPrefixes {
		items = append(items, code(prefix.Canonical+"*")+": "+code(prefix.Prefix+"*"))
	}
	p.list("Spans, by the beginnings of keys:", items)
	items = nil
	for _, event := range t.FirstTokens {
		item := code(event.Event) + " → " + code(mlattr.GenAITimeToFirstChunk)
		if event.Repeated {
			item += "; the first of several, if none were dropped"
		}
		items = append(items, item)
	}
	p.list("Events of spans:", items)
	p.aliases("Points:", t.Point)
	p.names(t)
	p.metrics(t)
}

// recognition writes what identifies the client.
func (p *page) recognition(t *vocabulary.Vocabulary) {
	var ways []string
	for _, way := range []struct {
		what  string
		names []string
	}{
		{"service", t.Services}, {"scope", beginnings(t.Scopes)}, {"all resource keys of", t.Signature},
		{"keys", keySpaces(t)}, {"metrics", beginnings(t.MetricPrefixes)},
	} {
		if len(way.names) > 0 {
			ways = append(ways, way.what+" "+codes(way.names))
		}
	}
	if len(ways) > 0 {
		p.printf("Recognised by %s.\n", strings.Join(ways, "; "))
	}
	if t.Side != "" {
		p.printf("Rates of its tokens have %s.\n", code(mlattr.Side+"="+t.Side))
	}
	if len(t.Replicas) > 0 {
		p.printf("Of points with %s, those of process 0 count.\n", codes(t.Replicas))
	}
}

// traits writes what is known of the client besides what it sends.
func (p *page) traits(t *vocabulary.Vocabulary) {
	var known []string
	for _, trait := range t.Traits {
		known = append(known, trait.String())
	}
	if len(known) > 0 {
		p.printf("%s\n", strings.Join(known, " "))
	}
}

func beginnings(names []string) []string {
	open := make([]string, len(names))
	for i, name := range names {
		open[i] = name + "*"
	}
	return open
}

// keySpaces returns the client's own key prefixes. A prefix that is a whole key of
// its table has no star.
func keySpaces(t *vocabulary.Vocabulary) []string {
	open := beginnings(t.KeyPrefixes)
	for i, prefix := range t.KeyPrefixes {
		if slices.ContainsFunc(t.Span, func(a table.Alias) bool { return a.Source == prefix }) {
			open[i] = prefix
		}
	}
	return open
}

// aliases writes each canonical name once for all that is read in the same way. Only the
// last of a name may take more, because the first attribute of a name counts.
func (p *page) aliases(title string, aliases []table.Alias) {
	type reading struct {
		canonical, how string
		sources        []string
	}
	var readings []*reading
	last := make(map[string]*reading)
	for _, a := range aliases {
		how := conditions(a)
		if l := last[a.Canonical]; l != nil && l.how == how {
			l.sources = append(l.sources, a.Source)
			continue
		}
		last[a.Canonical] = &reading{a.Canonical, how, []string{a.Source}}
		readings = append(readings, last[a.Canonical])
	}
	var items []string
	for _, l := range readings {
		item := code(l.canonical) + ": " + codes(l.sources)
		if l.how != "" {
			item += "; " + l.how
		}
		items = append(items, item)
	}
	p.list(title, items)
}

// conditions returns how an alias is read, where its value is not just copied.
func conditions(a table.Alias) string {
	var notes []string
	if len(a.SpanPrefixes) > 0 {
		notes = append(notes, "on spans "+codes(beginnings(a.SpanPrefixes)))
	}
	if a.Factor != 0 {
		notes = append(notes, "times "+strconv.FormatFloat(a.Factor, 'g', -1, 64))
	}
	if a.Offset != 0 {
		notes = append(notes, "plus "+strconv.FormatInt(a.Offset, 10))
	}
	if a.Inverse {
		notes = append(notes, "one over it")
	}
	if a.Kind == table.KindSecret {
		notes = append(notes, "hashed")
	}
	if a.Kind == table.KindJobID {
		notes = append(notes, "no word such as `none`")
	}
	var words []string
	for _, word := range slices.Sorted(maps.Keys(a.Words)) {
		words = append(words, code(word)+" → "+code(a.Words[word]))
	}
	switch {
	case len(words) > 0:
		notes = append(notes, strings.Join(words, ", "))
	case a.Reads != "":
		notes = append(notes, "out of its text")
	}
	return strings.Join(notes, "; ")
}

// names writes the names of spans, those that say the same in one item, and those apart that
// identify the client alone.
func (p *page) names(t *vocabulary.Vocabulary) {
	p.named("Span names, alone:", t.Names, true)
	p.named("Span names:", t.Names, false)
}

func (p *page) named(title string, names []table.NameRule, alone bool) {
	var order []string
	saying := make(map[string][]string)
	for _, n := range names {
		if n.Identifies != alone {
			continue
		}
		name := code(n.Text)
		switch n.Match {
		case table.Prefix:
			name = code(n.Text + "*")
		case table.Suffix:
			name = code("*" + n.Text)
		case table.Numbered:
			name = code(n.Text + "<n>")
		}
		var says []string
		for _, said := range [][2]string{
			{mlattr.Phase, n.Phase}, {mlattr.Operation, n.Operation}, {mlattr.Role, n.Role}, {mlattr.LossScope, n.LossScope},
		} {
			if said[1] != "" {
				says = append(says, code(said[0]+"="+said[1]))
			}
		}
		if n.Number != "" {
			says = append(says, code(n.Number+"=<n>"))
		}
		if n.Call != table.NoCall {
			says = append(says, n.Call.String())
		}
		if n.Queued {
			says = append(says, "includes a wait")
		}
		if n.WholeStep {
			says = append(says, "a whole step")
		}
		text := ""
		if len(says) > 0 {
			text = " → " + strings.Join(says, ", ")
		}
		if len(n.Evidence) > 0 {
			text += "; alone with " + codes(n.Evidence)
		}
		if len(saying[text]) == 0 {
			order = append(order, text)
		}
		saying[text] = append(saying[text], name)
	}
	var items []string
	for _, text := range order {
		items = append(items, strings.Join(saying[text], ", ")+text)
	}
	p.list(title, items)
}

// metrics writes the metrics of each measure in one item, those apart that count only if the
// client is recognised.
func (p *page) metrics(t *vocabulary.Vocabulary) {
	p.measured("Metrics:", t.Metrics, false)
	p.measured("Metrics, only if recognised:", t.Metrics, true)
}

func (p *page) measured(title string, metrics []table.Metric, everyday bool) {
	var order []string
	of := make(map[string][]string)
	for _, m := range metrics {
		if m.Everyday != everyday {
			continue
		}
		var notes []string
		if m.Unit != "" {
			notes = append(notes, unit(m.Unit))
		}
		if m.TokenType != "" {
			notes = append(notes, m.TokenType)
		}
		if m.PerDevice {
			notes = append(notes, "of one GPU")
		}
		if m.OfJob {
			notes = append(notes, "each rank reports that of all")
		}
		if m.Part != "" {
			notes = append(notes, m.Part)
		}
		if len(m.Repeats) > 0 {
			notes = append(notes, "repeats "+codes(m.Repeats))
		}
		item := code(m.Source)
		if len(notes) > 0 {
			item += " (" + strings.Join(notes, ", ") + ")"
		}
		if len(of[m.Measure]) == 0 {
			order = append(order, m.Measure)
		}
		of[m.Measure] = append(of[m.Measure], item)
	}
	var items []string
	for _, measure := range order {
		items = append(items, code(measure)+" ← "+strings.Join(of[measure], ", "))
	}
	p.list(title, items)
}

func code(text string) string { return "`" + text + "`" }

func codes(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = code(name)
	}
	return strings.Join(list, ", ")
}

func unit(u string) string {
	if u == "" {
		return ""
	}
	return code(u)
}
