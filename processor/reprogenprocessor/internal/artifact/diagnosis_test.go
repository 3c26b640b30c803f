package artifact

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

const (
	kib = jsontree.Known(1) << 10
	mib = kib << 10
	gib = mib << 10
)

func TestOutOfMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		want    []any // the device, and the numbers in their order
		reading string
	}{
		"PyTorch since 2.1, and fragmented": {
			"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 80.00 GiB of which 1.50 GiB is free. " +
				"Process 41 has 1.00 GiB memory in use. Process 42 has 512.00 MiB memory in use. Including non-PyTorch memory, this process has 77.00 GiB memory in use. " +
				"Of the allocated memory 70.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but unallocated. If reserved",
			[]any{"cuda:3", known(2 * gib), known(80 * gib), known(gib + 512*mib), known(77 * gib), known(70 * gib), known(4 * gib), known(gib + 512*mib)}, "fragmented",
		},
		"PyTorch 2.1's spelling": {
			"CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacty of 8.00 GiB of which 10.00 MiB is free. " +
				"Including non-PyTorch memory, this process has 7.00 GiB memory in use. Of the allocated memory 6.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.",
			[]any{"cuda:0", known(20 * mib), known(8 * gib), known(10 * mib), known(7 * gib), known(6 * gib), known(mib), known(-1)}, "the process itself",
		},
		"PyTorch before": {
			"CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 8.00 GiB total capacity; 6.00 GiB already allocated; 10.00 MiB free; 6.50 GiB reserved in total by PyTorch)",
			[]any{"cuda:1", known(20 * mib), known(8 * gib), known(10 * mib), known(-1), known(6 * gib), known(512 * mib), known(-1)}, "fragmented",
		},
		"others have it": {
			"HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free. Process 7 has 6.00 GiB memory in use. " +
				"Of the allocated memory 1.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
			[]any{"cuda:0", known(2 * gib), known(8 * gib), known(gib), known(-1), known(gib), known(0), known(6 * gib)}, "Other processes",
		},
		"too large for any": {
			"CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 79.00 GiB is free.",
			[]any{"cuda:0", known(200 * gib), known(80 * gib), known(79 * gib), known(-1), known(-1), known(-1), known(-1)}, "larger than the device",
		},
		"the CPU": {
			"[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 51799813685248 bytes. Error code 12 (Cannot allocate memory)",
			[]any{"cpu", known(51799813685248), known(-1), known(-1), known(-1), known(-1), known(-1), known(-1)}, "",
		},
		"XLA": {
			"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.",
			[]any{"", known(8 * gib), known(-1), known(-1), known(-1), known(-1), known(-1), known(-1)}, "",
		},
		"a huge number": {
			"out of memory: tried to allocate 99999999999999999999 bytes", []any{"", known(-1), known(-1), known(-1), known(-1), known(-1), known(-1), known(-1)}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := jsontree.Of("about", "memory")
			for i, name := range []string{"device", "requested_bytes", "total_bytes", "free_bytes", "process_bytes", "allocated_bytes",
				"reserved_unused_bytes", "other_processes_bytes"} {
				want = append(want, jsontree.OfKnown(name, tc.want[i])...)
			}
			got := diagnosisOf(failure.Error{Message: tc.message})
			reading := got.Text("reading")
			if tc.reading == "" {
				assert.Empty(t, reading)
			} else {
				assert.Contains(t, reading, tc.reading)
				want = append(want, jsontree.Member{Key: "reading", Value: reading})
			}
			assert.Equal(t, want, got)
		})
	}
	for _, other := range []string{"", "mat1 and mat2 shapes cannot be multiplied", "CUDA error: device-side assert triggered"} {
		assert.Nil(t, diagnosisOf(failure.Error{Message: other}), other)
	}
}

func known(n jsontree.Known) jsontree.Known { return n }

func TestHungCollective(t *testing.T) {
	got := diagnosisOf(failure.Error{Message: "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1042, OpType=ALLREDUCE, NumelIn=4096, " +
		"NumelOut=4097, Timeout(ms)=600000) ran for 600123 milliseconds before timing out."})
	assert.Contains(t, got.Text("reading"), "a rank with a lower sequence is behind")
	assert.JSONEq(t, `{"about":"collective","backend":"NCCL","operation":"ALLREDUCE","sequence":1042,"elements_in":4096,"elements_out":4097,`+
		`"timeout_ms":600000,"ran_ms":600123}`, string(jsontree.Encode(got[:len(got)-1])))
	got = diagnosisOf(failure.Error{Message: "OpType=BROADCAST"})
	assert.JSONEq(t, `{"about":"collective","operation":"BROADCAST"}`, string(jsontree.Encode(got[:len(got)-1])))
	assert.Nil(t, diagnosisOf(failure.Error{Message: "the operation timed out"}))
}

func FuzzDiagnosis(f *testing.F) {
	f.Add("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 80.00 GiB of which 1.50 GiB is free.")
	f.Add("WorkNCCL(SeqNum=1042, OpType=ALLREDUCE, NumelIn=4096")
	f.Fuzz(func(t *testing.T, message string) {
		for _, m := range diagnosisOf(failure.Error{Message: message}) {
			if n, ok := m.Value.(jsontree.Number); ok {
				assert.NotContains(t, n, "-", m.Key)
			}
		}
	})
}
