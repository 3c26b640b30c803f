package smoke

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// dockerfile reads a Dockerfile as BuildKit does. What its linter says is an
// error.
func dockerfile(t *testing.T, elements ...string) ([]instructions.Stage, []instructions.ArgCommand) {
	t.Helper()
	file, err := os.Open(harness.Path(elements...))
	require.NoError(t, err)
	defer func() { assert.NoError(t, file.Close()) }()
	parsed, err := parser.Parse(file)
	require.NoError(t, err)
	assert.Empty(t, parsed.Warnings)
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, at []parser.Range) {
		assert.Fail(t, "the linter complains", "%s: %s at %v", rule, message, at)
	}})
	stages, arguments, err := instructions.Parse(parsed.AST, lint)
	require.NoError(t, err)
	require.NotEmpty(t, stages)
	return stages, arguments
}

// ofKind returns the commands of one kind of a stage.
func ofKind[C any](stage instructions.Stage) []C {
	var found []C
	for _, command := range stage.Commands {
		if command, ok := command.(C); ok {
			found = append(found, command)
		}
	}
	return found
}

func imageStage(t *testing.T) instructions.Stage {
	t.Helper()
	stages, _ := dockerfile(t, "docker", "Dockerfile")
	return stages[len(stages)-1]
}

// imageEnv returns the variables that the image sets, as "KEY=value".
func imageEnv(t *testing.T) []string {
	t.Helper()
	var env []string
	for _, command := range ofKind[*instructions.EnvCommand](imageStage(t)) {
		for _, pair := range command.Env {
			env = append(env, pair.Key+"="+pair.Value)
		}
	}
	require.NotEmpty(t, env)
	return env
}

// copiedTo returns the file of the build context that the image has at a path.
func copiedTo(t *testing.T, target string) string {
	t.Helper()
	for _, command := range ofKind[*instructions.CopyCommand](imageStage(t)) {
		if command.From == "" && command.DestPath == target {
			return harness.Path(filepath.FromSlash(command.SourcePaths[0]))
		}
	}
	require.Fail(t, "no file of the repository is copied to "+target)
	return ""
}

// What others rely on: it takes the stock image's place in a compose file, and
// what it asks for is what SECURITY.md promises.
func TestImage(t *testing.T) {
	stage := imageStage(t)
	assert.Equal(t, "scratch", stage.BaseName)

	entry := ofKind[*instructions.EntrypointCommand](stage)
	require.Len(t, entry, 1)
	assert.False(t, entry[0].PrependShell)
	assert.Equal(t, []string{"/otelcol-ml"}, entry[0].CmdLine)
	command := ofKind[*instructions.CmdCommand](stage)
	require.Len(t, command, 1)
	assert.False(t, command[0].PrependShell)
	assert.Equal(t, []string{"--config", "/etc/otelcol-ml/config.yaml"}, command[0].CmdLine)
	assert.Equal(t, harness.Path("distribution", "config", "agent.yaml"), copiedTo(t, command[0].CmdLine[1]))

	users := ofKind[*instructions.UserCommand](stage)
	require.Len(t, users, 1)
	assert.Equal(t, "10001:10001", users[0].User)
	exposed := ofKind[*instructions.ExposeCommand](stage)
	require.Len(t, exposed, 1)
	assert.ElementsMatch(t, []string{"4317", "4318", "8888", "8889", "8890", "13133"}, exposed[0].Ports)
	volumes := ofKind[*instructions.VolumeCommand](stage)
	require.Len(t, volumes, 1)
	assert.Equal(t, []string{"/var/lib/otelcol-ml/queue", "/var/lib/otelcol-ml/reproductions", "/var/lib/otelcol-ml/state"}, volumes[0].Volumes)
	assert.Contains(t, imageEnv(t), "OTELCOL_ML_REPRO_DIR="+volumes[0].Volumes[1])
	assert.Contains(t, imageEnv(t), "OTELCOL_ML_STATE_DIR="+volumes[0].Volumes[2])

	labels := map[string]string{}
	for _, command := range ofKind[*instructions.LabelCommand](stage) {
		for _, pair := range command.Labels {
			labels[pair.Key] = strings.Trim(pair.Value, `"`)
		}
	}
	for _, key := range []string{"title", "description", "url", "source", "documentation", "licenses", "vendor", "version", "revision", "created"} {
		assert.NotEmpty(t, labels["org.opencontainers.image."+key], key)
	}
	assert.Equal(t, "Apache-2.0", labels["org.opencontainers.image.licenses"])
	_, page, found := strings.Cut(labels["org.opencontainers.image.documentation"], "/blob/main/")
	require.True(t, found)
	assert.FileExists(t, harness.Path(filepath.FromSlash(page)))
}

func TestImageVersionIsTheManifests(t *testing.T) {
	version := readManifest(t).Dist.Version
	stages, _ := dockerfile(t, "docker", "Dockerfile")
	for _, stage := range stages {
		for _, command := range ofKind[*instructions.ArgCommand](stage) {
			for _, argument := range command.Args {
				if argument.Key == "VERSION" {
					require.NotNil(t, argument.Value)
					assert.Equal(t, version, *argument.Value)
				}
			}
		}
	}
}

// Each stage begins with a named image of a release, and each file that is
// copied from the build context is in it.
func TestImageStages(t *testing.T) {
	matcher := ignored(t)
	stages, arguments := dockerfile(t, "docker", "Dockerfile")
	defaults := map[string]string{}
	for _, argument := range arguments {
		for _, pair := range argument.Args {
			if pair.Key == "BUILDPLATFORM" {
				continue // that of the machine, which Docker knows
			}
			require.NotNil(t, pair.Value, pair.Key)
			defaults[pair.Key] = *pair.Value
		}
	}
	names := map[string]bool{"scratch": true}
	for _, stage := range stages {
		base := stage.BaseName
		for key, value := range defaults {
			base = strings.ReplaceAll(base, "${"+key+"}", value)
		}
		if !names[base] {
			assert.Regexp(t, `^[a-z]+:[a-z0-9.-]*(bookworm)[a-z-]*$`, base, "the base is one release of Debian")
		}
		names[stage.Name] = true
		for _, command := range ofKind[*instructions.CopyCommand](stage) {
			if command.From != "" {
				assert.True(t, names[command.From], "COPY --from=%s", command.From)
				continue
			}
			for _, source := range command.SourcePaths {
				if source == "." {
					continue
				}
				for key, value := range defaults {
					source = strings.ReplaceAll(source, "${"+key+"}", value)
				}
				out, err := matcher.MatchesOrParentMatches(path.Clean(source))
				require.NoError(t, err)
				assert.False(t, out, ".dockerignore leaves %s out", source)
				if !strings.HasPrefix(source, "bin/") {
					_, err := os.Stat(harness.Path(filepath.FromSlash(source)))
					assert.NoError(t, err)
				}
			}
		}
	}
}

// Whatever is compiled into the image is in its build context, and nothing is
// that people would not look for there.
func TestImageContext(t *testing.T) {
	matcher := ignored(t)
	excluded := func(name string) bool {
		out, err := matcher.MatchesOrParentMatches(name)
		require.NoError(t, err)
		return out
	}
	for _, folder := range []string{"distribution", "exporter", "receiver", "processor", "connector", "extension", "internal", "cmd/healthcheck", "cmd/queuecheck"} {
		root := harness.Path(filepath.FromSlash(folder))
		require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if entry.Name() == "testdata" {
					return filepath.SkipDir
				}
				return nil
			}
			name, err := filepath.Rel(harness.Path(), file)
			if err != nil {
				return err
			}
			assert.False(t, excluded(filepath.ToSlash(name)), "%s is not in the build context", name)
			return nil
		}))
	}
	assert.False(t, excluded("bin/licenses/example.org/testdata/LICENSE"), "a licence is not in the build context")
	for _, name := range []string{".git/config", ".cache/bin/syft", "bin/mlgen", "demo-output/collector.log", "e2e/go.mod", "docs/operations.md", "docker/compose.yaml", ".env"} {
		assert.True(t, excluded(name), "%s is in the build context", name)
	}
}

func ignored(t *testing.T) *patternmatcher.PatternMatcher {
	t.Helper()
	file, err := os.Open(harness.Path(".dockerignore"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, file.Close()) }()
	patterns, err := ignorefile.ReadAll(file)
	require.NoError(t, err)
	matcher, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	return matcher
}
