package faults

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// fault is a row of the table.
type fault struct {
	name  string
	queue queue
	// remark is what the page says of it.
	remark string
	// fast ones run with -short, which make check does.
	fast bool
	// loses says that acknowledged spans may be lost. Everywhere else none is.
	loses bool
	// refuses says that spans have to be refused: the fault is not there
	// otherwise.
	refuses bool
	run     func(*trial)
}

var faults = []fault{
	{name: "SIGTERM under load", queue: inMemory, fast: true, run: func(tr *trial) {
		tr.backend.up(tr.T)
		tr.start()
		tr.sending(func() {
			tr.awaitAcknowledged(5000)
			assert.Zero(tr, tr.collector.Stop(tr.T))
		})
	}},
	{name: "SIGTERM under load", queue: onDisk, run: func(tr *trial) {
		tr.backend.up(tr.T)
		tr.start()
		tr.sending(func() {
			tr.awaitAcknowledged(5000)
			assert.Zero(tr, tr.collector.Stop(tr.T))
		})
		tr.start()
		tr.settle()
	}},
	{name: "SIGTERM while the back end is down", queue: inMemory, loses: true, run: stopWhileDown,
		remark: "the queue in memory ends with the process"},
	{name: "SIGTERM while the back end is down", queue: onDisk, fast: true, run: stopWhileDown},

	{name: "SIGKILL under load", queue: inMemory, loses: true, run: killUnderLoad,
		remark: "the queue in memory ends with the process"},
	{name: "SIGKILL under load", queue: waiting, run: killUnderLoad},
	{name: "SIGKILL under load", queue: onDisk, fast: true, run: killUnderLoad},
	{name: "SIGKILL under load", queue: onDiskFsync, run: killUnderLoad},

	{name: "back end down and up again", queue: inMemory, fast: true, run: downAndUp},
	{name: "back end down and up again", queue: onDisk, run: downAndUp},
	{name: "back end down, large spans", queue: inMemory, fast: true, run: func(tr *trial) {
		// Together they are far above the 4 MiB that a gRPC server takes.
		tr.load.padding, tr.load.most = 2000, 10000
		tr.start()
		tr.sendAll()
		tr.backend.up(tr.T)
		tr.settle()
	}},
	{name: "back end slow", queue: inMemory, refuses: true, run: func(tr *trial) {
		tr.smallQueue()
		tr.backend.answers(func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
			return nil
		})
		tr.backend.up(tr.T)
		tr.start()
		tr.sending(tr.awaitRefused)
		tr.backend.answers(nil)
		tr.settle()
	}},
	{name: "back end down, its queue full, `when_refused: drop`", queue: inMemory, loses: true, run: func(tr *trial) {
		delete(tr.settings, whenRefused)
		tr.smallQueue()
		tr.load.most = 10000
		tr.start()
		tr.sendAll()
		dropped := tr.metric("otelcol_processor_ml_guard_items_dropped", harness.Labels{"processor": "ml_guard/out"})
		tr.backend.up(tr.T)
		tr.settle()
		counted := tr.outcome()
		assert.Zero(tr, counted.refused)
		assert.Equal(tr, float64(counted.lost), dropped, "what is lost is counted") //nolint:testifylint // counts are whole
	}, remark: "`otelcol_processor_ml_guard_items_dropped` counts them"},
	{name: "back end refuses for a while (`UNAVAILABLE`)", queue: inMemory, run: func(tr *trial) {
		tr.refusedWhileSending(codes.Unavailable)
		tr.settle()
	}},
	{name: "back end refuses for good (`INVALID_ARGUMENT`)", queue: inMemory, loses: true, run: func(tr *trial) {
		tr.refusedWhileSending(codes.InvalidArgument)
		failed := tr.metric("otelcol_exporter_send_failed_spans", harness.Labels{"exporter": "otlp_grpc/jaeger"})
		assert.Positive(tr, failed, "what is lost is counted")
		tr.settle()
	}, remark: "`otelcol_exporter_send_failed_spans` counts them"},
	{name: "back end does not answer", queue: inMemory, run: func(tr *trial) {
		tr.settings[exporter+"timeout"] = "500ms"
		tr.backend.answers(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		tr.backend.up(tr.T)
		tr.start()
		tr.sending(func() {
			tr.awaitAcknowledged(5000)
			tr.awaitTries(5)
		})
		tr.backend.answers(nil)
		tr.settle()
	}},

	{name: "disk full, `queue_size` below the disk's size", queue: onDisk, fast: true, refuses: true, run: func(tr *trial) {
		tr.settings[exporter+"sending_queue::queue_size"] = diskSize / 4
		fillDisk(tr)
	}},
	{name: "disk full, `queue_size` above the disk's size", queue: onDisk, loses: true, refuses: true, run: fillDisk,
		remark: "[a queue has to be smaller than its disk](../operations.md#a-queue-on-disk)"},
	{name: "queue file at its `max_size`, `queue_size` above that", queue: onDisk, loses: true, refuses: true, run: func(tr *trial) {
		// The least that compaction allows.
		tr.settings["extensions::file_storage/queue::max_size"] = 100 << 20
		tr.load.padding = 10000
		tr.fill()
	}, remark: "[the same](../operations.md#a-queue-on-disk)"},
	{name: "queue file cut in half", queue: onDisk, loses: true, run: damaged(func(text []byte) []byte {
		return text[:len(text)/2]
	}), remark: "moved away by `queuecheck`"},
	{name: "queue file with pages of noise", queue: onDisk, loses: true, run: damaged(func(text []byte) []byte {
		for page := 2 * pageSize; page+pageSize <= len(text); page += 3 * pageSize {
			for i := range pageSize {
				text[page+i] = byte(i*7 + page/pageSize)
			}
		}
		return text
	}), remark: "moved away by `queuecheck`"},
	{name: "queue file with a pointer outside the file (SIGSEGV)", queue: onDisk, loses: true, fast: true, run: damaged(addressOutside),
		remark: "moved away by `queuecheck`"},
	{name: "queue file that is no queue", queue: onDisk, loses: true, run: damaged(func([]byte) []byte {
		return []byte("no queue\n")
	}), remark: "moved away by `queuecheck`"},

	{name: "20 reloads (SIGHUP) under load", queue: inMemory, fast: true, run: reloads},
	{name: "20 reloads (SIGHUP) under load", queue: onDisk, run: reloads},
	{name: "overload: `memory_limiter` refuses", queue: inMemory, refuses: true, run: overload},

	{name: "spans with times an hour ahead", queue: inMemory, run: aged(-time.Hour)},
	{name: "spans with times an hour ago", queue: inMemory, run: aged(time.Hour)},
	{name: "spans with times a day ago", queue: inMemory, run: aged(24 * time.Hour)},
}

// TestFaults runs each fault with a collector of its own.
func TestFaults(t *testing.T) {
	counted := make([]outcome, len(faults))
	t.Run("of", func(t *testing.T) {
		for i, fault := range faults {
			t.Run(fault.name+", queue in "+fault.queue.name, func(t *testing.T) {
				if testing.Short() && !fault.fast {
					t.Skip("not one of the fast ones: make e2e-faults runs it")
				}
				t.Parallel()
				tr := newTrial(t, fault.queue)
				fault.run(tr)
				counted[i] = tr.outcome()
				t.Logf("%+v", counted[i])
				assert.Positive(t, counted[i].acknowledged, "nothing was acknowledged, so nothing could be lost")
				if !fault.loses {
					assert.Zero(t, counted[i].lost, "acknowledged spans are lost")
				}
				if fault.refuses {
					assert.Positive(t, counted[i].refused, "nothing was refused, so the fault was not there")
				}
			})
		}
	})
	if *update && !t.Failed() && !testing.Short() {
		writePage(t, counted)
	}
}

func stopWhileDown(tr *trial) {
	tr.load.most = 5000
	tr.start()
	tr.sendAll()
	assert.Zero(tr, tr.collector.Stop(tr.T))
	tr.backend.up(tr.T)
	tr.start()
	tr.settle()
}

func killUnderLoad(tr *trial) {
	tr.backend.up(tr.T)
	tr.start()
	tr.sending(func() {
		tr.awaitArrived(5000)
		tr.collector.Kill(tr.T)
	})
	tr.start()
	tr.settle()
}

func downAndUp(tr *trial) {
	tr.backend.up(tr.T)
	tr.start()
	tr.sending(func() {
		tr.awaitArrived(1000)
		tr.backend.down(tr.T)
		tr.awaitAcknowledged(5000)
		tr.backend.up(tr.T)
		tr.awaitArrived(1000)
	})
	tr.settle()
}

// smallQueue makes the queue so small that a moment fills it.
func (tr *trial) smallQueue() {
	tr.settings[exporter+"sending_queue::queue_size"] = 400_000
}

// refusedWhileSending has the back end refuse for some requests.
func (tr *trial) refusedWhileSending(code codes.Code) {
	tr.backend.answers(func(context.Context) error { return status.Error(code, "made for a test") })
	tr.backend.up(tr.T)
	tr.start()
	tr.sending(func() {
		tr.awaitTries(5)
		tr.backend.answers(nil)
		tr.awaitArrived(1000)
	})
}

// diskSize is the size at which the disk of a trial is full.
const diskSize = 16 << 20

// fillDisk has the disk be full, also when the collector is started again.
func fillDisk(tr *trial) {
	tr.fileLimit = diskSize
	tr.load.padding = 1000
	tr.fill()
}

// fill sends until spans are refused, kills the collector, and starts it again
// with a back end that is up.
func (tr *trial) fill() {
	tr.start()
	tr.sending(tr.awaitRefused)
	tr.collector.Kill(tr.T)
	tr.backend.up(tr.T)
	tr.start()
	tr.settle()
}

// pageSize is that of the pages of a queue's file.
const pageSize = 4096

// damaged returns a fault that changes the queue's files while the collector is
// down. It has to start, with what starts before it, and to take spans.
func damaged(change func([]byte) []byte) func(*trial) {
	return func(tr *trial) {
		tr.load.most = 5000
		tr.start()
		tr.sendAll()
		tr.collector.Kill(tr.T)
		files, err := filepath.Glob(filepath.Join(tr.folder, "exporter_*"))
		require.NoError(tr, err)
		require.NotEmpty(tr, files, "the queue has no file")
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(tr, err)
			require.NoError(tr, os.WriteFile(file, change(text), 0o600))
		}
		code, output := harness.Run(tr, harness.Command{
			Name: "queuecheck", Path: harness.Binary(tr, "build", "bin", "queuecheck"), Args: []string{tr.folder},
		}, patience)
		require.Zero(tr, code, output)

		tr.backend.up(tr.T)
		tr.start()
		before, _ := tr.load.counts()
		tr.load.most += 1000
		// What was counted beyond the first limit was never sent.
		tr.load.next.Store(5000)
		tr.sendAll()
		tr.settle()
		lost, _ := tr.backend.compare(tr.load.ids()[before:])
		assert.Zero(tr, lost, "of what came after the damage")
	}
}

// addressOutside has the branches of the file's tree name a page far behind its end,
// where nothing is mapped. A page begins with its number, 8 bytes, and its kind,
// 2 bytes of which 1 is a branch; the first of its elements has the number of a
// page behind 8 other bytes.
func addressOutside(text []byte) []byte {
	for page := 0; page+pageSize <= len(text); page += pageSize {
		if number := binary.LittleEndian.Uint64(text[page:]); number == uint64(page/pageSize) && text[page+8] == 1 {
			binary.LittleEndian.PutUint64(text[page+24:], 1<<30)
		}
	}
	return text
}

func reloads(tr *trial) {
	tr.backend.up(tr.T)
	tr.start()
	tr.sending(func() {
		for range 20 {
			tr.awaitAcknowledged(100)
			tr.reload()
		}
		tr.awaitAcknowledged(100)
	})
	tr.settle()
}

// overload sends more than the memory has room for.
func overload(tr *trial) {
	tr.settings["processors::memory_limiter::limit_mib"] = 200
	tr.settings["processors::memory_limiter::spike_limit_mib"] = 50
	tr.settings["processors::memory_limiter::check_interval"] = "100ms"
	tr.settings[exporter+"sending_queue::queue_size"] = 1 << 30
	tr.load.padding = 4000
	tr.start()
	tr.sending(tr.awaitRefused)
	tr.backend.up(tr.T)
	// It takes spans again when there is memory again.
	tr.sending(func() { tr.awaitAcknowledged(100) })
	assert.Less(tr, tr.collector.PeakMemory(tr), int64(2*200<<20), "the memory is not bounded by the limit")
	tr.settle()
}

func aged(age time.Duration) func(*trial) {
	return func(tr *trial) {
		tr.load.age, tr.load.most = age, 5000
		tr.settings["connectors::ml_metrics::flush_interval"] = "1s"
		tr.backend.up(tr.T)
		tr.start()
		tr.sendAll()
		tr.awaitBatches(5000)
		tr.settle()
	}
}
