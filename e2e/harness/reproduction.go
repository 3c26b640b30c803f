package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// The verdicts of a reproduction, by its exit code.
const (
	// NotReproduced says that the call did not fail.
	NotReproduced = 0
	// Reproduced says that the call failed as it did in production.
	Reproduced = 1
	// Refused says that a gate that the user can open is closed.
	Refused = 4
	// CannotRun says that something is missing, such as the call itself.
	CannotRun = 5
)

// reproductionTimeout bounds one run of a reproduction. The calls of the tests
// take milliseconds; the interpreter takes most of the time.
const reproductionTimeout = 2 * time.Minute

// Artifact is one reproduction that the collector wrote.
type Artifact struct {
	// Dir is the artifact's folder, and Group its group's, relative to the
	// directory of all.
	Dir   string
	Group string
	// TraceID and SpanID are those in the folder's name.
	TraceID string
	SpanID  string
}

// Script returns the path of the artifact's program.
func (a Artifact) Script() string { return filepath.Join(a.Dir, "repro.py") }

// artifactName is the layout of the names that the collector gives: time,
// trace id and span id.
var artifactName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-([0-9a-f]{32})-([0-9a-f]{16})$`)

var groupName = regexp.MustCompile(`^[0-9a-f]{16}$`)

// Artifacts returns the reproductions below a directory, or an error if it has
// anything that is not of their layout: a temporary file that was left behind,
// an artifact with a part missing, a name made of received data.
func Artifacts(dir string) ([]Artifact, error) {
	groups, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var artifacts []Artifact
	for _, group := range groups {
		if !group.IsDir() {
			// The directory's own files, such as its lock, begin with a dot.
			if group.Name()[0] == '.' {
				continue
			}
			return nil, fmt.Errorf("unexpected file %q", group.Name())
		}
		if !groupName.MatchString(group.Name()) {
			return nil, fmt.Errorf("unexpected folder %q", group.Name())
		}
		entries, err := os.ReadDir(filepath.Join(dir, group.Name()))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.Name() == "group.json" {
				continue
			}
			match := artifactName.FindStringSubmatch(entry.Name())
			if match == nil {
				return nil, fmt.Errorf("unexpected entry %q of group %s", entry.Name(), group.Name())
			}
			artifact := Artifact{
				Dir:     filepath.Join(dir, group.Name(), entry.Name()),
				Group:   group.Name(),
				TraceID: match[1],
				SpanID:  match[2],
			}
			for _, part := range []string{"repro.py", "trace.json", "report.md"} {
				if _, err := os.Stat(filepath.Join(artifact.Dir, part)); err != nil {
					return nil, err
				}
			}
			artifacts = append(artifacts, artifact)
		}
	}
	return artifacts, nil
}

// GroupCount returns how many failures a group has counted.
func GroupCount(dir, group string) (int64, error) {
	g, err := readGroup(dir, group)
	return g.Count, err
}

// GroupKind returns what the artifacts of a group do, such as "python_call".
func GroupKind(dir, group string) (string, error) {
	g, err := readGroup(dir, group)
	return g.Kind, err
}

type groupSummary struct {
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
}

func readGroup(dir, group string) (content groupSummary, err error) {
	text, err := os.ReadFile(filepath.Join(dir, group, "group.json")) //nolint:gosec // the tests name the folder
	if err != nil {
		return groupSummary{}, err
	}
	err = json.Unmarshal(text, &content)
	return content, err
}

// Reproduce runs an artifact as a user does, and returns its verdict and
// output. Modules in the folder modules, if it is not empty, come before those
// of Python's library; flags are the script's.
func Reproduce(tb testing.TB, script, modules string, flags ...string) (verdict int, output string) {
	tb.Helper()
	return ReproduceWith(tb, Python(tb), script, modules, flags...)
}

// ReproduceWith does the same with another interpreter, such as one that has
// the packages that the failed call needs.
func ReproduceWith(tb testing.TB, python, script, modules string, flags ...string) (verdict int, output string) {
	tb.Helper()
	env := []string{"PYTHONDONTWRITEBYTECODE=1"}
	if modules != "" {
		env = append(env, "PYTHONPATH="+modules)
	}
	return Run(tb, Command{
		Name: "repro.py",
		Path: python,
		Args: append([]string{script}, flags...),
		Env:  env,
	}, reproductionTimeout)
}
