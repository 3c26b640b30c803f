//go:build cgo && linux

package gpureceiver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// One process can load one NVML library only: a second one would use the
// first one's symbols. Each scenario therefore runs in a process of its own,
// this test's program started again, and a process that ends early, as one
// does at a missing symbol, is seen from outside.
const (
	scenarioVariable = "GPU_TEST_SCENARIO"
	libraryVariable  = "GPU_TEST_LIBRARY"
	controlVariable  = "FAKE_NVML_CONTROL"
	// liveMarker is printed by a scenario that has come to its end.
	liveMarker = "the process lives"
)

func TestNVML(t *testing.T) {
	if os.Getenv(scenarioVariable) != "" {
		t.Skip("this is a scenario's process")
	}
	library := libraryBuilder(t)
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control := filepath.Join(t.TempDir(), "control")
			require.NoError(t, os.WriteFile(control, []byte(s.control+"\n"), 0o600))
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNVMLScenario$", "-test.count=1", "-test.v", "-update="+strconv.FormatBool(*golden.Update))
			command.Env = append(os.Environ(), scenarioVariable+"="+name, libraryVariable+"="+library(t, s.library), controlVariable+"="+control)
			output, err := command.CombinedOutput()
			require.NoError(t, err, "%s", output)
			require.Contains(t, string(output), liveMarker)
		})
	}
}

// TestNVMLScenario is the inside of a scenario's process.
func TestNVMLScenario(t *testing.T) {
	name := os.Getenv(scenarioVariable)
	if name == "" {
		t.Skip("runs in the processes that TestNVML starts")
	}
	scenarios[name].run(t, &fakeDriver{
		library: os.Getenv(libraryVariable),
		control: os.Getenv(controlVariable),
	})
	fmt.Println(liveMarker)
}

// scenario is a driver and what the receiver makes of it.
type scenario struct {
	// library is the C compiler's defines, "" for a complete driver.
	library string
	// control is what the control file says at first.
	control string
	run     func(t *testing.T, d *fakeDriver)
}

// fakeDriver lets a scenario change what the library does.
type fakeDriver struct {
	library, control string
	// seen is how much was read of the calls that the library wrote down.
	seen int
}

// set replaces the control file's content at once, so that the library never
// reads half of it.
func (d *fakeDriver) set(t *testing.T, lines ...string) {
	t.Helper()
	next := d.control + ".next"
	require.NoError(t, os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	require.NoError(t, os.Rename(next, d.control))
}

// hangs reports whether a call hangs now.
func (d *fakeDriver) hangs() bool {
	_, err := os.Stat(d.control + ".hangs")
	return err == nil
}

// libraryBuilder returns a function that compiles a variant of the library
// once and returns its path.
func libraryBuilder(t *testing.T) func(t *testing.T, define string) string {
	t.Helper()
	directory := t.TempDir()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	require.NoError(t, err)
	headers := filepath.Join(strings.TrimSpace(string(output)), "pkg", "nvml")
	sources, err := filepath.Glob("testdata/nvml/fake_*.c")
	require.NoError(t, err)
	// The clock is the benchmark's.
	sources = slices.DeleteFunc(sources, func(path string) bool { return filepath.Base(path) == "fake_clock.c" })
	var mu sync.Mutex
	built := map[string]string{}
	return func(t *testing.T, define string) string {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if path := built[define]; path != "" {
			return path
		}
		path := filepath.Join(directory, fmt.Sprintf("fake%d.so", len(built)))
		arguments := []string{"-shared", "-fPIC", "-O1", "-Wno-deprecated-declarations", "-DNVML_NO_UNVERSIONED_FUNC_DEFS", "-I" + headers, "-o", path}
		arguments = append(arguments, sources...)
		if define != "" {
			arguments = append(arguments, "-D"+define)
		}
		output, err := exec.CommandContext(t.Context(), "gcc", arguments...).CombinedOutput()
		require.NoError(t, err, "%s", output)
		built[define] = path
		return path
	}
}
