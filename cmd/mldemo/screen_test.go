package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the expected screens anew")

// firstScrape is the time of the first scrape of a golden case; the others
// follow 10 s apart. The testdata's timestamps belong to it.
var firstScrape = time.Unix(1795168800, 0).UTC()

// scrapedAt begins a scrape that says when it was taken.
const scrapedAt = "# scraped at "

// goldenPage makes a page of a case's scrapes.
func goldenPage(t *testing.T, folder string) page {
	t.Helper()
	scrapes, err := filepath.Glob(filepath.Join(folder, "*.prom"))
	require.NoError(t, err)
	require.NotEmpty(t, scrapes)
	slices.Sort(scrapes)
	h := &history{}
	at := firstScrape
	for i, path := range scrapes {
		at = firstScrape.Add(time.Duration(i) * 10 * time.Second)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		// What a collector really said keeps its own time.
		if first, _, found := strings.Cut(string(text), "\n"); found && strings.HasPrefix(first, scrapedAt) {
			seconds, err := strconv.ParseFloat(strings.TrimPrefix(first, scrapedAt), 64)
			require.NoError(t, err)
			at = time.UnixMilli(int64(seconds * 1000)).UTC()
		}
		scraped, err := parseScrape(strings.NewReader(string(text)), at, maxScrapeBytes)
		require.NoError(t, err)
		h.add(scraped)
	}
	return pageOf(takeSnapshot(h), at)
}

func pageOf(s snapshot, at time.Time) page {
	return page{
		snapshot: s, now: at, started: at.Add(-83 * time.Second),
		grpc: "127.0.0.1:4317", http: "127.0.0.1:4318", metrics: "127.0.0.1:8889",
		logs: []string{"demo-output/collector.log", "demo-output/mlgen.log"},
	}
}

func TestScreens(t *testing.T) {
	failed := &failure{
		errorType: "statistics.StatisticsError", message: "mean requires at least one data point", service: "snakepit.bridge",
		kind: "python_call", count: 12, groups: 3, seen: firstScrape.Add(5 * time.Second),
		script: "/home/me/demo-output/reproductions/0123456789abcdef/20261120T100000Z-0123456789abcdef0123456789abcdef-0123456789abcdef/repro.py",
	}
	hostile := &failure{
		errorType: "E\x1b[2J\u202e", message: "first\nsecond\x00" + strings.Repeat("y", 4000), service: "\x1b]0;t\x07",
		kind: kindContext, count: 1, groups: 1, seen: firstScrape.Add(-time.Hour), script: "/tmp/it's\x1b[2J \u05d0/repro.py",
	}
	for name, test := range map[string]struct {
		folder  string
		size    size
		failure *failure
		notes   []string
	}{
		"all":          {folder: "all", size: size{width: 140}, failure: failed},
		"all-80":       {folder: "all", size: size{width: 80}, failure: failed, notes: []string{"port 4317 moved"}},
		"all-40":       {folder: "all", size: size{width: 10}},
		"all-30-lines": {folder: "all", size: size{width: 140, height: 30}, failure: failed},
		"all-80x24":    {folder: "all", size: size{width: 80, height: 23}, failure: failed},
		"recorded":     {folder: "recorded", size: size{width: 120}},
		"empty":        {folder: "empty", size: size{width: 100}},
		"hostile":      {folder: "hostile", size: size{width: 160}, failure: hostile, notes: []string{"note\x1b[2J"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := goldenPage(t, filepath.Join("testdata", "screens", test.folder))
			p.failure, p.notes = test.failure, test.notes
			got := strings.Join(screen(p, test.size), "\n") + "\n"
			assertHarmless(t, got)
			expected := filepath.Join("testdata", "screens", test.folder, name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(expected, []byte(got), 0o600))
			}
			want, err := os.ReadFile(expected)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// assertHarmless checks that a text has nothing in it that a terminal would
// obey or hide.
func assertHarmless(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	for _, r := range text {
		if r != '\n' && !showsAsItIs(r) {
			t.Fatalf("the screen has a %U in it: %q", r, text)
		}
	}
}

func TestLinesFitTheWidth(t *testing.T) {
	for _, folder := range []string{"all", "recorded", "empty", "hostile"} {
		p := goldenPage(t, filepath.Join("testdata", "screens", folder))
		for width := narrowest; width <= 200; width += 7 {
			for _, line := range screen(p, size{width: width}) {
				if cells(line) > width {
					// What has to be copied or believed stays whole.
					assert.Regexp(t, `^(SIMULATED|  OTEL_|SEND YOUR OWN|metrics: |note: )`, line)
				}
			}
		}
	}
}

func TestFewerRowsWhereTheScreenIsLow(t *testing.T) {
	p := goldenPage(t, filepath.Join("testdata", "screens", "hostile"))
	high := screen(p, size{width: 160})
	low := screen(p, size{width: 160, height: 40})
	assert.Greater(t, len(high), 40)
	assert.LessOrEqual(t, len(low), 40)
	assert.Contains(t, strings.Join(low, "\n"), "more")
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"–":          rateText(reading{}),
		"0":          rateText(known(0)),
		"0.05":       rateText(known(0.05)),
		"12.3":       rateText(known(12.34)),
		"1234":       rateText(known(1234.4)),
		"100.0k":     countText(known(99_999.9)),
		"1.0M":       countText(known(999_999)),
		"1.00e+300":  countText(known(1e300)),
		"0.3123":     lossText(known(0.31234)),
		"1.00e-05":   lossText(known(0.00001)),
		"0.0000":     lossText(known(0)),
		"59s ago":    ageText(known(59.9)),
		"1m00s ago":  ageText(known(60)),
		"1h01m ago":  ageText(known(3661)),
		"3d ago":     ageText(known(3 * 86400)),
		"long ago":   ageText(known(1e300)),
		"87%":        shareText(known(0.87)),
		"39.5":       memoryText(known(39.5 * (1 << 30))),
		"8.08e+08 W": numberWithUnit(known(808334905), " W"),
	} {
		assert.Equal(t, want, got)
	}
}
