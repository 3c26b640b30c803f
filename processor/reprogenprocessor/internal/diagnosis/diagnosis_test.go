package diagnosis

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
		want    Memory
		reading string
	}{
		"PyTorch since 2.1, and fragmented": {
			"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 80.00 GiB of which 1.50 GiB is free. " +
				"Process 41 has 1.00 GiB memory in use. Process 42 has 512.00 MiB memory in use. Including non-PyTorch memory, this process has 77.00 GiB memory in use. " +
				"Of the allocated memory 70.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but unallocated. If reserved",
			Memory{"cuda:3", 2 * gib, 80 * gib, gib + 512*mib, 77 * gib, 70 * gib, 4 * gib, gib + 512*mib}, "fragmented",
		},
		"PyTorch 2.1's spelling": {
			"CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacty of 8.00 GiB of which 10.00 MiB is free. " +
				"Including non-PyTorch memory, this process has 7.00 GiB memory in use. Of the allocated memory 6.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.",
			Memory{"cuda:0", 20 * mib, 8 * gib, 10 * mib, 7 * gib, 6 * gib, mib, -1}, "the process itself",
		},
		"PyTorch before": {
			"CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 8.00 GiB total capacity; 6.00 GiB already allocated; 10.00 MiB free; 6.50 GiB reserved in total by PyTorch)",
			Memory{"cuda:1", 20 * mib, 8 * gib, 10 * mib, -1, 6 * gib, 512 * mib, -1}, "fragmented",
		},
		"others have it": {
			"HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free. Process 7 has 6.00 GiB memory in use. " +
				"Of the allocated memory 1.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
			Memory{"cuda:0", 2 * gib, 8 * gib, gib, -1, gib, 0, 6 * gib}, "Other processes",
		},
		"too large for any": {
			"CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 79.00 GiB is free.",
			Memory{"cuda:0", 200 * gib, 80 * gib, 79 * gib, -1, -1, -1, -1}, "larger than the device",
		},
		"the CPU": {
			"[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 51799813685248 bytes. Error code 12 (Cannot allocate memory)",
			Memory{"cpu", 51799813685248, -1, -1, -1, -1, -1, -1}, "",
		},
		"XLA": {
			"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.",
			Memory{"", 8 * gib, -1, -1, -1, -1, -1, -1}, "",
		},
		"a huge number": {
			"out of memory: tried to allocate 99999999999999999999 bytes", Memory{"", -1, -1, -1, -1, -1, -1, -1}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := OutOfMemory(tc.message)
			assert.True(t, ok)
			assert.Equal(t, tc.want, got)
			if tc.reading == "" {
				assert.Empty(t, got.Reading())
			} else {
				assert.Contains(t, got.Reading(), tc.reading)
			}
		})
	}
	for _, other := range []string{"", "mat1 and mat2 shapes cannot be multiplied", "CUDA error: device-side assert triggered"} {
		_, ok := OutOfMemory(other)
		assert.False(t, ok, other)
	}
}

func TestHungCollective(t *testing.T) {
	got, ok := HungCollective("[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1042, OpType=ALLREDUCE, NumelIn=4096, " +
		"NumelOut=4097, Timeout(ms)=600000) ran for 600123 milliseconds before timing out.")
	assert.True(t, ok)
	assert.Equal(t, Collective{"NCCL", "ALLREDUCE", 1042, 4096, 4097, 600000, 600123}, got)
	got, ok = HungCollective("OpType=BROADCAST")
	assert.True(t, ok)
	assert.Equal(t, Collective{"", "BROADCAST", -1, -1, -1, -1, -1}, got)
	_, ok = HungCollective("the operation timed out")
	assert.False(t, ok)
}

func FuzzDiagnosis(f *testing.F) {
	f.Add("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 80.00 GiB of which 1.50 GiB is free.")
	f.Add("WorkNCCL(SeqNum=1042, OpType=ALLREDUCE, NumelIn=4096")
	f.Fuzz(func(t *testing.T, message string) {
		m, _ := OutOfMemory(message)
		for _, n := range []jsontree.Known{m.Requested, m.Total, m.Free, m.Process, m.Allocated, m.Unused} {
			assert.GreaterOrEqual(t, n, jsontree.Known(-1))
		}
		_ = m.Reading()
		HungCollective(message)
	})
}
