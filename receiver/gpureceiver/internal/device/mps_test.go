package device

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

func TestMarkServers(t *testing.T) {
	process := func(executable string, use float64, types ...string) Process {
		return Process{Details: workload.Details{Executable: executable}, Types: types, Utilization: Numbers{"general": use}}
	}
	server := func(use float64, types ...string) Process { return process("nvidia-cuda-mps", use, types...) }
	client := func(use float64) Process { return process("python3", use, "compute", "mps") }
	for name, test := range map[string]struct {
		processes []Process
		// serves and unknown are by process: a server whose clients are listed, and unknown use.
		serves, unknown []bool
	}{
		"nothing":                               {},
		"a server alone":                        {[]Process{server(0.5, "compute")}, []bool{false}, []bool{false}},
		"listed as its client":                  {[]Process{server(0.5, "compute", "mps")}, []bool{false}, []bool{false}},
		"a server beside one that is no client": {[]Process{server(0.5, "compute"), process("x", 0, "compute")}, []bool{false, false}, []bool{false, false}},
		"busy clients":                          {[]Process{server(0.5, "compute"), client(0.4), client(0)}, []bool{true, false, false}, []bool{false, false, false}},
		"all are idle":                          {[]Process{client(0), server(0, "compute")}, []bool{false, true}, []bool{false, false}},
		"a busy server":                         {[]Process{client(0), server(0.5, "compute"), client(0), process("x", 0.1, "compute")}, []bool{false, true, false, false}, []bool{true, false, true, false}},
		"no server":                             {[]Process{client(0), process("x", 0.1, "compute")}, []bool{false, false}, []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			gpu := GPU{Processes: test.processes}
			gpu.MarkServers()
			for i, process := range gpu.Processes {
				assert.Equal(t, test.serves[i], process.Serves, "process %d", i)
				assert.Equal(t, test.unknown[i], process.Utilization == nil, "process %d", i)
			}
		})
	}
}
