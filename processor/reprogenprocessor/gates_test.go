package reprogenprocessor

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trapModule is an allowed module through which much can be reached that is
// not its own.
const trapModule = `
import functools, os, subprocess, types
from os import system
from subprocess import run as shell
import pickle as storage
runner = functools.partial(os.system)
touch = os.utime

def fail(*args, **kwargs):
    raise ValueError("fail was called")

def helper(name):
    open(name, "w").close()

class Tool:
    run = os.system
    call = staticmethod(os.system)
    shell = subprocess.run
    def fail(self): raise ValueError("a method")
    @classmethod
    def make(cls): raise ValueError("a class method")
    @staticmethod
    def plain(): raise ValueError("a static method")
    @property
    def lazy(self): return os.system
    def __call__(self): raise ValueError("an instance")

class Shell(subprocess.Popen):
    pass

class Own:
    def __init__(self, *args): raise ValueError("constructed")

class Error(Exception):
    pass

tool = Tool()
instance_of_partial = functools.partial(fail)

@functools.lru_cache(maxsize=None)
def cached(): raise ValueError("cached")

def decorate(f):
    @functools.wraps(f)
    def inner(*args): return f(*args)
    return inner

@decorate
def decorated(): raise ValueError("decorated")

def __getattr__(name):
    if name == "computed": return os.system
    raise AttributeError(name)
`

func TestHops(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "trap", "__init__.py"), trapModule+"from trap import sub\n")
	write(t, filepath.Join(packages, "trap", "sub.py"), "def fail(): raise ValueError('in sub')\n")
	for target, exits := range map[string]map[string]int{
		// What the module defines may be called.
		"fail":        {"trap": 1, "trap.*": 1, "trap:fail": 1, "trap:other": 4, "trapdoor": 4, "trap.sub": 4},
		"Tool.make":   {"trap": 1},
		"Tool.plain":  {"trap": 1},
		"tool.fail":   {"trap": 1},
		"tool":        {"trap": 1},
		"Own":         {"trap": 1},
		"cached":      {"trap": 1},
		"decorated":   {"trap": 1},
		"sub.fail":    {"trap": 4, "trap.*": 1},
		"Error":       {"trap": 0},
		"no_such":     {"trap": 4, "trap:no_such": 5},
		"fail.nested": {"trap": 5},
		// What it merely imported, hides or computes may not.
		"system":               {"trap": 4, "trap.*": 4},
		"shell":                {"trap": 4},
		"os.system":            {"trap": 4, "trap.*": 4},
		"storage.loads":        {"trap": 4},
		"types.FunctionType":   {"trap": 4},
		"runner":               {"trap": 4},
		"touch":                {"trap": 4},
		"instance_of_partial":  {"trap": 4},
		"Tool.run":             {"trap": 4},
		"Tool.call":            {"trap": 4},
		"Tool.shell":           {"trap": 4},
		"tool.lazy":            {"trap": 4},
		"Shell":                {"trap": 4},
		"computed":             {"trap": 4},
		"__getattr__":          {"trap": 4},
		"fail.__globals__":     {"trap": 4},
		"Tool.__subclasses__":  {"trap": 4},
		"Error.with_traceback": {"trap": 4}, // BaseException's own
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			for entry, exit := range exits {
				canary := filepath.Join(t.TempDir(), "canary")
				args := "[]"
				if exit == 4 {
					args = `["touch ` + canary + `"]`
				}
				cfg := testConfig(t, entry)
				produce(t, cfg, failedCall{payload: call("trap", target, args, "{}"), errorType: "ValueError"}.traces())
				r := pythons(t)[0].run(t, onlyArtifact(t, cfg), []string{"PYTHONPATH=" + packages})
				assert.Equal(t, exit, r.Exit, "%s: %s\n%s", entry, r.Stdout, r.Stderr)
				assert.NoFileExists(t, canary)
			}
		})
	}
}

// TestWidePackages: an entry for a package of shells and writers opens none of
// them; the name of one callable opens that one.
func TestWidePackages(t *testing.T) {
	for _, tc := range []struct {
		module, function, args string
		allowed                string
		flags                  string
		exit                   int
	}{
		{"os", "system", `["true"]`, "os", "", 4},
		{"os", "system", `["true"]`, "os.*", "", 4},
		{"os", "getcwd", `[]`, "os:getcwd", "", 0},
		{"os.path", "join", `["a"]`, "os.path", "", 4},
		{"os.path", "join", `["a"]`, "os.path:join", "", 0},
		{"subprocess", "run", `["true"]`, "subprocess", "--allow-unsafe", 4}, // the guard still stands
		{"subprocess", "run", `["true"]`, "subprocess", "--allow-unsafe --allow-side-effects", 0},
		{"logging", "FileHandler", `["CANARY"]`, "logging", "", 4},
		{"numpy", "save", `["CANARY",[1]]`, "numpy", "", 4},
		{"torch", "load", `["CANARY"]`, "torch.*", "", 4},
		{"builtins", "eval", `["1"]`, "json", "--allow-unsafe", 4},
	} {
		t.Run(tc.module+" "+tc.allowed+" "+tc.flags, func(t *testing.T) {
			t.Parallel()
			canary := filepath.Join(t.TempDir(), "canary")
			cfg := testConfig(t, tc.allowed)
			produce(t, cfg, failedCall{payload: call(tc.module, tc.function, strings.ReplaceAll(tc.args, "CANARY", canary), "{}")}.traces())
			r := pythons(t)[0].run(t, onlyArtifact(t, cfg), nil, strings.Fields(tc.flags)...)
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.NoFileExists(t, canary)
		})
	}
}

// TestGuard calls what an allowed module of the operator's own does wrongly.
func TestGuard(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), `
import ctypes, os, pickle, shutil, socket, sqlite3, subprocess, sys, tempfile, threading
def spawn(path): subprocess.run(["touch", path])
def shell(path): os.system("touch " + path)
def fork(path):
    if os.fork() == 0: os._exit(0)
def writes(path): open(path, "w")
def low_level(path): os.open(path, os.O_WRONLY | os.O_CREAT)
def removes(path): os.remove(__file__)
def renames(path): os.rename(__file__, path)
def links(path): os.symlink("/etc/passwd", path)
def chmods(path): os.chmod(__file__, 0o777)
def makes(path): os.mkdir(path)
def connects(path): socket.create_connection(("127.0.0.1", 9))
def database(path): sqlite3.connect(path)
def loads(path): pickle.loads(b"cos\nsystem\n(S'true'\ntR.")
def library(path): ctypes.CDLL(None)
def kills(path): os.kill(os.getppid(), 0)
def catches(path):
    try: open(path, "w")
    except BaseException: pass
def thread(path):
    t = threading.Thread(target=open, args=(path, "w")); t.start(); t.join()
def reads(path): open(__file__).read()
def scratch(path):
    with open("note", "w") as f: f.write("x")
    tempfile.mkdtemp(); os.mkdir("folder"); os.rename("note", "folder/note"); shutil.rmtree("folder")
    open(os.devnull, "w")
def leaves(path): os._exit(0)
def ends(path): sys.exit(1)
def dies(path): os.abort()
def reproduced(path): raise ValueError("the real one")
def silent(path): return 1
def noisy(path):
    print("\x1b[31mred\u202e\r\n" + "x" * 100)
    raise ValueError("the real one")
`)
	for function, exits := range map[string]struct {
		exit  int
		flags string
	}{
		"spawn": {4, "--allow-side-effects"}, "shell": {4, "--allow-side-effects"}, "fork": {4, "--allow-side-effects"},
		"writes": {4, "--allow-side-effects"}, "low_level": {4, "--allow-side-effects"}, "removes": {4, ""},
		"renames": {4, ""}, "links": {4, "--allow-side-effects"}, "chmods": {4, ""}, "makes": {4, "--allow-side-effects"},
		"connects": {4, ""}, "database": {4, "--allow-side-effects"}, "loads": {4, ""}, "library": {4, "--allow-unsafe"},
		"kills": {4, ""}, "catches": {4, "--allow-side-effects"}, "thread": {4, "--allow-side-effects"},
		"reads": {0, ""}, "scratch": {0, ""}, "silent": {0, ""},
		"leaves": {3, ""}, "ends": {3, ""}, "dies": {3, ""},
		"reproduced": {1, ""}, "noisy": {1, ""},
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			canary := filepath.Join(t.TempDir(), "canary")
			cfg := testConfig(t, "app")
			produce(t, cfg, failedCall{payload: call("app", function, `["`+canary+`"]`, "{}"),
				errorType: "ValueError", message: "the real one"}.traces())
			artifact := onlyArtifact(t, cfg)
			for _, py := range pythons(t) {
				r := py.run(t, artifact, []string{"PYTHONPATH=" + packages})
				assert.Equal(t, exits.exit, r.Exit, "%s: %s\n%s", py.path, r.Stdout, r.Stderr)
				assert.NoFileExists(t, canary)
				for _, b := range []byte(r.Stdout + r.Stderr) {
					if b != '\n' && (b < 0x20 || b > 0x7E) {
						t.Fatalf("the terminal gets byte 0x%02x", b)
					}
				}
			}
			if exits.flags != "" {
				r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, exits.flags)
				assert.Equal(t, 0, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			}
		})
	}
}

// TestTags rebuilds each of Snakepit's tagged values and shows the call.
func TestTags(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), "def show(v): raise ValueError(repr(v))\n")
	for tag, want := range map[string]string{
		`{"__type__":"tuple","__schema__":1,"elements":[1,"a",null,true]}`:      "(1, 'a', None, True)",
		`{"__type__":"set","__schema__":1,"elements":[1]}`:                      "{1}",
		`{"__type__":"frozenset","__schema__":1,"elements":[1]}`:                "frozenset({1})",
		`{"__type__":"bytes","__schema__":1,"data":"AP8="}`:                     `b'\x00\xff'`,
		`{"__type__":"complex","__schema__":1,"real":1.0,"imag":-2.5}`:          "(1-2.5j)",
		`{"__type__":"datetime","__schema__":1,"value":"2026-02-03T04:05:06Z"}`: "datetime.datetime(2026, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc)",
		`{"__type__":"date","__schema__":1,"value":"2026-02-03"}`:               "datetime.date(2026, 2, 3)",
		`{"__type__":"time","__schema__":1,"value":"04:05:06"}`:                 "datetime.time(4, 5, 6)",
		`{"__type__":"special_float","__schema__":1,"value":"neg_infinity"}`:    "-inf",
		`NaN`:       "nan",
		`-Infinity`: "-inf",
		`{"__type__":"dict","__schema__":1,"pairs":[[{"__type__":"tuple","elements":[1]},2]]}`: "{(1,): 2}",
		`{"__type__":"atom","__schema__":1,"value":"ok"}`:                                      "'ok'",
		`[5.0,9007199254740993,1e2,-0.0]`:                                                      "[5.0, 9007199254740993, 100.0, -0.0]",
		`{"b":1,"a":[{}]}`:                                                                     "{'b': 1, 'a': [{}]}",
	} {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, "app")
			produce(t, cfg, failedCall{payload: call("app", "show", "["+tag+"]", "{}"), errorType: "ValueError", message: want}.traces())
			artifact := onlyArtifact(t, cfg)
			for _, py := range pythons(t) {
				r := py.run(t, artifact, []string{"PYTHONPATH=" + packages})
				assert.Equal(t, 1, r.Exit, "%s: %s\n%s", py.path, r.Stdout, r.Stderr)
				assert.Equal(t, want, r.Message)
			}
		})
	}
}

// TestModulesThatRunConfiguration: an entry for a package whose functions call
// what a configuration names opens none of them.
func TestModulesThatRunConfiguration(t *testing.T) {
	packages := t.TempDir()
	for target, function := range map[string]string{
		"hydra.utils": "instantiate", "deepspeed": "initialize", "mmengine.config": "fromfile", "mmcv": "Config", "omegaconf": "OmegaConf.create",
		"detectron2.config": "instantiate", "fvcore.common.config": "load_cfg", "gin": "parse_config", "jsonargparse": "CLI", "fiddle": "build",
		"confection": "registry.resolve", "lightning_fabric": "seed", "nemo.core": "instantiate", "megatron": "run", "fairseq": "load", "torchtune": "parse",
		"ml_collections": "load", "kedro": "run", "papermill": "execute_notebook", "traitlets.config": "Application", "langchain_core.load": "load",
		"litellm": "completion", "ultralytics": "YOLO", "tensorrt_llm": "build", "zope": "configure", "paddle": "load", "trl": "train", "thinc": "load",
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			artifact := script(t, failedCall{payload: call(target, function, "[]", "{}"), errorType: "ValueError"}, target+".*", strings.Split(target, ".")[0]+".*")
			r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, "--dry-run")
			assert.Equal(t, 4, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, "--allow-module "+target+":"+function)
			assert.Equal(t, 0, pythons(t)[0].run(t, artifact, nil, "--dry-run", "--allow-module", target+":"+function).Exit)
		})
	}
}

// TestUnsafeSaysWhatItPermits, in the help and whenever it is used; and it
// permits no more.
func TestUnsafeSaysWhatItPermits(t *testing.T) {
	t.Parallel()
	packages := t.TempDir()
	write(t, filepath.Join(packages, "trap.py"), "import codecs, os, types, gc\ndef look(): return gc.get_objects()\n")
	env := []string{"PYTHONPATH=" + packages}
	for function, exits := range map[string][2]int{
		"os.getcwd": {4, 0}, "os.getpid.__class__": {4, 4}, "look": {4, 0},
		"codecs.builtins.dict": {4, 4}, "types.SimpleNamespace": {4, 4}, "codecs.sys.exc_info": {4, 0},
	} {
		t.Run(function, func(t *testing.T) {
			artifact := script(t, failedCall{payload: call("trap", function, "[]", "{}"), errorType: "ValueError"}, "trap")
			assert.Equal(t, exits[0], pythons(t)[0].run(t, artifact, env).Exit)
			r := pythons(t)[0].run(t, artifact, env, "--allow-unsafe")
			assert.Equal(t, exits[1], r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			help := strings.Join(strings.Fields(pythonHelp(t, artifact)), " ")
			for _, permitted := range []string{"wide package", "whatever an allowed module imported", "pickle", "ctypes", "running Python files", "sys.settrace", "sys.addaudithook"} {
				assert.Contains(t, r.Stderr, permitted)
				assert.Contains(t, help, permitted)
				assert.Contains(t, strings.Join(strings.Fields(text(t, "README.md")), " "), permitted)
			}
		})
	}
}

func pythonHelp(t *testing.T, artifact string) string {
	out, err := exec.Command(pythons(t)[0].path, filepath.Join(artifact, "repro.py"), "--help").Output()
	require.NoError(t, err)
	return string(out)
}

// TestReportedCommandReproduces: the command that a report names reproduces, or
// names the one flag that is missing, whatever the operator allows.
func TestReportedCommandReproduces(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "inner.py"), "def fail(): raise ValueError('the real one')\n")
	write(t, filepath.Join(packages, "outer.py"), "from inner import fail\ndef _hidden(): raise ValueError('hidden')\n")
	for name, tc := range map[string]struct {
		module, function string
		allowed          []string
		flags            string
	}{
		"nothing is allowed":           {"outer", "fail", nil, " --allow-module outer:fail"},
		"another module is":            {"outer", "fail", []string{"inner", "outer.deeper"}, " --allow-module outer:fail"},
		"the callable is":              {"outer", "fail", []string{"outer:fail"}, ""},
		"the module is":                {"inner", "fail", []string{"inner"}, ""},
		"all below it is":              {"inner", "fail", []string{"inner.*"}, ""},
		"the module, and it is hidden": {"outer", "_hidden", []string{"outer.*"}, " --allow-module outer:_hidden"},
		"the package is":               {"json", "loads", []string{"os", "json"}, ""},
		"a wide package is the call's": {"shutil", "copy", []string{"shutil"}, " --allow-module shutil:copy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, tc.allowed...)
			failed := failedCall{payload: call(tc.module, tc.function, "[]", "{}"), errorType: "ValueError"}
			if tc.module == "json" || tc.module == "shutil" {
				failed.errorType = "TypeError" // for want of arguments
			}
			produce(t, cfg, failed.traces())
			artifact := onlyArtifact(t, cfg)
			report := text(t, artifact, "report.md")
			assert.Contains(t, report, "\npython3 repro.py\n```\n")
			if tc.flags != "" {
				r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages})
				assert.Equal(t, 4, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				assert.Contains(t, r.Reason, ";"+tc.flags+" permits it")
			}
			// json and shutil come with Python.
			own := tc.module == "outer" || tc.module == "inner"
			assert.Equal(t, own, strings.Contains(report, "\nIt needs:\n\n- Python module "+tc.module+"\n\n"), report)
			r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, strings.Fields(tc.flags)...)
			assert.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		})
	}
}

// TestReportedNeeds: a report says what the machine must have, in words that
// telemetry does not choose.
func TestReportedNeeds(t *testing.T) {
	on := func(device string) string { return `,"device":"` + device + `"` }
	args := "[" + tensor("tensor", "float32", "[1]", "null", on("cuda:1")) + "," + tensor("tensor", "float32", "[1]", "null", on("a place\\n- of its own")) + "]"
	for payload, needs := range map[string]string{
		call("app.models", "predict", args, "{}"): "- Python module app.models\n- PyTorch\n- device cuda:1 (--device auto takes another)\n",
		call("app\\n- rm", "f", args, "{}"):       "- PyTorch\n- device cuda:1 (--device auto takes another)\n",
		call("os_tools.path", "join", "[]", "{}"): "- Python module os_tools.path\n",
		// What comes with Python needs no installation.
		call("xml.dom.minidom", "parse", "[]", "{}"):                 "",
		call("statistics", "mean", "[[]]", `{"password":"hunter2"}`): "",
	} {
		cfg := testConfig(t)
		produce(t, cfg, failedCall{payload: payload, errorType: "ValueError"}.traces())
		report := text(t, onlyArtifact(t, cfg), "report.md")
		if needs == "" {
			assert.NotContains(t, report, "It needs:")
		} else {
			assert.Contains(t, report, "\nIt needs:\n\n"+needs+"\n## ")
		}
		assert.Equal(t, strings.Contains(payload, "password"), strings.Contains(report, "repro.py --set PATH=VALUE\n"))
	}
}
