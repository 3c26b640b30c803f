package harness

import (
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// ComposeOptions say how to read compose files.
type ComposeOptions struct {
	// Files are read one over the other.
	Files []string
	// Profiles are the active ones.
	Profiles []string
	// Env has the variables that the files refer to, as "KEY=value". The
	// test's own environment is not used.
	Env []string
}

// LoadCompose reads compose files as Compose does: a key that it does not know
// fails the test.
func LoadCompose(tb testing.TB, options ComposeOptions) *types.Project {
	tb.Helper()
	project, err := cli.NewProjectOptions(options.Files,
		cli.WithProfiles(options.Profiles), cli.WithEnv(options.Env))
	if err != nil {
		tb.Fatal(err)
	}
	loaded, err := project.LoadProject(tb.Context())
	if err != nil {
		tb.Fatalf("%v: %v", options.Files, err)
	}
	return loaded
}

// StackFile and StackGPUFile are the compose files of the stack.
func StackFile() string { return Path("docker", "compose.yaml") }

// StackGPUFile is the one that adds a host's GPUs.
func StackGPUFile() string { return Path("docker", "compose.gpu.yaml") }
