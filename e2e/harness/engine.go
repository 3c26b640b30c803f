package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// engineVariable is the environment variable that names the container engine to
// test with, docker or podman. Without it the first that works is taken.
const engineVariable = "ENGINE"

// Engine is the command line of a container engine.
type Engine struct {
	name string
	// global come before the engine's command, run behind "run".
	global, run []string
}

// FindEngine returns the engine that docker/image.sh builds with. Where none
// works the test fails.
func FindEngine(tb testing.TB) *Engine {
	tb.Helper()
	names := []string{"docker", "podman"}
	if name := os.Getenv(engineVariable); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		engine := &Engine{name: name}
		if _, err := engine.command(tb, "info"); err == nil {
			return engine
		}
	}
	tb.Fatalf("none of %q works here; docker/image.sh says what to install", names)
	return nil
}

// Adapt finds what this machine's kernel and limits ask of the engine, by
// running a command in an image, and has it used from then on.
func (e *Engine) Adapt(tb testing.TB, image string, command ...string) {
	tb.Helper()
	// Podman asks for more open files than a machine without the privilege to
	// raise limits allows, and its usual runtime does not know every version of
	// control groups.
	limits := []string{"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"}
	type way struct{ global, run []string }
	ways := []way{{}}
	if e.name == "podman" {
		ways = append(ways, way{run: limits}, way{global: []string{"--runtime", "runc"}, run: limits})
	}
	var failures []string
	for _, way := range ways {
		e.global, e.run = way.global, way.run
		arguments := append([]string{"run", "--rm", "--network", "none", "--entrypoint", command[0]}, e.run...)
		arguments = append(append(arguments, image), command[1:]...)
		_, err := e.command(tb, arguments...)
		if err == nil {
			return
		}
		failures = append(failures, err.Error())
	}
	tb.Fatalf("%s cannot run %s:\n%s", e.name, image, strings.Join(failures, "\n"))
}

// String returns the engine's name.
func (e *Engine) String() string { return e.name }

// Command runs a command of the engine and returns its standard output. The
// test fails where the engine does.
func (e *Engine) Command(tb testing.TB, arguments ...string) string {
	tb.Helper()
	output, err := e.command(tb, arguments...)
	if err != nil {
		tb.Fatal(err)
	}
	return output
}

func (e *Engine) command(tb testing.TB, arguments ...string) (string, error) {
	command := exec.CommandContext(tb.Context(), e.name, append(e.global, arguments...)...) //nolint:gosec // the tests name the command
	return finish(command)
}

// finish runs a command to its end. What it wrote to standard error is part of
// the error.
func finish(command *exec.Cmd) (string, error) {
	var output, complaint bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaint
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(output.String()), nil
}

// cleanUp runs a command of the engine when the test has ended. Its context has
// ended by then.
func (e *Engine) cleanUp(tb testing.TB, arguments ...string) {
	command := exec.Command(e.name, append(e.global, arguments...)...) //nolint:gosec // the same
	if _, err := finish(command); err != nil {
		tb.Errorf("cleaning up: %v", err)
	}
}

// ImageConfig is what an image says how it wants to be run.
type ImageConfig struct {
	Size   int64
	Config struct {
		User         string
		Entrypoint   []string
		Cmd          []string
		Env          []string
		Labels       map[string]string
		ExposedPorts map[string]any
		Volumes      map[string]any
	}
}

// InspectImage returns what the engine knows of an image.
func (e *Engine) InspectImage(tb testing.TB, image string) ImageConfig {
	tb.Helper()
	var found []ImageConfig
	text := e.Command(tb, "image", "inspect", image)
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found) != 1 {
		tb.Fatalf("%s image inspect %s: %v, %d images", e, image, err, len(found))
	}
	return found[0]
}

// Export writes the file system of an image into an archive and returns the
// archive's path.
func (e *Engine) Export(tb testing.TB, image string) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "image.tar")
	container := e.Command(tb, "create", image)
	defer e.cleanUp(tb, "rm", "--force", "--volumes", container)
	e.Command(tb, "export", "--output", file, container)
	return file
}
