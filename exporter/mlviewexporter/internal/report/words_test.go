package report

import (
	"testing"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestWordsAreGenerated holds the words in Go against the file that people write.
func TestWordsAreGenerated(t *testing.T) {
	type file struct {
		Titles, States map[string]string
		Shades         map[string]int
	}
	of := golden.YAML[file](t, "words.yaml")
	golden.Variables(t, "generated_words.go", "report", "words.yaml",
		golden.Variable{Name: "titles", Comment: "are those of curves, and of numbers of a whole run.", Value: of.Titles},
		golden.Variable{Name: "stateWords", Comment: "say what a run does, by its state.", Value: of.States},
		golden.Variable{Name: "shades", Comment: "are the colors of states and uses: 0 for none of these.", Value: of.Shades})
}
