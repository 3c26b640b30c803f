package reprogenprocessor

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// trainer is a training program that does what its first argument says.
const trainer = `
import os, sys
def fail(): raise ValueError("the loss was lost at step %d" % len(sys.argv))
def chain():
    try: fail()
    except ValueError as error: raise RuntimeError("the step failed") from error
what = sys.argv[1] if len(sys.argv) > 1 else "fail"
print("out:", what, sys.argv[2:], {k: v for k, v in sorted(os.environ.items()) if k.startswith("REPRO_")})
if what == "fail": fail()
elif what == "chain": chain()
elif what == "rank": 
    for line in ("Traceback (most recent call last):", '  File "x.py", line 1, in f', "ValueError: the loss was lost at step 2"):
        print("[rank0]: " + line, file=sys.stderr)
    sys.exit(1)
elif what == "logged":
    import traceback
    try: {}["another"]
    except KeyError: traceback.print_exc()
elif what == "swallowed":
    import traceback
    try: fail()
    except ValueError: traceback.print_exc()
    print("bye", file=sys.stderr)
    os._exit(0)
elif what == "loader":
    raise ValueError("Caught ValueError in worker 0.\nOriginal Traceback (most recent call last):\n  File \"x\", line 1, in f\nKeyError: 'x'\n")
elif what == "other": raise KeyError("nothing of the kind")
elif what == "liar": sys.exit(1)
elif what == "killed": os.kill(os.getpid(), 9)
elif what == "missing": import no_such_module
elif what == "writes": open(sys.argv[2], "w").close()
elif what == "scratch":
    open("note", "w").close()
    import subprocess
    subprocess.run([sys.executable, "-c", "open('more', 'w').close()"], check=True)
    print(sorted(os.listdir(".")))
elif what == "sleeps":
    import time
    time.sleep(600)
`

// trained is the failed span of a training that was started by a command.
func trained(command []any, more map[string]any) failedCall {
	attrs := map[string]any{"process.command_args": command, "process.working_directory": "/srv/run", "ml.step": int64(7)}
	maps.Copy(attrs, more)
	return failedCall{name: "step", attrs: attrs, errorType: "ValueError", message: "the loss was lost at step 2"}
}

func programOf(t *testing.T, content string) string {
	path := filepath.Join(t.TempDir(), "train.py")
	write(t, path, content)
	return path
}

// specText returns what a script is told, and what people are.
func specText(t *testing.T, artifact string) string {
	head, spec := scriptText(t, artifact)
	return head + spec
}

// hasLandlock asks a script whether this kernel has a boundary that can hold a
// program alone.
func hasLandlock(t *testing.T) bool {
	info := pythons(t)[0].run(t, script(t, failedCall{errorType: "E"}), nil, "--info").Stderr
	return strings.Contains(info, ", TCP")
}

// TestTraining starts training programs again. Where the kernel has no Landlock
// that knows of TCP, each run needs the flag for side effects.
func TestTraining(t *testing.T) {
	program := programOf(t, trainer)
	guarded := hasLandlock(t)
	run := []string{"--script", program}
	recorded := func(args ...any) []any { return append([]any{"/usr/bin/python3", "-u", "train.py"}, args...) }
	checkpoint := map[string]any{"repro.checkpoint.uri": "file:///no/such/step-7.pt"}
	outside := filepath.Join(t.TempDir(), "outside")
	for name, tc := range map[string]struct {
		failedCall
		args   []string
		env    []string
		exit   int
		reason string
		shown  string
		bare   bool // without the flag, whatever the kernel has
	}{
		"shown, and not run":  {failedCall: trained(recorded("fail"), nil), exit: 4, reason: "--script", shown: "recorded command: /usr/bin/python3 -u train.py fail", bare: true},
		"a dry run":           {failedCall: trained(recorded("fail"), nil), args: append([]string{"--dry-run"}, run...), exit: 0, shown: "command: python3 " + program + " fail"},
		"reproduced":          {failedCall: trained(recorded("fail"), nil), args: run, exit: 1, reason: "the loss was lost", shown: "| ValueError"},
		"with its arguments":  {failedCall: trained(recorded("fail", "--lr", "$(id) 'x\n"), nil), args: run, exit: 1, shown: `['--lr', "$(id) 'x\n"]`},
		"without interpreter": {failedCall: trained([]any{"/srv/run/train.py", "fail"}, nil), args: run, exit: 1},
		"one more argument":   {failedCall: trained(recorded("fail"), nil), args: append([]string{"--script-arg=--more"}, run...), exit: 1, shown: "['--more']"},
		"the state of the run": {failedCall: trained(recorded("fail"), map[string]any{"repro.seed": int64(3), "repro.batch.ids": []any{int64(1), int64(2)},
			"ml.rank.global": int64(1), "ml.world_size": int64(2)}), args: run, exit: 1,
			shown: "{'REPRO_BATCH_IDS': '[1, 2]', 'REPRO_RANK': '1', 'REPRO_SEED': '3', 'REPRO_STEP': '7', 'REPRO_WORLD_SIZE': '2'}"},
		"another seed":          {failedCall: trained(recorded("fail"), map[string]any{"repro.seed": int64(3)}), args: append([]string{"--seed", "9"}, run...), exit: 1, shown: "'REPRO_SEED': '9'"},
		"repaired":              {failedCall: trained(recorded("fine"), nil), args: run, exit: 0},
		"another error":         {failedCall: trained(recorded("other"), nil), args: run, exit: 3, reason: "KeyError"},
		"another message":       {failedCall: trained(recorded("loader"), nil), args: run, exit: 3},
		"a traceback within":    {failedCall: failing(trained(recorded("loader"), nil), "ValueError", "Caught ValueError in worker 0."), args: run, exit: 1},
		"its cause":             {failedCall: failing(trained(recorded("chain"), nil), "RuntimeError", "the step failed"), args: run, exit: 1},
		"its status lies":       {failedCall: trained(recorded("liar"), nil), args: run, exit: 3, reason: "without a traceback"},
		"its status hides it":   {failedCall: trained(recorded("swallowed"), nil), args: run, exit: 1},
		"an error that it bore": {failedCall: trained(recorded("logged"), nil), args: run, exit: 0},
		"a rank's traceback":    {failedCall: trained(recorded("rank"), nil), args: run, exit: 1},
		"killed":                {failedCall: trained(recorded("killed"), nil), args: run, exit: 3, reason: "signal 9"},
		"killed as before":      {failedCall: failing(trained(recorded("killed"), map[string]any{"repro.trigger": "crash"}), "", ""), args: run, exit: 1, reason: "signal 9"},
		"no number":             {failedCall: failing(trained(recorded("fine"), map[string]any{"repro.trigger": "nan"}), "", ""), args: run, exit: 5, reason: "no number"},
		"a missing package":     {failedCall: trained(recorded("missing"), nil), args: run, exit: 5, reason: "no_such_module"},
		"too slow":              {failedCall: trained(recorded("sleeps"), nil), args: append([]string{"--timeout", "1"}, run...), exit: 6},
		"several times":         {failedCall: trained(recorded("fail"), nil), args: append([]string{"--times", "2"}, run...), exit: 1, shown: "run 2 of 2"},
		"for git bisect":        {failedCall: trained(recorded("fine"), nil), args: append([]string{"--bisect"}, run...), exit: 0},
		"for git bisect, other": {failedCall: trained(recorded("other"), nil), args: append([]string{"--bisect"}, run...), exit: 125},
		"no debugger":           {failedCall: trained(recorded("fail"), nil), args: append([]string{"--pdb", "--allow-side-effects"}, run...), exit: 2, reason: "set_trace"},
		"not isolated":          {failedCall: trained(recorded("fail"), nil), args: append([]string{"--no-isolate", "--allow-side-effects"}, run...), exit: 1},
		"not isolated, refused": {failedCall: trained(recorded("fail"), nil), args: append([]string{"--no-isolate"}, run...), exit: 4, reason: "--allow-side-effects", bare: true},
		"a script that is none": {failedCall: trained(recorded("fail"), nil), args: []string{"--script", program + "x"}, exit: 2},

		"as it was named":          {failedCall: trained([]any{"python3.11", program, "fail"}, nil), args: run, exit: 1},
		"a module":                 {failedCall: trained([]any{"python", "-m", "train", "fail"}, nil), args: []string{"--script", "-m train"}, env: []string{"PYTHONPATH=" + filepath.Dir(program)}, exit: 1},
		"a module, in one":         {failedCall: trained([]any{"python", "-umtrain", "fail"}, nil), args: []string{"--script=-m train"}, env: []string{"PYTHONPATH=" + filepath.Dir(program)}, exit: 1},
		"a module that is missing": {failedCall: trained([]any{"python", "-m", "train", "fail"}, nil), args: []string{"--script", "-m train"}, exit: 5, reason: "PYTHONPATH"},
		"a module that is none":    {failedCall: trained([]any{"python", "-m", "train", "fail"}, nil), args: []string{"--script", "-m tr ain"}, exit: 2},
		"a module, not named":      {failedCall: trained([]any{"python", "-m", "timeit", "import os"}, nil), exit: 4, bare: true},
		"code":                     {failedCall: trained([]any{"python", "-c", "open('" + outside + "','w')"}, nil), args: []string{"--allow-side-effects"}, exit: 4},
		"code, as Python shows it": {failedCall: trained([]any{"-c", "x"}, nil), args: []string{"--allow-side-effects"}, exit: 4},
		"no program":               {failedCall: trained([]any{"python", "-u"}, nil), args: run, exit: 5, reason: "names no program"},
		"an unknown option":        {failedCall: trained([]any{"python", "--jit", "train.py"}, nil), args: run, exit: 5},

		"a checkpoint":               {failedCall: trained(recorded("fail"), checkpoint), args: run, exit: 5, reason: "--checkpoint PATH"},
		"without the checkpoint":     {failedCall: trained(recorded("fail"), checkpoint), args: append([]string{"--checkpoint", "none"}, run...), exit: 1},
		"the recorded, not here":     {failedCall: trained(recorded("fail"), checkpoint), args: append([]string{"--checkpoint", "original"}, run...), exit: 5, reason: "/no/such/step-7.pt is not here"},
		"the recorded, withheld":     {failedCall: trained(recorded("fail"), map[string]any{"repro.checkpoint.uri": "s3://b/7?X-Amz-Signature=0123456789abcdef"}), args: append([]string{"--checkpoint", "original"}, run...), exit: 5, reason: "--checkpoint PATH"},
		"the recorded, elsewhere":    {failedCall: trained(recorded("fail"), map[string]any{"repro.checkpoint.uri": "s3://b/7"}), args: append([]string{"--checkpoint", "original"}, run...), exit: 1, shown: "'REPRO_CHECKPOINT': 's3://b/7'"},
		"another checkpoint":         {failedCall: trained(recorded("fail", "--resume=/no/such/step-7.pt", "/no/such/step-7.pt"), checkpoint), args: append([]string{"--checkpoint", program}, run...), exit: 1, shown: "['--resume=" + program + "', '" + program + "']"},
		"a checkpoint that is none":  {failedCall: trained(recorded("fail"), checkpoint), args: append([]string{"--checkpoint", program + "x"}, run...), exit: 2},
		"a secret in the arguments":  {failedCall: trained(recorded("fail", "--api-key", "hunter2hunter2"), nil), args: run, exit: 5, reason: "payload.command[5]"},
		"a secret, given again":      {failedCall: trained(recorded("fail", "--api-key", "hunter2hunter2"), nil), args: append([]string{"--set", "command[5]=mine"}, run...), exit: 1, shown: "['--api-key', 'mine']"},
		"writing in its own folder":  {failedCall: trained(recorded("scratch"), nil), args: run, exit: 0, shown: "['more', 'note']"},
		"writing elsewhere, allowed": {failedCall: trained(recorded("writes", outside+"2"), nil), args: append([]string{"--allow-side-effects"}, run...), exit: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			produce(t, cfg, tc.traces())
			artifact := onlyArtifact(t, cfg)
			args := slices.Clone(tc.args)
			if !guarded && !tc.bare {
				args = append(args, "--allow-side-effects")
			}
			r := pythons(t)[0].run(t, artifact, tc.env, args...)
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, tc.reason)
			assert.Contains(t, r.Stderr, tc.shown)
			assert.NoFileExists(t, outside)
		})
	}
	t.Run("writing elsewhere", func(t *testing.T) {
		t.Parallel()
		for _, py := range pythons(t) {
			artifact := script(t, trained(recorded("writes", outside), nil))
			r := py.run(t, artifact, nil, run...)
			assert.Equal(t, 4, r.Exit, "with Landlock or without: %s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, "--allow-side-effects")
			assert.NoFileExists(t, outside)
			r = py.run(t, script(t, trained(recorded("fail"), nil)), nil, append([]string{"--allow-side-effects"}, run...)...)
			assert.Equal(t, 1, r.Exit, "%s: %s\n%s", py.path, r.Stdout, r.Stderr)
		}
	})
}

func failing(f failedCall, errorType, message string) failedCall {
	f.errorType, f.message = errorType, message
	return f
}

// TestTrainingByPlace compares places where the messages differ.
func TestTrainingByPlace(t *testing.T) {
	t.Parallel()
	program := programOf(t, strings.ReplaceAll(trainer, "the loss was lost", "words that nobody has read before"))
	f := trained([]any{"train.py", "chain"}, nil)
	f.errorType, f.message = "RuntimeError", "nothing alike"
	f.stack = "Traceback (most recent call last):\n  File \"" + program + "\", line 3, in fail\n    raise\nValueError: x\n\n" +
		"The above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n" +
		"  File \"" + program + "\", line 6, in chain\n    raise\nRuntimeError: nothing alike\n"
	for flags, exit := range map[string]int{"": 1, "frame": 1, "type": 1, "message": 3} {
		args := []string{"--script", program, "--allow-side-effects"}
		if flags != "" {
			args = append(args, "--match", flags)
		}
		r := pythons(t)[0].run(t, script(t, f), nil, args...)
		assert.Equal(t, exit, r.Exit, "%s: %s\n%s", flags, r.Stdout, r.Stderr)
	}
}

// TestWhatIsTraining: a command makes no training, nor does a step without one.
func TestWhatIsTraining(t *testing.T) {
	command := []any{"train.py", "--lr", "1"}
	many := make([]any, 300)
	for i := range many {
		many[i] = "x"
	}
	for name, tc := range map[string]struct {
		failedCall
		resource map[string]any
		parent   map[string]any
		want     string
	}{
		"of the resource":          {failedCall: failedCall{attrs: map[string]any{"ml.epoch": int64(1)}}, resource: map[string]any{"process.command_args": command}, want: `"kind": "train_step"`},
		"by the span above":        {failedCall: failedCall{}, resource: map[string]any{"process.command_args": command}, parent: map[string]any{"ml.step": int64(1)}, want: `"kind": "train_step"`},
		"by its phase":             {failedCall: trained(command, map[string]any{"ml.step": "", "ml.phase": "backward"}), want: `"kind": "train_step"`},
		"one text":                 {failedCall: failedCall{attrs: map[string]any{"ml.step": int64(1)}}, resource: map[string]any{"process.command_line": "python  train.py --lr 1"}, want: `"--lr"`},
		"one text with quotes":     {failedCall: failedCall{attrs: map[string]any{"ml.step": int64(1), "process.command_line": `train.py "a b"`}}, want: `"reason": "command_ambiguous"`},
		"a service":                {failedCall: failedCall{attrs: map[string]any{"process.command_args": command}}, want: `"reason": "no_payload"`},
		"sampling":                 {failedCall: failedCall{attrs: map[string]any{"process.command_args": command, "ml.phase": "sample"}}, want: `"reason": "no_payload"`},
		"a step without a command": {failedCall: failedCall{attrs: map[string]any{"ml.step": int64(1)}}, want: `"reason": "no_payload"`},
		"no list":                  {failedCall: failedCall{attrs: map[string]any{"ml.step": int64(1), "process.command_args": "train.py"}}, want: `"reason": "payload_invalid"`},
		"no texts":                 {failedCall: trained([]any{"train.py", int64(1)}, nil), want: `"reason": "payload_invalid"`},
		"nothing":                  {failedCall: trained([]any{}, nil), want: `"reason": "payload_invalid"`},
		"a long argument":          {failedCall: trained([]any{"train.py", strings.Repeat("x", 9000)}, nil), want: `"reason": "payload_truncated"`},
		"many arguments":           {failedCall: trained(many, nil), want: `"reason": "payload_truncated"`},
		"a call is more":           {failedCall: failedCall{payload: call("json", "dumps", "[]", "{}"), attrs: trained(command, nil).attrs}, want: `"kind": "python_call"`},
		"a call that was cut": {failedCall: failedCall{payload: `{"python`, attrs: trained(command, nil).attrs},
			want: `"reason": "payload_invalid"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tc.failedCall
			if tc.parent != nil {
				f.span, f.parent = 2, 1
			}
			td := f.traces()
			require.NoError(t, td.ResourceSpans().At(0).Resource().Attributes().FromRaw(tc.resource))
			if tc.parent != nil {
				(failedCall{name: "parent", span: 1, attrs: tc.parent}).appendTo(td).Status().SetCode(0)
			}
			cfg := testConfig(t)
			produce(t, cfg, td)
			assert.Contains(t, specText(t, onlyArtifact(t, cfg)), tc.want)
		})
	}
}

// TestHostileTraining: what a command, a folder and a checkpoint say is data in
// the script and an argument of the program.
func TestHostileTraining(t *testing.T) {
	code := newSyntax(t, "train_step", `["payload", "command"]`)
	program := programOf(t, "import json, os, sys\nopen(os.environ['SEEN'], 'w').write(json.dumps(sys.argv[1:]))\n")
	for name, raw := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			canary := filepath.Join(t.TempDir(), "canary")
			s := strings.ReplaceAll(strings.ReplaceAll(raw, "CANARY,", `"`+canary+`",`), "CANARY", canary)
			sent := jsontree.Array{"train.py", s, "--x=" + s}
			artifact := script(t, trained([]any{"train.py", s, "--x=" + s}, map[string]any{
				"process.working_directory": s, "repro.checkpoint.uri": s, "repro.epoch": s, "repro.batch.ids": s, "repro.seed": s, "repro.rank": s,
			}))
			if strings.Contains(s, strings.Repeat("A", 5000)) {
				assert.Contains(t, text(t, artifact, "repro.py"), `"reason": "payload_truncated"`)
				return
			}
			code.add(checkOf(t, artifact, string(jsontree.Encode(sent))))
			py := pythons(t)[0]
			seen := filepath.Join(t.TempDir(), "seen")
			r := py.run(t, artifact, []string{"SEEN=" + seen, "PYTHONUTF8=1"}, "--script", program, "--checkpoint", "none", "--allow-side-effects")
			if strings.Contains(s, "\x00") {
				assert.Equal(t, 5, r.Exit, "no argument has a NUL: %s\n%s", r.Stdout, r.Stderr)
			} else {
				assert.Equal(t, 0, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				assert.JSONEq(t, string(jsontree.Encode(sent[1:])), text(t, seen))
			}
			for _, b := range []byte(r.Stdout + r.Stderr) {
				require.True(t, b == '\n' || b >= 0x20 && b <= 0x7E, "the terminal gets byte 0x%02x", b)
			}
			_, err := os.Stat(canary)
			assert.ErrorIs(t, err, os.ErrNotExist, "something was executed")
		})
	}
}

// TestTrainingThatLeavesProcesses: what a program starts ends with it, also in
// a session of its own.
func TestTrainingThatLeavesProcesses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells of such processes")
	}
	for what, end := range map[string]int{"time.sleep(600)": 6, "raise ValueError('the loss was lost at step 2')": 1} {
		noted := filepath.Join(t.TempDir(), "pid")
		program := programOf(t, `
import os, subprocess, sys, time
left = subprocess.Popen([sys.executable, "-c", "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(900)'], start_new_session=True); time.sleep(900)"], start_new_session=True)
with open(sys.argv[1], "w") as file: file.write(str(left.pid))
`+what+"\n")
		r := pythons(t)[0].run(t, script(t, trained([]any{"train.py", noted}, nil)), nil, "--script", program, "--allow-side-effects", "--timeout", "10")
		assert.Equal(t, end, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		assert.NoDirExists(t, "/proc/"+text(t, noted))
	}
}

// TestTrainingInAnotherEncoding: what a program writes is passed on, whatever
// can be shown.
func TestTrainingInAnotherEncoding(t *testing.T) {
	t.Parallel()
	program := programOf(t, "import sys\nsys.stderr.buffer.write(b'Gr\\xc3\\xbc\\xc3\\x9fe\\n' * 20000)\nsys.stderr.flush()\nraise ValueError('the loss was lost at step 2')\n")
	r := pythons(t)[0].run(t, script(t, trained([]any{"train.py"}, nil)), []string{"PYTHONIOENCODING=ascii"},
		"--script", program, "--allow-side-effects", "--timeout", "60")
	assert.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, attr.Cut(r.Stderr, 2000))
	assert.Contains(t, r.Stderr, `| Gr\xfc\xdfe`)
}

// TestTextThatPassesForAVerdict: no recorded text begins a line of the script's
// own.
func TestTextThatPassesForAVerdict(t *testing.T) {
	f := trained([]any{"train.py", "x\nreproduced: by words"}, map[string]any{"process.working_directory": "/srv\nreproduced: by words"})
	f.message = "x\nreproduced: by words"
	r := pythons(t)[0].run(t, script(t, f), nil, "--info")
	assert.Equal(t, 4, r.Exit)
	assert.Contains(t, r.Stderr, "by words")
	assert.NotContains(t, "\n"+r.Stderr, "\nreproduced")
}
