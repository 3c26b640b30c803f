package smoke

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// packaged is the part of distribution/package/nfpm.yaml that these tests read.
type packaged struct {
	Contents []struct {
		Src, Dst, Type, Packager string
	}
	Overrides map[string]struct {
		Scripts map[string]string
	}
}

// programs are those that have packages.
var programs = []string{"otelcol-ml", "otelcol-ml-agent"}

// stagePackage returns the folder with the files of a program's packages, and what nfpm
// reads there.
func stagePackage(t *testing.T, program string) (string, packaged) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), program)
	output, err := exec.CommandContext(t.Context(), harness.Path("distribution", "package", "stage.sh"), program, folder).CombinedOutput()
	require.NoError(t, err, "%s", output)
	text, err := os.ReadFile(filepath.Join(folder, "nfpm.yaml"))
	require.NoError(t, err)
	var content packaged
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "${PROGRAM}", program)), &content))
	require.NotEmpty(t, content.Contents)
	return folder, content
}

func serviceUnit(t *testing.T) map[string][]string {
	t.Helper()
	return readUnit(t, harness.Path("distribution", "package", "otelcol-ml.service"))["Service"]
}

// Whatever the services start and read is in both packages of each program.
func TestServiceFindsItsFiles(t *testing.T) {
	for _, program := range programs {
		folder, content := stagePackage(t, program)
		units, err := filepath.Glob(filepath.Join(folder, "*.service"))
		require.NoError(t, err)
		for _, path := range units {
			unit := readUnit(t, path)
			assert.Contains(t, unit["Unit"]["Documentation"], "man:"+program+"(8)")
			assert.Equal(t, "/usr/bin/"+program, strings.Fields(unit["Service"]["ExecStart"][0])[0])
			assert.Equal(t, []string{"/usr/bin/" + program, "validate"}, strings.Fields(unit["Service"]["ExecReload"][0])[:2])
			for _, packager := range []string{"deb", "rpm"} {
				findsItsFiles(t, unit["Service"], packager, content)
			}
		}
		for _, file := range content.Contents {
			if filepath.Dir(file.Src) == folder && filepath.Ext(file.Src) != ".gz" && file.Type != "tree" {
				assert.FileExists(t, file.Src)
			} else if file.Src != "" && !strings.Contains(file.Src, "${") && filepath.Dir(file.Src) != folder {
				assert.FileExists(t, harness.Path(filepath.FromSlash(file.Src)))
			}
		}
		for packager, override := range content.Overrides {
			require.Len(t, override.Scripts, 3, packager)
			for _, script := range override.Scripts {
				output, err := exec.CommandContext(t.Context(), "sh", "-n", script).CombinedOutput()
				assert.NoError(t, err, "%s: %s", script, output)
			}
		}
	}
}

func findsItsFiles(t *testing.T, unit map[string][]string, packager string, content packaged) {
	t.Helper()
	source := map[string]string{}
	for _, file := range content.Contents {
		if file.Packager == "" || file.Packager == packager {
			source[file.Dst] = file.Type
		}
	}
	for _, key := range []string{"ExecStartPre", "ExecStart"} {
		require.Len(t, unit[key], 1, key)
		assert.Contains(t, source, strings.TrimPrefix(strings.Fields(unit[key][0])[0], "-"), "%s: %s", packager, key)
	}
	_, config, _ := strings.Cut(unit["ExecStart"][0], " --config ")
	for _, file := range []string{config, strings.TrimPrefix(unit["EnvironmentFile"][0], "-")} {
		assert.Equal(t, "config|noreplace", source[file], "%s: an upgrade must not replace %s", packager, file)
	}
}

// What otelcol-ml-agent has of the files is what otelcol-ml has, but for the program, its
// manual page and the gateway.
func TestAgentPackage(t *testing.T) {
	_, whole := stagePackage(t, "otelcol-ml")
	folder, agent := stagePackage(t, "otelcol-ml-agent")
	installed := func(content packaged, program string) (paths []string) {
		for _, file := range content.Contents {
			if !strings.Contains(file.Dst, "gateway") {
				paths = append(paths, file.Packager+strings.ReplaceAll(file.Dst, program, "otelcol-ml"))
			}
		}
		return paths
	}
	assert.Equal(t, installed(whole, "otelcol-ml"), installed(agent, "otelcol-ml-agent"))
	for _, name := range []string{"otelcol-ml.service", "otelcol-ml.8", "lintian-overrides", "deb/postrm", "rpm/preun"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		assert.NotContains(t, string(text), "gateway", name)
	}
}

// The gpu receiver reads the devices of GPUs, and processes of all users.
func TestServiceCanReadGPUs(t *testing.T) {
	unit := serviceUnit(t)
	for _, key := range []string{"PrivateDevices", "ProtectProc", "ProcSubset", "PrivateUsers", "PrivatePIDs"} {
		assert.NotContains(t, unit, key)
	}
	assert.Equal(t, []string{"char-195 rw", "char-nvidia* rw"}, unit["DeviceAllow"])
	assert.Contains(t, unit["RestrictAddressFamilies"][0], "AF_UNIX", "the kubelet's socket")
}

// The variables that the package sets are known to the configurations, the limits of memory
// belong together, and agent and gateway run on one machine.
func TestServiceEnvironment(t *testing.T) {
	for name, test := range map[string]struct{ config, memory, goLimit, limit string }{
		"otelcol-ml":         {"agent", "1G", "614MiB", "820"},
		"otelcol-ml-gateway": {"gateway", "2G", "1228MiB", "1638"},
	} {
		text, err := os.ReadFile(harness.Path("distribution", "package", name+".conf"))
		require.NoError(t, err)
		config, err := os.ReadFile(harness.Path("distribution", "config", test.config+".yaml"))
		require.NoError(t, err)
		set := map[string]string{}
		var env []string
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			key, value, found := strings.Cut(strings.TrimPrefix(line, "#"), "=")
			if found && key == strings.ToUpper(key) && !strings.Contains(key, " ") {
				set[key] = value
				if !strings.HasPrefix(line, "#") {
					env = append(env, line)
				}
			}
		}
		require.Greater(t, len(set), 5)
		for key := range set {
			assert.True(t, key == "GOGC" || key == "GOMEMLIMIT" || strings.Contains(string(config), "${env:"+key+":-"), "%s.yaml does not read %s", test.config, key)
		}
		// 60 and 80 % of the unit's.
		unit := readUnit(t, harness.Path("distribution", "package", name+".service"))["Service"]
		assert.Equal(t, []string{test.memory}, unit["MemoryMax"])
		assert.Equal(t, []string{"200", test.goLimit, test.limit}, []string{set["GOGC"], set["GOMEMLIMIT"], set["MEMORY_LIMIT_MIB"]})
		for _, variable := range unit["Environment"] {
			if _, folder, found := strings.Cut(variable, "=/var/lib/"); found {
				assert.Contains(t, strings.Fields(strings.Join(unit["StateDirectory"], " ")), folder)
			}
		}
		code, output := harness.Validate(t, env, harness.Path("distribution", "config", test.config+".yaml"))
		assert.Zero(t, code, output)
		if test.config == "gateway" {
			agent, err := os.ReadFile(harness.Path("distribution", "config", "agent.yaml"))
			require.NoError(t, err)
			for _, key := range []string{"HEALTH_ENDPOINT", "PROMETHEUS_ENDPOINT", "SELF_METRICS_PORT"} {
				assert.Contains(t, strings.Join(env, "\n"), key+"=")
				assert.NotContains(t, string(agent), "${env:"+key+":-"+set[key]+"}")
			}
		}
	}
}

// memory_limiter does not see the limit of a unit on hosts with cgroups v2. Each
// packaged configuration takes it from the environment.
func TestMemoryLimitOfTheEnvironment(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(harness.Path("distribution", "config", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(shipped(t, file)[0])
		require.NoError(t, err)
		if filepath.Base(file) != "demo.yaml" {
			limited := strings.Contains(string(text), "\n    limit_mib: ${env:MEMORY_LIMIT_MIB:-0}\n")
			assert.True(t, limited, "%s has no limit_mib", file)
		}
	}
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Env:    []string{"MEMORY_LIMIT_MIB=820"},
	})
	assert.Contains(t, collector.Output(), `"limit_mib": 820`)
}
