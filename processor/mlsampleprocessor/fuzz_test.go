package mlsampleprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// choices turns fuzz bytes into decisions. At its end everything is 0.
type choices struct{ data []byte }

func (c *choices) next(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	v := int(c.data[0])
	c.data = c.data[1:]
	return v % n
}

var (
	fuzzKeys = []string{
		"ml.phase", "ml.step", "ml.run.id", "ml.run.inferred", "ml.run.attempt", "ml.rank.global", "ml.training_run.id", "host.name",
		"ml.correlation.source", "ml.operation", "gen_ai.operation.name", "gen_ai.conversation.id", "gen_ai.usage.output_tokens",
		"error.type", "ml.epoch_end", "ml.sample.keep", "ml.sample.count", "repro.artifact.fingerprint", "service.name", "job_id",
	}
	fuzzTexts = []string{
		"forward", "backward", "optimizer", "data_load", "batch", "checkpoint", "validation", "epoch", "train", "sample",
		"phase=parent", "a", "b", "", "none", "-1", "9223372036854775807", "\xff", "torchtel", "tuft",
	}
	fuzzNames = []string{"train", "batch_3", "GPT.forward", "AdamW.step", "dataloader.next", "training_backend.forward", ""}
	fuzzTimes = []uint64{0, 1, 1e9, 2e9, 30e9, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1}
)

func (c *choices) value(v pcommon.Value) {
	switch c.next(6) {
	case 0, 1, 2:
		v.SetStr(fuzzTexts[c.next(len(fuzzTexts))])
	case 3:
		v.SetInt(int64(c.next(256)) - 8)
	case 4:
		v.SetBool(c.next(2) == 0)
	default:
		v.SetEmptySlice().AppendEmpty().SetDouble(0.5)
	}
}

func (c *choices) time() pcommon.Timestamp {
	return pcommon.Timestamp(fuzzTimes[c.next(len(fuzzTimes))] + uint64(c.next(2))*uint64(begun.UnixNano()) + uint64(c.next(100))*1e8)
}

func (c *choices) traces() ptrace.Traces {
	td := ptrace.NewTraces()
	for range 1 + c.next(3) {
		rs := td.ResourceSpans().AppendEmpty()
		for range c.next(4) {
			c.value(rs.Resource().Attributes().PutEmpty(fuzzKeys[c.next(len(fuzzKeys))]))
		}
		for range c.next(3) {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(fuzzNames[c.next(len(fuzzNames))])
			for range c.next(6) {
				span := ss.Spans().AppendEmpty()
				span.SetName(fuzzNames[c.next(len(fuzzNames))])
				span.SetTraceID(pcommon.TraceID{byte(c.next(4))})
				span.SetSpanID(pcommon.SpanID{byte(c.next(8))})
				span.SetParentSpanID(pcommon.SpanID{byte(c.next(8))})
				span.SetStartTimestamp(c.time())
				span.SetEndTimestamp(c.time())
				span.Status().SetCode(ptrace.StatusCode(c.next(3)))
				for range c.next(5) {
					c.value(span.Attributes().PutEmpty(fuzzKeys[c.next(len(fuzzKeys))]))
				}
				if c.next(4) == 0 {
					span.Links().AppendEmpty().SetTraceID(pcommon.TraceID{byte(c.next(4))})
				}
			}
		}
	}
	return td
}

// FuzzConsumeTraces shows for any requests that no span appears twice or without having
// been sent, that the numbers of spans add up, that memory is limited, and that nothing
// remains in the end. With one_in 1 nothing is dropped, and no exemplar removed.
func FuzzConsumeTraces(f *testing.F) {
	f.Add([]byte{1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3})
	f.Add([]byte("\x02\x01\x08\x00\x01\x05\x02\x01\x01\x01\x02\x02\x00\x01\x05\x00\x02\x03\x01\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := &choices{raw}
		cfg := defaults()
		cfg.Steps.First, cfg.Steps.Before = c.next(3), c.next(4)
		cfg.MaxBytes = 1 << 20
		all := c.next(2) == 1
		if all {
			cfg.Steps.OneIn, cfg.Calls.OneIn = 1, 1
		}
		b := newBed(t, cfg)
		w := b.instance()
		received := 0
		for len(c.data) > 0 {
			td := c.traces()
			received += td.SpanCount()
			b.consume(t, td)
			if b.sampler.Bytes() > cfg.MaxBytes {
				t.Fatal("too much memory")
			}
			if remain := b.remaining(t, w, td); all {
				require.Equal(t, td.SpanCount(), remain)
			}
			b.pass(t, time.Duration(c.next(40))*time.Second)
		}
		sent := len(b.end(t))
		counts := b.sampler.Counts()
		require.Equal(t, int64(received), counts.Kept+counts.Dropped+counts.Overflow)
		require.Equal(t, int64(sent), counts.Kept)
		if all {
			require.Equal(t, received, sent)
		}
	})
}
