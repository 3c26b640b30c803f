package mllinesconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// nodeReport is what torchrun prints of a node when two of its ranks have failed.
const nodeReport = `Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-03-01_%[1]s
  host      : %[2]s
  rank      : %[4]d (local_rank: 1)
  exitcode  : %[5]d (pid: 2631)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-03-01_%[1]s
  host      : %[2]s
  rank      : %[3]d (local_rank: 0)
  exitcode  : %[5]d (pid: 2630)
  error_file: <N/A>
  traceback : %[6]s
============================================================`

// The file of each node says which of its ranks failed first, when and on which host: on a
// shared disk that is not the host which reads the file.
func TestReportsOfNodes(t *testing.T) {
	for name, of := range map[string]struct {
		begin func(r *rig, node int)
		hosts []any
	}{
		"on a shared disk": {func(r *rig, node int) { r.path = fmt.Sprintf("/data/exp7/node%d-12345.log", node) }, []any{"n1.cluster", nil}},
		"of pods":          {func(r *rig, node int) { r.inPod(fmt.Sprintf("llama-worker-%d", node), "0a1b", "0") }, []any{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.attrs = map[string]any{"host.name": "n2"}
			var hosts, ranks []any
			runs := map[any]bool{}
			for node := range 2 {
				of.begin(r, node)
				at := time.Date(2026, 3, 1, 12, 0, 5-node, 0, time.UTC)
				r.print(10*time.Second, fmt.Sprintf(nodeReport, at.In(time.Local).Format(time.TimeOnly), fmt.Sprintf("n%d.cluster", node+1), node*8, node*8+1, -9, "Signal 9 (SIGKILL) received by PID 2630"))
				r.wait(10 * time.Second)
				for _, td := range r.sink.AllTraces() {
					runs[td.ResourceSpans().At(0).Resource().Attributes().AsRaw()["ml.run.id"]] = true
					runs[td.ResourceSpans().At(0).Resource().Attributes().AsRaw()["slurm.job.id"]] = true
				}
				for _, span := range r.spans() {
					assert.Equal(t, at, span.EndTimestamp().AsTime())
					hosts = append(hosts, span.Attributes().AsRaw()["host.name"])
					ranks = append(ranks, span.Attributes().AsRaw()["ml.rank.global"])
				}
			}
			assert.Equal(t, of.hosts, hosts)
			assert.Equal(t, []any{int64(0), int64(8)}, ranks)
			assert.Len(t, runs, 2, "one run or job, and no other")
		})
	}
}
