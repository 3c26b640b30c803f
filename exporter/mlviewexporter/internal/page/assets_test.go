package page

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vendored are the checksums of the files of the npm package uplot 1.6.32.
var vendored = map[string]string{
	"uPlot.LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
	"uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
	"uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}

// markup are the ways in which a text could become markup or a program, and those
// that the Content-Security-Policy forbids.
var markup = regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment|DOMParser|srcdoc|setHTML|javascript:|setAttribute\(\s*['"](on|style)|\.on[a-z]+\s*=\s*['"]`)

func files(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	require.NoError(t, fs.WalkDir(embedded, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(embedded, name)
		found[path.Base(name)] = string(content)
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

func TestVendoredFilesAreThoseOfThePackage(t *testing.T) {
	all := files(t)
	for name, sum := range vendored {
		got := sha256.Sum256([]byte(all[name]))
		assert.Equal(t, sum, hex.EncodeToString(got[:]), name)
	}
}

func TestNoFileMakesMarkupOfText(t *testing.T) {
	for name, content := range files(t) {
		assert.Empty(t, markup.FindAllString(content, -1), name)
	}
}

func TestThePageLoadsNothingFromElsewhere(t *testing.T) {
	loads := regexp.MustCompile(`(?:src|href)="([^"]*)"|from '([^']*)'|import\(([^)]*)\)|url\(([^)]*)\)|@import ([^;]*)|new EventSource\('([^']*)'`)
	all := files(t)
	for name, content := range all {
		if vendored[name] != "" {
			continue
		}
		for _, m := range loads.FindAllStringSubmatch(content, -1) {
			target := strings.Join(m[1:], "")
			if file, ok := strings.CutPrefix(target, "./"); ok {
				assert.Contains(t, all, file, name)
				continue
			}
			assert.Regexp(t, `^(/[^/\\]|#)`, target, name)
			if file, ok := strings.CutPrefix(target, "/assets/"); ok {
				assert.Contains(t, all, file, name)
			}
		}
	}
}

func TestTheDocumentHasNothingInline(t *testing.T) {
	index := files(t)["index.html"]
	assert.NotRegexp(t, `(?i)<style|\sstyle=|\son[a-z]+=`, index)
	for _, script := range regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(index, -1) {
		assert.Contains(t, script[0], "src=")
		assert.Empty(t, script[1])
	}
}

func TestEveryNumberHasItsDefinition(t *testing.T) {
	all := files(t)
	defined := regexp.MustCompile(`<dt id="def-([a-z_]+)">[^<]+</dt><dd>[^<]+</dd>`).FindAllStringSubmatch(all["index.html"], -1)
	known := make(map[string]bool)
	for _, d := range defined {
		assert.False(t, known[d[1]], "%s is defined twice", d[1])
		known[d[1]] = true
	}
	used := make(map[string]bool)
	for name, content := range all {
		if path.Ext(name) != ".js" || vendored[name] != "" {
			continue
		}
		for _, m := range regexp.MustCompile(`\bdef: '([a-z_]+)'|#def-([a-z_]+)'|fact\('[^']*', '([a-z_]+)'|head\([^,]*, '([a-z_]+)'\)|num\('[a-z_]+', '[^']*', '([a-z_]+)'`).FindAllStringSubmatch(content, -1) {
			def := strings.Join(m[1:], "")
			assert.True(t, known[def], "%s: %s has no definition", name, def)
			used[def] = true
		}
	}
	for def := range known {
		assert.True(t, used[def], "nothing leads to the definition of %s", def)
	}
}

func TestThePageIsSmall(t *testing.T) {
	own, zipped := 0, 0
	for name, file := range assets() {
		if vendored[name] == "" {
			own += len(file.plain)
		}
		zipped += len(file.zip())
	}
	assert.Less(t, own, 180_000, "bytes without uPlot")
	assert.Less(t, zipped, 90_000, "compressed bytes with uPlot")
	t.Logf("%d bytes without uPlot, %d compressed with it", own, zipped)
}

// Each module can be read without those that use it.
func TestModulesFormNoCircle(t *testing.T) {
	imports := regexp.MustCompile(`from '\./([a-z]+\.js)'`)
	all := files(t)
	var visit func(name string, path []string)
	visit = func(name string, path []string) {
		require.NotContains(t, path, name)
		for _, m := range imports.FindAllStringSubmatch(all[name], -1) {
			visit(m[1], append(slices.Clone(path), name))
		}
	}
	visit("main.js", nil)
}

// A script is served without its comments, and otherwise as it is written.
func TestScriptsHaveNoComments(t *testing.T) {
	for name, file := range assets() {
		if path.Ext(name) != ".js" || vendored[name] != "" {
			continue
		}
		written, err := embedded.ReadFile("assets/" + name)
		require.NoError(t, err)
		var code []string
		for line := range strings.Lines(string(written)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "//") {
				code = append(code, line)
			}
		}
		assert.Equal(t, strings.Join(code, ""), string(file.plain), name)
		assert.Less(t, len(code), strings.Count(string(written), "\n"), name)
	}
}

// deuteranopia is what is left of linear red, green and blue without the cones of green
// (G. M. Machado et al., 2009).
var deuteranopia = [3][3]float64{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}

// luminance returns the relative luminance of a color (WCAG 2.2), as somebody sees it with
// all cones or without those of green.
func luminance(t *testing.T, hex string, blind bool) float64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 24)
	require.NoError(t, err)
	var linear [3]float64
	for i := range linear {
		v := float64(n>>(16-8*i)&0xff) / 255
		if linear[i] = v / 12.92; v > 0.04045 {
			linear[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	if blind {
		seen := [3]float64{}
		for i, row := range deuteranopia {
			seen[i] = min(1, max(0, row[0]*linear[0]+row[1]*linear[1]+row[2]*linear[2]))
		}
		linear = seen
	}
	return 0.2126*linear[0] + 0.7152*linear[1] + 0.0722*linear[2]
}

// What a GPU does can be told without color: the states differ in lightness, in both
// themes and for somebody who does not see green, and each has a letter. The texts on them
// can be read.
func TestStatesDifferWithoutColor(t *testing.T) {
	css := files(t)["style.css"]
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(css, -1)
	require.Len(t, themes, 2)
	for i, theme := range []string{"light", "dark"} {
		colors := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(themes[i][1], -1) {
			colors[m[1]] = m[2]
		}
		contrast := func(a, b string, blind bool) float64 {
			one, other := luminance(t, colors[a], blind), luminance(t, colors[b], blind)
			return (max(one, other) + 0.05) / (min(one, other) + 0.05)
		}
		for _, pair := range [][2]string{{"hung", "slow"}, {"hung", "working"}, {"slow", "working"}} {
			for _, blind := range []bool{false, true} {
				assert.Greater(t, contrast(pair[0], pair[1], blind), 1.75, "%s: %v, deuteranopia %v", theme, pair, blind)
			}
		}
		for _, text := range [][2]string{{"on-hung", "hung"}, {"on-hung", "failed"}, {"on-hung", "idle"}, {"on-slow", "slow"}, {"on-working", "working"}} {
			assert.Greater(t, contrast(text[0], text[1], false), 4.5, "%s: %v", theme, text)
		}
	}
	letters := map[string]bool{}
	for _, m := range regexp.MustCompile(`\.dot\.a-([a-z_]+)::before \{ content: "(.)" / ""; \}`).FindAllStringSubmatch(css, -1) {
		letters[m[2]] = true
	}
	assert.Len(t, letters, 7, "each state has a letter of its own")
}
