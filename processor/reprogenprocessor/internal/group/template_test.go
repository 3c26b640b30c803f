package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
)

func TestTemplate(t *testing.T) {
	for in, want := range map[string]string{
		"CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 79.15 GiB total)": "CUDA out of memory. Tried to allocate <size> (GPU <num>; <size> total)",
		"shape (2, 3, 4) does not fit (5, 6)":                                     "shape (<num>) does not fit (<num>)",
		"on cuda:1 and cuda:0":                                                    "on cuda:<n> and cuda:<n>",
		"id 4d5a9f3c-0000-1111-2222-333344445555 lost":                            "id <uuid> lost",
		"object at 0x7f3a2b":                                                      "object at <hex>",
		"no route to 10.0.0.7:4317":                                               "no route to <ip>",
		"GET https://host/x?id=7 failed":                                          "GET <url> failed",
		"at 2026-02-03T04:05:06Z, later":                                          "at <date>, later",
		"loss is -1.5e-3":                                                         "loss is <num>",
		"layers.12.weight":                                                        "layers.<n>.weight",
		"[rank3]: NCCL timeout on trainer-17":                                     "[rank<n>]: NCCL timeout on trainer-<n>",
		"pid=8037, actor_id=027cddb117f94a3d":                                     "pid=<num>, actor_id=<hex>",
		"needs 12GiB or 1.5 TiB, has 3MB and 80 bytes":                            "needs <size> or <size>, has <size> and <size>",
		"no route to [::1]:4317 nor fe80:0:0:0:1:2:3:4":                           "no route to [<ip>]:<n> nor <ip>",
		"step 1,000,000 of 2 000 000":                                             "step <num> of <num>",
		"mat1 and mat2 (32x15 and 16x32)":                                         "mat<n> and mat<n> (<n>x<n> and <n>x<n>)",
		"torch.Size([2, 3]) vs torch.Size([4])":                                   "torch.Size([<num>]) vs torch.Size([<num>])",
		"0.5 vs 1e-5 vs -3":                                                       "<num> vs <num> vs <num>",
		"nothing to replace":                                                      "nothing to replace",
		"ends with a point.":                                                      "ends with a point.",
		"":                                                                        "",
		"::":                                                                      "::",
	} {
		assert.Equal(t, want, template(in))
	}
}

// TestParts: what makes two failures the same, and nothing else, has a part in the
// fingerprint.
func TestParts(t *testing.T) {
	sum := func(change func(*failure.Failure, ptrace.Span)) string {
		f := &failure.Failure{Service: "s", Replay: failure.Replay{Kind: failure.PythonCall, Call: &failure.Call{Module: "m", Function: "f"}},
			Error: failure.Error{Cause: failure.Cause{Type: "ValueError", Frames: []failure.Frame{{Module: "a", Function: "b"}}}}}
		span := ptrace.NewSpan()
		change(f, span)
		return Fingerprint(f, span, pcommon.NewMap(), false, true)
	}
	own := func(_ *failure.Failure, span ptrace.Span) { span.Attributes().PutStr("repro.fingerprint", "mine") }
	status := func(code int64) func(*failure.Failure, ptrace.Span) {
		return func(_ *failure.Failure, span ptrace.Span) {
			span.Attributes().PutInt("http.response.status_code", code)
		}
	}
	module := func(name string) func(*failure.Failure, ptrace.Span) {
		return func(f *failure.Failure, _ ptrace.Span) { f.Error.Cause.Frames[0].Module = name }
	}
	base := sum(func(*failure.Failure, ptrace.Span) {})
	assert.Regexp(t, "^[0-9a-f]{16}$", base)
	seen := map[string]string{base: "base"}
	for name, change := range map[string]func(*failure.Failure, ptrace.Span){
		"service": func(f *failure.Failure, _ ptrace.Span) { f.Service = "t" },
		"kind":    func(f *failure.Failure, _ ptrace.Span) { f.Kind = failure.Context },
		"type":    func(f *failure.Failure, _ ptrace.Span) { f.Error.Cause.Type = "KeyError" },
		"target":  func(f *failure.Failure, _ ptrace.Span) { f.Call.Function = "g" },
		"frames":  func(f *failure.Failure, _ ptrace.Span) { f.Error.Cause.Frames[0] = failure.Frame{Module: "ab"} },
		"message": func(f *failure.Failure, _ ptrace.Span) { f.Error.Cause.Frames, f.Error.Message = nil, "x" },
		"trigger": func(f *failure.Failure, _ ptrace.Span) { f.Trigger = "nan" },
		"status":  status(500), "another status": status(429), "override": own,
		"override elsewhere": func(f *failure.Failure, span ptrace.Span) { f.Service = "t"; own(f, span) },
	} {
		got := sum(change)
		assert.Empty(t, seen[got], name)
		seen[got] = name
	}
	assert.Equal(t, sum(module("session_2026-11-20_1/train7")), sum(module("session_2026-11-21_5/train8")), "numbers of runs in the names of folders do not count")
	other := sum(func(f *failure.Failure, span ptrace.Span) { f.Error.Cause.Type = "KeyError"; own(f, span) })
	assert.Equal(t, "override", seen[other], "a client's own fingerprint stands for all but the service")
	assert.Equal(t, base, sum(func(f *failure.Failure, _ ptrace.Span) { f.Error.Message = "x" }), "frames suffice")
}

func FuzzTemplate(f *testing.F) {
	f.Add("CUDA out of memory. Tried to allocate 2.50 GiB")
	f.Add("http://x:1/ 1, 2, 3 -- ::")
	f.Fuzz(func(t *testing.T, message string) {
		assert.LessOrEqual(t, len(template(message)), 8*maxTemplate)
	})
}
