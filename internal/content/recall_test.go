package content

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the figures of docs/evidence/redaction.md")

var page = filepath.Join("..", "..", "docs", "evidence", "redaction.md")

// reads reports whether a part of p's secret can be read in text.
func (p planted) reads(text string) bool {
	for _, part := range p.parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return strings.Contains(text, encoded("x "+p.text)) || p.key != "" && strings.Contains(text, encoded(p.key+"="+p.text))
}

// redacted returns text without its secrets, as repro_gen writes what stands
// under key.
func redacted(key, text string) string {
	if IsSecret(key, text) {
		return Mark("key")
	}
	text, _ = Redact(text)
	return text
}

// tally counts the places at which secrets were put, and where they were found.
type tally struct{ places, found int }

func (t tally) row(name string) string {
	return fmt.Sprintf("| %s | %d | %s |\n", name, t.places, percent(t.found, t.places))
}

// percent rounds down, so that 100 % means all.
func percent(n, of int) string {
	tenths := n * 1000 / of
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}

// recall puts each secret of the corpus at each position.
func recall() string {
	classes, positions := map[string]*tally{}, map[string]*tally{}
	var all tally
	var classOrder, positionOrder []string
	missed := map[string][]string{}
	forms := map[string]int{}
	for _, p := range corpus(rand.New(rand.NewPCG(13, 7))) {
		forms[p.class]++
		for _, at := range positionsOf(p) {
			key, text := at.put(p)
			if text == "" {
				continue
			}
			if classes[p.class] == nil {
				classes[p.class], classOrder = &tally{}, append(classOrder, p.class)
			}
			if positions[at.name] == nil {
				positions[at.name], positionOrder = &tally{}, append(positionOrder, at.name)
			}
			found := !p.reads(redacted(key, text))
			for _, t := range []*tally{classes[p.class], positions[at.name], &all} {
				t.add(found)
			}
			if !found {
				missed[p.name+p.key] = append(missed[p.name+p.key], at.name)
			}
		}
	}
	var out strings.Builder
	out.WriteString("| kind of secret | places | found |\n|---|---|---|\n")
	for _, class := range classOrder {
		out.WriteString(classes[class].row(fmt.Sprintf("%s: %d forms", class, forms[class])))
	}
	out.WriteString(all.row("all"))
	shares := make(map[string][]string)
	for _, name := range positionOrder {
		share := percent(positions[name].found, positions[name].places)
		shares[share] = append(shares[share], name)
	}
	var places []string
	for _, share := range slices.Sorted(maps.Keys(shares)) {
		places = append(places, share+" in "+strings.Join(shares[share], ", "))
	}
	fmt.Fprintf(&out, "\nBy place: %s.\n\nWhat was missed:\n\n", strings.Join(places, "; "))
	for _, form := range slices.Sorted(keysOf(missed)) {
		in := strings.Join(missed[form], ", ")
		if n := len(missed[form]); n > 3 {
			in = fmt.Sprintf("%d places", n)
		}
		fmt.Fprintf(&out, "- `%s` in %s\n", form, in)
	}
	return out.String()
}

func (t *tally) add(found bool) {
	t.places++
	if found {
		t.found++
	}
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// The page has the figures that are measured here, so a rule that finds less
// than it did fails this test.
func TestFiguresOfPage(t *testing.T) {
	sections := map[string]string{"recall": recall(), "alarms": falseAlarms(t)}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	got := string(text)
	for name, section := range sections {
		start, end := "<!-- "+name+": written by a test -->\n", "<!-- end of "+name+" -->"
		before, rest, found := strings.Cut(got, start)
		require.True(t, found, "docs/evidence/redaction.md has no %q", start)
		_, after, found := strings.Cut(rest, end)
		require.True(t, found, "docs/evidence/redaction.md has no %q", end)
		got = before + start + section + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(got), 0o600))
	}
	assert.Equal(t, string(text), got, "with -update this test writes the page; read what changed")
}
