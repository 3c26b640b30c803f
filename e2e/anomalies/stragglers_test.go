package anomalies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// stragglers are replays of the profiled trainings, as they were and changed.
var stragglers = []struct {
	name, profile string
	change        func(p *profile)
	// evidence is what is said, "" if nothing is reported.
	evidence string
}{
	{"AR: 16 workers of 4 GPUs, one of them is slow", "AR", nil, "rank 0 (h0): 45.4 s of computing a step, the others 19.3"},
	{"the same, ranks say their stage", "AR", stages, "rank 0 (h0): 45.4 s of computing a step, the others 19.3"},
	{"AR, the slow one computes as another", "AR", as(worker{0, 0}, worker{1, 0}), ""},
	{"AR, each step another is slow: the data", "AR", shuffle, ""},
	{"ST: 2 workers in each of 4 stages, the last of which is slow", "ST", nil, "rank 6 (h0) and 1 rank more: 1.3"},
	{"the same, ranks say their stage", "ST", stages, "rank 6 (h0) and 1 rank more, all of stage 3: 1.3"},
	{"ST, the last stage computes as another", "ST", as(worker{0, 3}, worker{0, 2}, worker{1, 3}, worker{1, 2}), ""},
	{"ST, each step others are slow: the data", "ST", shuffle, ""},
}

// TestStragglers replays trainings that a worker or a stage of the pipeline keeps waiting, as
// those who profiled them have found. Who it is, is named; nobody is where nobody is slow.
func TestStragglers(t *testing.T) {
	reported := make([]string, len(stragglers))
	t.Run("all", func(t *testing.T) {
		for i, test := range stragglers {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					p, err := readProfile(test.profile)
					require.NoError(t, err)
					if test.change != nil {
						test.change(p)
					}
					seen, err := p.replay(t.Context())
					require.NoError(t, err)
					if test.evidence == "" {
						assert.Empty(t, seen)
						return
					}
					require.Len(t, seen, 1)
					assert.Equal(t, mlattr.ProblemSlow, seen[0].kind)
					assert.Contains(t, seen[0].evidence, test.evidence)
					reported[i] = seen[0].evidence
				})
			})
		}
	})
	var section strings.Builder
	section.WriteString(stragglersHead + "\n\n| training | what `slow` says |\n|---|---|\n")
	var nothing []string
	for i, test := range stragglers {
		if reported[i] == "" {
			nothing = append(nothing, test.name)
			continue
		}
		fmt.Fprintf(&section, "| %s | %s |\n", test.name, strings.TrimSuffix(reported[i], "; "))
	}
	fmt.Fprintf(&section, "\nNothing is reported of these: %s.\n", strings.Join(nothing, "; "))
	checkSection(t, stragglersHead, section.String())
}

const stragglersHead = `## Who is slow in real trainings

Two trainings that were profiled because they were slow ([source](../../e2e/anomalies/testdata/real/README.md)).
Without its slowest workers, the step of AR would take 23.4 s instead of 46.3 s; without its slowest stage, that
of ST 1.77 s instead of 2.17 s, as those say who profiled them.`

func stages(p *profile) { p.staged = true }

// as has workers do what others did: each first one of the pairs what the second did.
func as(pairs ...worker) func(p *profile) {
	return func(p *profile) {
		for _, step := range p.steps {
			for pair := range slices.Chunk(pairs, 2) {
				step[slices.Index(p.workers, pair[0])] = step[slices.Index(p.workers, pair[1])]
			}
		}
	}
}

// shuffle has another worker do in each step what a worker did.
func shuffle(p *profile) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, step := range p.steps {
		random.Shuffle(len(step), func(i, j int) { step[i], step[j] = step[j], step[i] })
	}
}
