package smoke

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

var (
	fenced    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	dropped   = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	linkTexts = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
)

// A link to a file of the repository has to lead to one, and behind a # to one of
// its headings.
func TestDocumentedLinks(t *testing.T) {
	files, err := documents.Files(harness.Path())
	require.NoError(t, err)
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return fenced.ReplaceAllString(string(text), "")
	}
	for _, file := range files {
		path := harness.Path(file)
		for _, match := range link.FindAllStringSubmatch(read(path), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			name, anchor, _ := strings.Cut(match[1], "#")
			target := path
			if name != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(name))
			}
			if _, err := os.Stat(target); !assert.NoError(t, err, "%s links to %s", file, match[1]) || anchor == "" {
				continue
			}
			assert.Contains(t, anchors(read(target)), anchor, "%s links to %s", file, match[1])
		}
	}
}

// anchors returns what GitHub calls the headings of a document.
func anchors(text string) []string {
	var names []string
	for _, match := range headings.FindAllStringSubmatch(text, -1) {
		title := linkTexts.ReplaceAllString(match[1], "$1")
		title = dropped.ReplaceAllString(strings.ToLower(title), "")
		names = append(names, strings.ReplaceAll(title, " ", "-"))
	}
	return names
}
