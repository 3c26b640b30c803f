package reprogenprocessor

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// torchPython returns an interpreter with PyTorch and NumPy: the environment
// that examples/venv.sh makes for the example torchtel. "make e2e-clients"
// makes it and sets REPRO_TENSORS=required; without that, its absence is said.
func torchPython(t *testing.T) python {
	path, err := filepath.Abs(filepath.Join("..", "..", ".cache", "venvs", "torchtel", "bin", "python"))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		const message = "LEFT OUT: there is no PyTorch, so nothing shows that tensors are rebuilt; run examples/venv.sh torchtel"
		if os.Getenv("REPRO_TENSORS") == "required" {
			require.NoError(t, err, message)
		}
		t.Skip(message)
	}
	return python{path, true}
}

// packed returns numbers as the bytes of a storage.
func packed(numbers ...any) []byte {
	var b bytes.Buffer
	for _, n := range numbers {
		if err := binary.Write(&b, binary.LittleEndian, n); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func plainData(b []byte) string {
	return `{"b64":"` + base64.StdEncoding.EncodeToString(b) + `"}`
}

func packedData(b []byte) string {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return `{"zlib":"` + base64.StdEncoding.EncodeToString(z.Bytes()) + `"}`
}

// tensor returns a tag; more is members in JSON, with a comma before each.
func tensor(kind, dtype, shape, data, more string) string {
	return fmt.Sprintf(`{"__type__":%q,"__schema__":1,"dtype":%q,"shape":%s,"data":%s%s}`, kind, dtype, shape, data, more)
}

const tensorModule = `
def show(*values):
    raise ValueError("; ".join("%s %s %s" % (str(v.dtype).replace("torch.", ""), list(v.shape), v.tolist()) for v in values))
def stride(v): raise ValueError("%s %s" % (v.stride(), v.storage_offset()))
def shared(a, b):
    a[0] = 5
    raise ValueError("b sees %s" % b.flatten()[0].item())
def gradient(v): raise ValueError("%s %s" % (v.requires_grad, v.is_leaf))
def within(v, low, high):
    raise ValueError("within" if low <= v.min() and v.max() <= high and v.min() != v.max() else "%s %s" % (v.min(), v.max()))
def odd(v): raise ValueError("%d NaN, %d infinite" % ((v != v).sum(), (abs(v) == float("inf")).sum()))
def nested(v): raise ValueError("%s %s" % (type(v["a"][0]).__name__, v["a"][0].tolist()))
def device(v): raise ValueError(v.device.type)
def product(a, b): return a @ b
def total(v): raise ValueError(str(v.sum().item()))
`

// isolated are the cases of TestTensors that run as users run them, in a child
// process that imports its libraries itself. PyTorch takes seconds to import.
var isolated = map[string]bool{
	"a matrix": true, "an array": true, "two of one storage": true, "from statistics": true, "a huge shape": true, "a bomb": true,
	"the GPU is not here": true,
}

// TestTensors rebuilds tensors and arrays with the real libraries.
func TestTensors(t *testing.T) {
	withTorch := torchPython(t)
	fork := startForker(t, withTorch, "numpy", "torch")
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), tensorModule)
	floats := packed(float32(1), float32(2), float32(3), float32(4), float32(5), float32(6))
	const stats = `,"stats":{"min":-2.0,"max":3.0,"mean":0.5,"std":1.0}`
	for name, tc := range map[string]struct {
		function, args string
		message        string
		flags          string
		exit           int // 1 where it is 0 here
		reason, data   string
	}{
		"a matrix":            {function: "show", args: tensor("tensor", "float32", "[2,3]", plainData(floats), ""), message: "float32 [2, 3] [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]", data: "captured"},
		"an array":            {function: "show", args: tensor("ndarray", "float32", "[2,3]", plainData(floats), ""), message: "float32 [2, 3] [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]", data: "captured"},
		"packed":              {function: "show", args: tensor("tensor", "float32", "[6]", packedData(floats), ""), message: "float32 [6] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"},
		"a dtype's full name": {function: "show", args: tensor("tensor", "torch.float32", "[1]", plainData(floats), ""), message: "float32 [1] [1.0]"},
		"bfloat16":            {function: "show", args: tensor("tensor", "bfloat16", "[2]", plainData(packed(uint16(0x3F80), uint16(0xC000))), ""), message: "bfloat16 [2] [1.0, -2.0]"},
		"half":                {function: "show", args: tensor("ndarray", "float16", "[1]", plainData(packed(uint16(0x3C00))), ""), message: "float16 [1] [1.0]"},
		"truth":               {function: "show", args: tensor("tensor", "bool", "[3]", plainData([]byte{0, 1, 7}), ""), message: "bool [3] [False, True, True]"},
		"integers":            {function: "show", args: tensor("ndarray", "int64", "[2]", plainData(packed(int64(-1), int64(1)<<62)), ""), message: "int64 [2] [-1, 4611686018427387904]"},
		"complex":             {function: "show", args: tensor("tensor", "complex64", "[1]", plainData(packed(float32(1), float32(-2))), ""), message: "complex64 [1] [(1-2j)]"},
		"one number":          {function: "show", args: tensor("tensor", "float32", "[]", plainData(floats), ""), message: "float32 [] 1.0"},
		"none":                {function: "show", args: tensor("tensor", "float32", "[0,3]", "null", ""), message: "float32 [0, 3] []"},
		"no array":            {function: "show", args: tensor("ndarray", "float32", "[0,3]", "null", ""), message: "float32 [0, 3] []"},
		"transposed":          {function: "show", args: tensor("tensor", "float32", "[3,2]", plainData(floats), `,"stride":[1,3]`), message: "float32 [3, 2] [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]"},
		"its layout is kept":  {function: "stride", args: tensor("tensor", "float32", "[2]", plainData(floats), `,"stride":[3],"storage_offset":1`), message: "(3,) 1"},
		"an array backwards":  {function: "show", args: tensor("ndarray", "float32", "[3]", plainData(floats), `,"stride":[-2],"storage_offset":5`), message: "float32 [3] [6.0, 4.0, 2.0]"},
		"repeated":            {function: "show", args: tensor("tensor", "float32", "[3]", plainData(floats), `,"stride":[0]`), message: "float32 [3] [1.0, 1.0, 1.0]"},
		"two of one storage": {function: "shared", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"storage":"s0"`) + "," +
			tensor("tensor", "float32", "[3,2]", "null", `,"stride":[1,3],"storage":"s0"`), message: "b sees 5.0", data: "captured"},
		"two arrays of one buffer": {function: "shared", args: tensor("ndarray", "float32", "[6]", plainData(floats), `,"storage":"s0"`) + "," +
			tensor("ndarray", "float32", "[2]", "null", `,"storage":"s0"`), message: "b sees 5.0"},
		"two storages": {function: "shared", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"storage":"s0"`) + "," +
			tensor("tensor", "float32", "[6]", plainData(floats), `,"storage":"s1"`), message: "b sees 1.0"},
		"with a gradient":     {function: "gradient", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"requires_grad":true`), message: "True True"},
		"deep in an argument": {function: "nested", args: `{"a":{"__type__":"tuple","elements":[` + tensor("tensor", "float32", "[1]", plainData(floats), "") + `]}}`, message: "Tensor [1.0]"},
		"from statistics":     {function: "within", args: tensor("tensor", "float32", "[100]", "null", stats) + ",-2,3", message: "within", data: "stats"},
		"an array of statistics": {function: "within", args: tensor("ndarray", "float64", "[100]", "null", stats) + ",-2,3", message: "within",
			data: "stats"},
		"integers of statistics":   {function: "within", args: tensor("tensor", "int64", "[200]", "null", `,"stats":{"min":7,"max":9}`) + ",7,9", message: "within", data: "stats"},
		"bytes of statistics":      {function: "within", args: tensor("ndarray", "uint8", "[200]", "null", `,"stats":{"min":7,"max":9}`) + ",7,9", message: "within", data: "stats"},
		"NaN and infinities":       {function: "odd", args: tensor("tensor", "float32", "[10]", "null", `,"stats":{"min":0,"max":1,"mean":NaN,"std":NaN,"nan":3,"inf":2}`), message: "3 NaN, 2 infinite", data: "stats"},
		"more NaN than room":       {function: "odd", args: tensor("ndarray", "float32", "[2]", "null", `,"stats":{"min":0,"max":1,"nan":30,"inf":2}`), message: "2 NaN, 0 infinite", data: "stats"},
		"nothing but a shape":      {function: "total", args: tensor("tensor", "float32", "[10]", "null", ""), message: "0.0", data: "zeros"},
		"zeros on request":         {function: "total", args: tensor("tensor", "float32", "[6]", plainData(floats), stats), flags: "--data zeros", message: "0.0", data: "zeros"},
		"statistics on request":    {function: "within", args: tensor("tensor", "float32", "[6]", plainData(floats), stats) + ",-2,3", flags: "--data stats", message: "within", data: "stats"},
		"from a GPU to the CPU":    {function: "device", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"device":"cuda:3"`), flags: "--device cpu", message: "cpu"},
		"from a GPU, anywhere":     {function: "device", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"device":"cuda:3"`), flags: "--device auto", message: "cpu"},
		"the GPU is not here":      {function: "device", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"device":"cuda:3"`), exit: 5, reason: "--device cpu"},
		"a sliced view is short":   {function: "show", args: tensor("tensor", "float32", "[7]", plainData(floats), ""), exit: 5, reason: "has 24 bytes and needs 28"},
		"offset out of bounds":     {function: "show", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"storage_offset":1`), exit: 5, reason: "needs 28"},
		"a negative offset":        {function: "show", args: tensor("tensor", "float32", "[1]", plainData(floats), `,"storage_offset":-1`), exit: 5, reason: "storage_offset is -1"},
		"backwards":                {function: "show", args: tensor("tensor", "float32", "[2]", plainData(floats), `,"stride":[-1],"storage_offset":1`), exit: 5, reason: "stride is -1"},
		"backwards past the start": {function: "show", args: tensor("ndarray", "float32", "[3]", plainData(floats), `,"stride":[-1],"storage_offset":1`), exit: 5, reason: "first element is -1"},
		"a stride out of bounds":   {function: "show", args: tensor("ndarray", "float32", "[2]", plainData(floats), `,"stride":[1000000000000]`), exit: 5, reason: "need 8000000000008 bytes"},
		"a huge shape":             {function: "show", args: tensor("tensor", "float32", "[1000000000,1000000000]", "null", ""), exit: 5, reason: "--memory-limit"},
		"an endless shape":         {function: "show", args: tensor("tensor", "float32", "[1000000000,1000000000,1000000000]", "null", ""), exit: 5, reason: "number of elements"},
		"a bomb":                   {function: "show", args: tensor("tensor", "uint8", "[4]", packedData(make([]byte, 64<<20)), ""), message: "uint8 [4] [0, 0, 0, 0]"},
		"packed data cut off":      {function: "show", args: tensor("tensor", "float32", "[6]", strings.Replace(packedData(floats), `="`, `"`, 1)[:20]+`"}`, ""), exit: 5},
		"no base64":                {function: "show", args: tensor("tensor", "float32", "[6]", `{"b64":"?"}`, ""), exit: 5},
		"data that are a number":   {function: "show", args: tensor("tensor", "float32", "[6]", `{"b64":7}`, ""), exit: 5},
		"no such dtype":            {function: "show", args: tensor("tensor", "load", "[6]", plainData(floats), ""), exit: 5, reason: "dtype is 'load'"},
		"a dtype of the other":     {function: "show", args: tensor("ndarray", "bfloat16", "[3]", plainData(floats), ""), exit: 5, reason: "dtype is 'bfloat16'"},
		"no such framework":        {function: "show", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"framework":"os"`), exit: 5, reason: "framework is 'os'"},
		"no such device":           {function: "show", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"device":"cpu; rm"`), exit: 5, reason: "device is"},
		"truth as a size":          {function: "show", args: tensor("tensor", "float32", "[true]", plainData(floats), ""), exit: 5, reason: "shape is True"},
		"a shape of text":          {function: "show", args: tensor("tensor", "float32", `"abc"`, plainData(floats), ""), exit: 5, reason: "no list"},
		"too many dimensions":      {function: "show", args: tensor("tensor", "float32", "["+strings.Repeat("1,", 99)+"1]", plainData(floats), ""), exit: 5, reason: "at most 64"},
		"a gradient of integers":   {function: "show", args: tensor("tensor", "int64", "[1]", plainData(floats), `,"requires_grad":true`), exit: 5, reason: "has no gradient"},
		"one storage, two places": {function: "show", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"storage":"s0","device":"cuda:0"`) + "," +
			tensor("tensor", "float32", "[1]", "null", `,"storage":"s0"`), flags: "--device auto", message: "float32 [6] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; float32 [1] [1.0]"},
		"one storage, two frameworks": {function: "show", args: tensor("tensor", "float32", "[6]", plainData(floats), `,"storage":"s0"`) + "," +
			tensor("ndarray", "float32", "[1]", "null", `,"storage":"s0"`), exit: 5, reason: "two places"},
		"statistics that are odd": {function: "within", args: tensor("tensor", "uint8", "[6]", "null", `,"stats":{"min":-1e300,"max":1e300}`) + ",0,255", exit: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, "app")
			f := failedCall{payload: call("app", tc.function, "["+tc.args+"]", "{}"), errorType: "ValueError", message: tc.message}
			produce(t, cfg, f.traces())
			var r result
			if isolated[name] {
				r = withTorch.run(t, onlyArtifact(t, cfg), []string{"PYTHONPATH=" + packages}, strings.Fields(tc.flags)...)
			} else {
				// Without the boundary, modules in C such as NumPy's need permission.
				r = fork.run(t, onlyArtifact(t, cfg), []string{"PYTHONPATH=" + packages}, append(strings.Fields(tc.flags), "--no-isolate", "--allow-side-effects")...)
			}
			exit := tc.exit
			if exit == 0 {
				exit = 1
				assert.Equal(t, tc.message, r.Message)
			}
			assert.Equal(t, exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, tc.reason)
			if tc.data != "" {
				assert.Equal(t, tc.data, r.Data)
			}
		})
	}
}

// TestFailureByShape is why shapes alone are worth something: the failure
// needs none of the numbers.
func TestFailureByShape(t *testing.T) {
	withTorch := torchPython(t)
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), tensorModule)
	cfg := testConfig(t, "app")
	produce(t, cfg, failedCall{
		payload:   call("app", "product", "["+tensor("tensor", "float32", "[32,15]", "null", "")+","+tensor("tensor", "float32", "[16,32]", "null", "")+"]", "{}"),
		errorType: "RuntimeError", message: "mat1 and mat2 shapes cannot be multiplied (32x15 and 16x32)",
	}.traces())
	r := withTorch.run(t, onlyArtifact(t, cfg), []string{"PYTHONPATH=" + packages})
	assert.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
	assert.Equal(t, "zeros", r.Data)
	assert.Contains(t, r.Stderr, "data: 2 zeros")
}

// TestTensorsWithoutTheirLibrary: the script says what to install, and a dry
// run needs nothing.
func TestTensorsWithoutTheirLibrary(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), tensorModule)
	for _, library := range []string{"torch", "numpy"} {
		kind := map[string]string{"torch": "tensor", "numpy": "ndarray"}[library]
		write(t, filepath.Join(packages, library+".py"), "raise ImportError('No module named "+library+"', name='"+library+"')\n")
		cfg := testConfig(t, "app")
		produce(t, cfg, failedCall{payload: call("app", "show", "["+tensor(kind, "float32", "[2]", "null", "")+"]", "{}"), errorType: "ValueError"}.traces())
		for _, py := range pythons(t) {
			r := py.run(t, onlyArtifact(t, cfg), []string{"PYTHONPATH=" + packages})
			assert.Equal(t, 5, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, "pip install "+library)
			r = py.run(t, onlyArtifact(t, cfg), nil, "--dry-run")
			assert.Equal(t, 0, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Stderr, "app.show(<"+library+" float32[2]")
		}
	}
}

// TestHugeTensors: what a shape asks for is compared with the memory before
// anything is imported or allocated.
func TestHugeTensors(t *testing.T) {
	const stats = `,"stats":{"min":0,"max":1}`
	gibibyte := tensor("ndarray", "float32", "[268435456]", "null", "")
	for name, tc := range map[string]struct {
		args  string
		flags string
		exit  int
	}{
		"by its shape":            {args: tensor("tensor", "float32", "[1000000000,1000000000]", "null", ""), exit: 5},
		"by its stride":           {args: tensor("ndarray", "float32", "[2]", "null", `,"stride":[100000000000000]`), exit: 5},
		"by its offset":           {args: tensor("tensor", "uint8", "[1]", "null", `,"storage_offset":100000000000000`), exit: 5},
		"by one element repeated": {args: tensor("tensor", "float32", "[1000000000,1000000000]", "null", `,"stride":[0,0]`), exit: 5},
		"by their number":         {args: "[" + gibibyte + strings.Repeat(","+gibibyte, 2) + "]", flags: "--memory-limit 2GiB", exit: 5},
		"to be filled":            {args: tensor("tensor", "float32", "[200000000]", "null", stats), flags: "--memory-limit 2GiB", exit: 5},
		"none to be filled":       {args: tensor("tensor", "float32", "[200000000]", "null", ""), flags: "--memory-limit 2GiB", exit: 0},
		"in one storage":          {args: "[" + strings.Repeat(tensor("ndarray", "float32", "[268435456]", "null", `,"storage":"s"`)+",", 2) + "1]", flags: "--memory-limit 2GiB", exit: 0},
		"more is permitted":       {args: tensor("tensor", "float32", "[1000000,1000000]", "null", ""), flags: "--memory-limit 4000GiB", exit: 0},
		"without elements":        {args: tensor("tensor", "float32", "[0,4000000000000]", "null", ""), exit: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packages := t.TempDir()
			for _, library := range []string{"torch", "numpy"} {
				write(t, filepath.Join(packages, library+".py"), "raise SystemExit('imported')\n")
			}
			artifact := script(t, failedCall{payload: call("app", "show", "["+tc.args+"]", "{}"), errorType: "ValueError"}, "app")
			for _, flags := range []string{"--dry-run", "--info", ""} {
				r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, strings.Fields(flags+" "+tc.flags)...)
				if tc.exit == 0 && flags == "" {
					assert.NotContains(t, r.Reason, "--memory-limit")
					continue
				}
				assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				if tc.exit == 5 {
					assert.Contains(t, r.Reason, "--memory-limit SIZE")
				}
			}
		})
	}
}
