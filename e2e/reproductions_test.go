package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// testReproductions follows the failed calls of Snakepit, which carry their
// arguments, to programs that fail in the same way, and that do not once the
// defect is gone.
func testReproductions(t *testing.T, j *job) {
	failures := map[string]sentlog.Failure{}
	for _, failure := range j.sent.Summary.Scenarios["snakepit"].Truth.Failures {
		if !failure.Payload {
			continue
		}
		if _, known := failures[failure.Target]; !known {
			failures[failure.Target] = failure
		}
	}
	require.Contains(t, failures, "statistics.mean", "the workload has failed no call into statistics")

	for target, failure := range failures {
		t.Run(target, func(t *testing.T) {
			artifact := awaitArtifact(t, j, failure)
			verdict, output := harness.Reproduce(t, artifact.Script(), "")
			assert.Equal(t, harness.Reproduced, verdict, output)
			assert.Contains(t, output, failure.ExceptionMessage)

			require.EventuallyWithT(t, func(c *assert.CollectT) {
				counted, err := harness.GroupCount(j.reproductions, artifact.Group)
				assert.NoError(c, err)
				assert.Positive(c, counted)
			}, harness.ArrivalTimeout, harness.ArrivalPoll)
		})
	}

	t.Run("a repaired library does not reproduce", func(t *testing.T) {
		artifact := awaitArtifact(t, j, failures["statistics.mean"])
		patches := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(patches, "statistics.py"), []byte(repairedStatistics), 0o600))
		verdict, output := harness.Reproduce(t, artifact.Script(), patches)
		assert.Equal(t, harness.NotReproduced, verdict, output)
	})

	// An agent's code has no exception on its span, and its group is that of the
	// span that holds the code.
	t.Run("generated code", func(t *testing.T) {
		sent := map[string]bool{}
		for _, failure := range j.sent.Summary.Scenarios["taskweaver"].Truth.Failures {
			if failure.Name == "CodeExecutor.execute_code" {
				sent[failure.ExceptionMessage] = true
			}
		}
		require.NotEmpty(t, sent, "no code of the workload has failed")
		var codes []harness.Artifact
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			codes = nil
			artifacts, err := harness.Artifacts(j.reproductions)
			assert.NoError(c, err)
			for _, artifact := range artifacts {
				kind, err := harness.GroupKind(j.reproductions, artifact.Group)
				assert.NoError(c, err)
				if kind == "python_code" {
					codes = append(codes, artifact)
				}
			}
			assert.NotEmpty(c, codes)
		}, harness.ArrivalTimeout, harness.ArrivalPoll)
		for _, artifact := range codes {
			verdict, output := harness.Reproduce(t, artifact.Script(), "")
			assert.Equal(t, harness.Refused, verdict, output)
			verdict, output = harness.Reproduce(t, artifact.Script(), "", "--allow-side-effects")
			assert.Equal(t, harness.Reproduced, verdict, output)
			known := false
			for message := range sent {
				known = known || strings.Contains(output, message)
			}
			assert.True(t, known, output)
		}
	})

	t.Run("spans point at their files", func(t *testing.T) {
		for _, failure := range failures {
			stored := j.stored[failure.TraceID][failure.SpanID]
			path, _ := stored.Attributes["repro.artifact.path"].(string)
			fingerprint, _ := stored.Attributes["repro.artifact.fingerprint"].(string)
			require.NotEmpty(t, path, "span %s has no repro.artifact.path", failure.SpanID)
			require.NotEmpty(t, fingerprint)
			assert.DirExists(t, filepath.Join(j.reproductions, filepath.FromSlash(path)))
			assert.True(t, strings.HasPrefix(fingerprint, filepath.Base(path)), "the folder %s is not named after the fingerprint %s", path, fingerprint)
		}
	})

	t.Run("files are private", func(t *testing.T) {
		artifacts, err := harness.Artifacts(j.reproductions)
		require.NoError(t, err)
		for _, artifact := range artifacts {
			info, err := os.Stat(artifact.Script())
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			info, err = os.Stat(artifact.Dir)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		}
	})
}

// awaitArtifact waits for an artifact of the group that the failed span names.
// Equal failures share a few artifacts, so it need not be this span's own.
func awaitArtifact(t *testing.T, j *job, failure sentlog.Failure) harness.Artifact {
	t.Helper()
	group := filepath.Base(fmt.Sprint(j.stored[failure.TraceID][failure.SpanID].Attributes["repro.artifact.path"]))
	var found harness.Artifact
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		artifacts, err := harness.Artifacts(j.reproductions)
		assert.NoError(c, err)
		for _, artifact := range artifacts {
			if artifact.Group == group {
				found = artifact
				return
			}
		}
		assert.Fail(c, "no artifact yet", "group %s of %s, %d artifacts", group, failure.Target, len(artifacts))
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
	return found
}

// repairedStatistics is a version of Python's statistics module in which the
// mean of no data is not an error any more.
const repairedStatistics = `def mean(data):
    values = list(data)
    return sum(values) / len(values) if values else 0.0
`
