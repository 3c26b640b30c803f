package problem

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

// maxVerdicts limits the file with the name, in bytes.
const nameOfVerdicts, maxVerdicts = "verdicts", 4 << 20

// Verdict is what people say of a problem of a kind: that it was right, or wrong.
type Verdict struct{ Kind, Is string }

// Verdicts counts the problems with each.
type Verdicts map[Verdict]int

// ReadVerdicts reads the file "verdicts" of a directory, if there are both. Each line has the
// kind and the id of a problem, right or wrong, and what else anybody wants to say. The last one
// of a problem counts.
func ReadVerdicts(directory string) (Verdicts, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // what keeps a state there says so
	}
	data, err := saved.ReadFile(root, nameOfVerdicts, maxVerdicts)
	if err = errors.Join(err, root.Close()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	last, all := make(map[string]Verdict), make(Verdicts)
	for line := range strings.Lines(string(data)) {
		words := append(strings.Fields(line), "", "", "")
		if _, known := mlattr.ProblemNamed(words[0]); known && (words[2] == "right" || words[2] == "wrong") {
			last[words[1]] = Verdict{words[0], words[2]}
		}
	}
	for _, verdict := range last {
		all[verdict]++
	}
	return all, nil
}

// Of says how many of the problems of a kind were right, "" if nobody has said so.
func (v Verdicts) Of(kind string) string {
	right, wrong := v[Verdict{kind, "right"}], v[Verdict{kind, "wrong"}]
	if right+wrong == 0 {
		return ""
	}
	return fmt.Sprintf("by the verdicts here, %d of %d such problems were right", right, right+wrong)
}
