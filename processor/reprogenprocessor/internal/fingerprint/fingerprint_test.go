package fingerprint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
		assert.Equal(t, want, Template(in))
	}
}

const chained = `Traceback (most recent call last):
  File "/srv/app/data.py", line 12, in load
    return parse(row)
           ^^^^^^^^^^
  File "/usr/lib/python3.12/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
  File "/srv/app/data.py", line 30, in parse
    raise KeyError("x")
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/app/main.py", line 3, in <module>
    main()
my.pkg.LoadError: cannot load
`

func TestRootCause(t *testing.T) {
	assert.Equal(t, Cause{Type: "KeyError", Frames: []Frame{{"app/data", "parse"}, {"app/data", "load"}}}, RootCause(chained))
	assert.Equal(t, Cause{}, RootCause(""))
	assert.Equal(t, Cause{}, RootCause("** (RuntimeError) an Elixir trace\n    (app 0.1.0) lib/app.ex:3: App.run/1\n"))
	comprehension := "Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\n  File \"/a/b.py\", line 3, in <listcomp>\nValueError: x\n"
	assert.Equal(t, []Frame{{"a/b", "f"}}, RootCause(comprehension).Frames)
	recursive := "Traceback (most recent call last):\n" + strings.Repeat("  File \"/a/b.py\", line 3, in f\n    f()\n", 50)
	assert.Len(t, RootCause(recursive+"RecursionError: too deep\n").Frames, 1)
}

func TestSum(t *testing.T) {
	base := Parts{Service: "s", Kind: "python_call", Type: "ValueError", Target: "m:f", Frames: []Frame{{"a", "b"}}}
	assert.Regexp(t, "^[0-9a-f]{16}$", Sum(base))
	seen := map[string]string{Sum(base): "base"}
	for name, change := range map[string]func(*Parts){
		"service": func(p *Parts) { p.Service = "t" }, "kind": func(p *Parts) { p.Kind = "context" },
		"type": func(p *Parts) { p.Type = "KeyError" }, "target": func(p *Parts) { p.Target = "m:g" },
		"frames": func(p *Parts) { p.Frames = []Frame{{"ab", ""}} }, "message": func(p *Parts) { p.MessageTemplate = "x" },
		"override": func(p *Parts) { p.Override = "mine" }, "trigger": func(p *Parts) { p.Trigger = "nan" },
		"status": func(p *Parts) { p.Status = 500 }, "another status": func(p *Parts) { p.Status = 429 },
		"override elsewhere": func(p *Parts) { p.Override, p.Service = "mine", "t" },
	} {
		p := base
		change(&p)
		assert.Empty(t, seen[Sum(p)], name)
		seen[Sum(p)] = name
	}
	elsewhere := base
	elsewhere.Frames = []Frame{{"session_2026-11-20_1/train7", "step"}}
	again := base
	again.Frames = []Frame{{"session_2026-11-21_5/train8", "step"}}
	assert.Equal(t, Sum(elsewhere), Sum(again), "numbers of runs in the names of folders do not count")
	other := base
	other.Override, other.Type = "mine", "KeyError"
	assert.Equal(t, "override", seen[Sum(other)], "a client's own fingerprint stands for all but the service")
}

func FuzzTemplate(f *testing.F) {
	f.Add("CUDA out of memory. Tried to allocate 2.50 GiB")
	f.Add("http://x:1/ 1, 2, 3 -- ::")
	f.Fuzz(func(t *testing.T, message string) {
		assert.LessOrEqual(t, len(Template(message)), 8*maxTemplate)
		assert.LessOrEqual(t, len(RootCause(message).Frames), maxFrames)
	})
}
