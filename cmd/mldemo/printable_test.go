package main

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"plain – ü 你 🙂":                     "plain – ü 你 🙂",
		"a\tb\nc\r":                         `a\tb\nc\x0d`,
		"\x1b[31mred":                       `\x1b[31mred`,
		"\x7f\u0080\u009b2J":                `\x7f\u0080\u009b2J`,
		"\xff\xfe":                          `\xff\xfe`,
		"\u202eabc\u202c":                   `\u202eabc\u202c`,
		"\u05d0":                            `\u05d0`,
		"e\u0301\u200d\ufe0f":               `e\u0301\u200d\ufe0f`,
		"\U000e0041\U0010ffff":              `\U000e0041\U0010ffff`,
		"\u00a0\u2028\u3000":                `\u00a0\u2028\u3000`,
		strings.Repeat("a", maxTextRunes+1): strings.Repeat("a", maxTextRunes) + "…",
	} {
		assert.Equal(t, want, printable(text))
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abc", 1, "…"}, {"abc", 0, ""}, {"abc", -1, ""},
		// A character of two cells does not fit into one.
		{"你好", 4, "你好"}, {"你好吗", 4, "你…"}, {"你好吗", 5, "你好…"},
	} {
		assert.Equal(t, test.want, cut(test.text, test.limit))
	}
}

func TestShellQuote(t *testing.T) {
	for argument, want := range map[string]string{
		"":                   "''",
		"/a/b-c_1.py":        "/a/b-c_1.py",
		"/a b":               "'/a b'",
		"it's":               `'it'\''s'`,
		"$(reboot)":          "'$(reboot)'",
		"~/x":                "'~/x'",
		"a\x1b[2J'\\":        `$'a\033[2J\'\\'`,
		"\u202e1":            `$'\342\200\2561'`,
		"\x001\xff":          `$'\0001\377'`,
		"name\nwith newline": `$'name\012with newline'`,
	} {
		assert.Equal(t, want, shellQuote(argument))
	}
}

// FuzzShellQuote lets a shell read what was quoted.
func FuzzShellQuote(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("there is no bash to read the words")
	}
	for _, seed := range []string{"", "a b", "it's", "\x1b'\\\n1", "$(id)", "\u202e", "\xff0", "-n", "*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, argument string) {
		if strings.ContainsRune(argument, 0) || len(argument) > 1000 {
			t.Skip("no path has this")
		}
		quoted := shellQuote(argument)
		for _, r := range quoted {
			require.True(t, r >= 0x20 && r <= 0x7e)
		}
		output, err := exec.Command(bash, "-c", "printf %s/ "+quoted).Output()
		require.NoError(t, err)
		assert.Equal(t, argument+"/", string(output))
	})
}

// FuzzScreen feeds any text to the parser and any label to the screen.
func FuzzScreen(f *testing.F) {
	f.Add("# TYPE ml_steps_total counter\nml_steps_total{job=\"a\"} 1\n", "\x1b[2J", 1.5, 80)
	f.Add("ml_loss NaN\n", "\u202e", -1.0, 0)
	f.Add("# TYPE tuft_training_tokens_per_second histogram\ntuft_training_tokens_per_second_count 1\n", "\xff", 1e300, 400)
	f.Fuzz(func(t *testing.T, text, label string, value float64, width int) {
		h := &history{}
		at := firstScrape
		if s, err := parseScrape(strings.NewReader(text), at, maxScrapeBytes); err == nil {
			h.add(s)
		}
		for i := range 2 {
			labels := map[string]string{}
			for _, name := range []string{
				labelService, labelRun, labelRank, labelRole, labelTokenType, labelModel, labelLossScope, labelGPU, labelHost,
				labelGPUIndex, labelGPUSource, labelJoin, "slurm_job_id",
			} {
				labels[name] = label
			}
			s := &scrape{at: at.Add(refreshInterval), families: map[string]map[string]sample{}}
			at = s.at
			for name := range shownMetrics {
				s.families[name] = map[string]sample{seriesID(labels): {labels: labels, value: value * float64(i+1)}}
			}
			h.add(s)
			p := pageOf(takeSnapshot(h), at)
			p.failure = &failure{errorType: label, message: label, service: label, count: int64(i), script: label}
			p.notes = []string{label}
			fit := clampSize(width, width)
			screenText := strings.Join(screen(p, fit), "\n")
			require.True(t, utf8.ValidString(screenText))
			assertHarmless(t, screenText)
			assert.Contains(t, screenText, "SIMULATED")
			assert.NotContains(t, screenText, "NaN")
		}
	})
}
