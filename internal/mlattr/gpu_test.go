package mlattr_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// sections returns the names that metadata.yaml defines, by the section that
// they are in: the keys that are indented by two spaces.
func sections(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	names := make(map[string][]string)
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		name, isKey := strings.CutSuffix(line, ":")
		switch {
		case isKey && name != "" && name[0] != ' ' && name[0] != '#':
			section = name
		case isKey && strings.HasPrefix(name, "  ") && name[2] != ' ':
			names[section] = append(names[section], name[2:])
		}
	}
	return names
}

// What ml_enrich, repro_gen and ml_metrics look for must be what the receiver
// writes: a name that is changed on one side only is found by nobody.
func TestGPUNamesAreTheReceivers(t *testing.T) {
	defined := sections(t, "../../receiver/gpureceiver/metadata.yaml")
	for _, name := range []string{
		mlattr.GPUMemoryLimit, mlattr.GPUMemoryUsage, mlattr.GPUMemoryReserved, mlattr.GPUUtilization, mlattr.GPUStatus,
		mlattr.GPUThrottleActive, mlattr.GPUWorkloadMemory, mlattr.GPUWorkloadUtilization, mlattr.GPUProcessMemory,
		mlattr.GPUSMUtilization, mlattr.GPUBusyTime, mlattr.GPURecoveryAction, mlattr.GPUFabricState,
		mlattr.GPUNVLinkErrors, mlattr.PCIeErrors, mlattr.PortErrors, mlattr.MountSilence,
	} {
		assert.Contains(t, defined["metrics"], name)
	}
	assert.Contains(t, defined["events"], mlattr.GPUXIDEvent)
	for _, name := range []string{
		mlattr.HardwareID, mlattr.HardwareParent, mlattr.HardwareState, mlattr.HardwareType, mlattr.GPUTask, mlattr.NVIDIAIndex,
		mlattr.GPUSource, mlattr.ProcessID, mlattr.GPUThrottleReason, mlattr.GPUXIDCode, mlattr.RunID, mlattr.RankGlobal, mlattr.HostName,
		mlattr.ErrorType, mlattr.Mountpoint,
	} {
		assert.Contains(t, defined["attributes"], name)
	}
}

// The same for ml_metrics and the nccl receiver.
func TestNCCLNamesAreTheReceivers(t *testing.T) {
	const path = "../../receiver/ncclreceiver/metadata.yaml"
	defined := sections(t, path)
	assert.Subset(t, defined["metrics"], []string{mlattr.NCCLCommunicatorSize, mlattr.NCCLRankState})
	assert.Subset(t, defined["attributes"], []string{mlattr.NCCLRankState, mlattr.NCCLRankHost, mlattr.RunID, mlattr.RankGlobal, mlattr.HostName})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), "["+strings.Join([]string{
		"ok", mlattr.NCCLMissing, mlattr.NCCLUnresponsive, mlattr.NCCLDead, mlattr.NCCLBehind,
	}, ", ")+"]")
}
