package gpureceiver

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestDefaultConfig(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.Validate(cfg))
	assert.Equal(t, SourceAuto, cfg.Source, "a recording is never played unless it is asked for")
	assert.Equal(t, 10*time.Second, cfg.CollectionInterval)
	assert.Equal(t, 5*time.Second, cfg.callTimeout())
	cfg.CollectionInterval = time.Second
	assert.Equal(t, time.Second, cfg.callTimeout())
}

func TestConfigRefused(t *testing.T) {
	directory := t.TempDir()
	for name, test := range map[string]struct {
		config map[string]any
		errors []string
	}{
		"source": {
			map[string]any{"source": "dcgm"},
			[]string{`"source" is "dcgm"; allowed are "auto", "nvml" and "replay"`},
		},
		"replay without a recording": {
			map[string]any{"source": "replay"},
			[]string{`"replay::path" is empty; with "source" "replay" it must name a recording`},
		},
		"recording is a directory": {
			map[string]any{"source": "replay", "replay": map[string]any{"path": directory}},
			[]string{`"replay::path" is the directory`, directory},
		},
		"a relative path of the kernel's log": {
			map[string]any{"kernel_log": map[string]any{"path": "dev/kmsg"}},
			[]string{`"kernel_log::path" is "dev/kmsg"; it must be an absolute path`},
		},
		"library is a directory": {
			map[string]any{"nvml": map[string]any{"library_path": directory}},
			[]string{`"nvml::library_path" is the directory`, directory},
		},
		"library is no shared object": {
			map[string]any{"nvml": map[string]any{"library_path": writeFile(t, "libnvidia-ml.so.1", "GROUP ( libother.so )")}},
			[]string{`"nvml::library_path" is`, `libnvidia-ml.so.1", which is no shared object (ELF); it must be the library's file`},
		},
		"library is empty": {
			map[string]any{"nvml": map[string]any{"library_path": writeFile(t, "empty.so", "")}},
			[]string{`"nvml::library_path" is`, `empty.so", which is no shared object (ELF)`},
		},
		"library is a program": {
			map[string]any{"nvml": map[string]any{"library_path": elfFile(t, elf.ET_EXEC)}},
			[]string{`"nvml::library_path" is`, `which is no shared object (ELF)`},
		},
		"library is a device": {
			map[string]any{"nvml": map[string]any{"library_path": os.DevNull}},
			[]string{`"nvml::library_path" is "/dev/null", which is no regular file`},
		},
		"negative interval": {
			map[string]any{"collection_interval": "-1s"},
			[]string{`"collection_interval" is -1s; it must be at least 1ms`},
		},
		"timeout longer than the interval": {
			map[string]any{"collection_interval": "5s", "timeout": "6s"},
			[]string{`"timeout" is 6s; it must be between 0 and "collection_interval", 5s`},
		},
		"negative timeout": {
			map[string]any{"timeout": "-1ms"},
			[]string{`"timeout" is -1ms; it must be between 0 and "collection_interval", 10s`},
		},
		"no interval": {
			map[string]any{"collection_interval": "0s"},
			[]string{`"collection_interval" is 0s; it must be at least 1ms`},
		},
		"negative delay": {
			map[string]any{"initial_delay": "-1s"},
			[]string{`"initial_delay" is -1s; it must not be negative`},
		},
		"unknown engine": {
			map[string]any{"engines": []any{"general", "tensor"}},
			[]string{`"engines" has "tensor"; allowed are ["general" "encoder" "decoder" "jpeg" "ofa"]`},
		},
		"engine twice": {
			map[string]any{"engines": []any{"general", "encoder", "general"}},
			[]string{`"engines" has "general" twice`},
		},
		"unknown power limit": {
			map[string]any{"power_limits": []any{"maximum"}},
			[]string{`"power_limits" has "maximum"; allowed are ["enforced" "requested" "default" "min" "max"]`},
		},
		"power limit twice": {
			map[string]any{"power_limits": []any{"max", "max"}},
			[]string{`"power_limits" has "max" twice`},
		},
		"relative socket": {
			map[string]any{"kubernetes": map[string]any{"pod_resources_socket": "kubelet.sock"}},
			[]string{`"kubernetes::pod_resources_socket" is "kubelet.sock"; it must be an absolute path, or empty`},
		},
		"record a recording": {
			map[string]any{"source": "replay", "replay": map[string]any{"path": demoRecording}, "record": map[string]any{"path": "x.yaml"}},
			[]string{`"record::path" is "x.yaml" with "source" "replay"; it needs "auto" or "nvml"`},
		},
		"record for no time": {
			map[string]any{"record": map[string]any{"path": "x.yaml", "duration": "0s"}},
			[]string{`"record::duration" is 0s; it must be positive and at most 1h0m0s`},
		},
		"record for too long": {
			map[string]any{"record": map[string]any{"path": "x.yaml", "duration": "61m"}},
			[]string{`"record::duration" is 1h1m0s; it must be positive and at most 1h0m0s`},
		},
		"relative root": {
			map[string]any{"root_path": "hostfs"},
			[]string{`"root_path" is "hostfs"; it must be an absolute path, or empty`},
		},
		"everything at once": {
			map[string]any{"source": "x", "timeout": "-1s", "root_path": "y"},
			[]string{`"source" is "x"`, `"timeout" is -1s`, `"root_path" is "y"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig()
			require.NoError(t, confmap.NewFromStringMap(test.config).Unmarshal(cfg))
			err := confmap.Validate(cfg)
			for _, expected := range test.errors {
				require.ErrorContains(t, err, expected)
			}
		})
	}
}

// What is misspelled is refused by its name, not silently left at its default.
func TestUnknownKeysAreRefused(t *testing.T) {
	for key, config := range map[string]map[string]any{
		"file":     {"replay": map[string]any{"file": "x"}},
		"interval": {"interval": "10s"},
		"release":  {"nvml": map[string]any{"release": true}},
		"enable":   {"metrics": map[string]any{"hw.power": map[string]any{"enable": true}}},
	} {
		err := confmap.NewFromStringMap(config).Unmarshal(createDefaultConfig())
		require.ErrorContains(t, err, "invalid keys")
		require.ErrorContains(t, err, key)
	}
}

// What there is not is refused with what there is.
func TestUnknownNamesAreRefused(t *testing.T) {
	on := map[string]any{"enabled": true}
	for name, test := range map[string]struct {
		config map[string]any
		errors []string
	}{
		"a metric": {
			map[string]any{"metrics": map[string]any{"hw.gpu.utilisation": on, "hw.power": on}},
			[]string{`"metrics" has "hw.gpu.utilisation"; allowed are ["hw.energy"`, `"hw.gpu.utilization"`},
		},
		"an event": {
			map[string]any{"events": map[string]any{"xid": on}},
			[]string{`"events" has "xid"; allowed are ["nvidia.gpu.xid" "nvidia.nvswitch.sxid"]`},
		},
		"a resource attribute": {
			map[string]any{"resource_attributes": map[string]any{"gpu.model": on}},
			[]string{`"resource_attributes" has "gpu.model"; allowed are ["host.name"`, `"hw.model"`},
		},
		"two at once": {
			map[string]any{"metrics": map[string]any{"a": on}, "events": map[string]any{"b": on}},
			[]string{`"metrics" has "a"`, `"events" has "b"`},
		},
		"no map": {map[string]any{"metrics": 1}, []string{"metrics"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := confmap.NewFromStringMap(test.config).Unmarshal(createDefaultConfig())
			for _, expected := range test.errors {
				require.ErrorContains(t, err, expected)
			}
		})
	}
}

// A duration without a unit, or none at all, is refused and not taken for
// nanoseconds.
func TestMalformedDurationsAreRefused(t *testing.T) {
	for _, key := range []string{"collection_interval", "initial_delay", "timeout"} {
		err := confmap.NewFromStringMap(map[string]any{key: "10"}).Unmarshal(createDefaultConfig())
		require.ErrorContains(t, err, key)
	}
}

// What is not there yet is waited for, and what cannot be told from outside is
// left to the loading.
func TestLibrariesThatMayWorkAreAccepted(t *testing.T) {
	for name, path := range map[string]string{
		"missing":           filepath.Join(t.TempDir(), "later.so"),
		"in no folder":      filepath.Join(t.TempDir(), "later", "libnvidia-ml.so.1"),
		"the linker's name": "libnvidia-ml.so.1",
		"a shared object":   elfFile(t, elf.ET_DYN),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.NVML.LibraryPath = path
			require.NoError(t, confmap.Validate(cfg))
		})
	}
}

// elfFile writes a file that is a program or a library by its header.
func elfFile(t *testing.T, kind elf.Type) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	file, err := os.ReadFile(program)
	require.NoError(t, err)
	const offsetOfType = 16
	file[offsetOfType] = byte(kind)
	return writeFile(t, "libnvidia-ml.so.1", string(file))
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
