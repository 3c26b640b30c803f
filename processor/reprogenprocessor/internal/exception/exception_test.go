package exception

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const remote = "\x1b[36mray::Model.forward()\x1b[39m (pid=8037, ip=127.0.0.1, repr=<models.Model object at 0x7f27a5409c50>)\n" +
	"  File \"/app/models.py\", line 64, in forward\n    self._embedding[ids]\n    ~~~~^^^^\n" +
	"IndexError: index 151643 is out of bounds\nfor axis 0"

func TestUnwrap(t *testing.T) {
	for name, tc := range map[string]struct{ in, want Exception }{
		"nothing":           {Exception{}, Exception{}},
		"plain":             {Exception{"ValueError", "broken", "s"}, Exception{"ValueError", "broken", "s"}},
		"a Python status":   {Exception{Message: "ValueError: broken"}, Exception{Type: "ValueError", Message: "broken"}},
		"with its module":   {Exception{Message: "torch.cuda.OutOfMemoryError: CUDA out of memory"}, Exception{Type: "torch.cuda.OutOfMemoryError", Message: "CUDA out of memory"}},
		"without a message": {Exception{Message: "StopIteration: "}, Exception{Type: "StopIteration"}},
		"a class alone":     {Exception{Message: "KeyboardInterrupt"}, Exception{Type: "KeyboardInterrupt"}},
		"said twice":        {Exception{Type: "a.b.KeyError", Message: "KeyError: 'x'"}, Exception{Type: "a.b.KeyError", Message: "'x'"}},
		"another class":     {Exception{Type: "TypeError", Message: "ValueError: x"}, Exception{Type: "TypeError", Message: "ValueError: x"}},
		"a sentence":        {Exception{Message: "Request failed: 500"}, Exception{Message: "Request failed: 500"}},
		"an address":        {Exception{Message: "ConnectionError:4317"}, Exception{Message: "ConnectionError:4317"}},
		"colours":           {Exception{"E", "\x1b[1;31mred\x1b[0m \x1b", ""}, Exception{"E", "red \x1b", ""}},
		"Ray": {
			Exception{"ray.exceptions.RayTaskError(IndexError)", remote, "Traceback (most recent call last):\n  File \"local.py\"\n"},
			Exception{"IndexError", "index 151643 is out of bounds\nfor axis 0",
				"Traceback (most recent call last):\n  File \"/app/models.py\", line 64, in forward\n    self._embedding[ids]\n    ~~~~^^^^\nIndexError: index 151643 is out of bounds\nfor axis 0"},
		},
		"Ray in a status": {
			Exception{Message: "RayTaskError(IndexError): " + remote},
			Exception{"IndexError", "index 151643 is out of bounds\nfor axis 0",
				"Traceback (most recent call last):\n  File \"/app/models.py\", line 64, in forward\n    self._embedding[ids]\n    ~~~~^^^^\nIndexError: index 151643 is out of bounds\nfor axis 0"},
		},
		"Ray, a task that waited for another": {
			Exception{Type: "RayTaskError(AxisError)", Message: "ray::outer() (pid=1, ip=::1)\n  File \"o.py\", line 1, in outer\n" +
				"ray.exceptions.RayTaskError(AxisError): ray::inner() (pid=2, ip=::1)\n  File \"i.py\", line 2, in inner\nnumpy.exceptions.AxisError: axis 3"},
			Exception{"numpy.exceptions.AxisError", "axis 3",
				"Traceback (most recent call last):\n  File \"i.py\", line 2, in inner\nnumpy.exceptions.AxisError: axis 3"},
		},
		"Ray in Ray":           {Exception{Type: "RayTaskError(RayTaskError(KeyError))"}, Exception{Type: "KeyError"}},
		"Ray without the line": {Exception{Type: "RayTaskError(KeyError)", Message: "lost"}, Exception{Type: "KeyError", Message: "lost"}},
		"Ray's own error":      {Exception{Type: "ray.exceptions.RayActorError", Message: "died"}, Exception{Type: "ray.exceptions.RayActorError", Message: "died"}},
		"Snakepit": {
			Exception{Message: `%Snakepit.Error.PythonException{message: "no \"x\"\n", category: :python, python_type: "StatisticsError", python_traceback: "Traceback"}`},
			Exception{"StatisticsError", "no \"x\"\n", "Traceback"},
		},
		"Snakepit, a built-in type": {
			Exception{Message: `%Snakepit.Error.ValueError{message: "day is out of range for month", context: %{}}`},
			Exception{Type: "ValueError", Message: "day is out of range for month"},
		},
		"Snakepit, cut off":   {Exception{Message: `%Snakepit.Error.KeyError{message: "a\`}, Exception{Type: "KeyError", Message: `a\`}},
		"Snakepit, not an it": {Exception{Message: `%Snakepit.Error.`}, Exception{Message: `%Snakepit.Error.`}},
	} {
		assert.Equal(t, tc.want, Unwrap(tc.in), name)
	}
}

func TestFromTraceback(t *testing.T) {
	plain := "Traceback (most recent call last):\n  File \"/app/k.py\", line 20, in main\n    exec(code)\nstatistics.StatisticsError: mean requires\nat least one\n"
	for name, tc := range map[string]struct {
		text string
		want Exception
		ok   bool
	}{
		"in a text": {"The code has failed\n" + plain,
			Exception{"statistics.StatisticsError", "mean requires\nat least one", strings.TrimRight(plain, "\n")}, true},
		"IPython": {"-----\n\x1b[0;31mValueError\x1b[0m       Traceback (most recent call last)\nCell In[1], line 1\n----> 1 f()\n\nValueError: x",
			Exception{"ValueError", "x", "ValueError       Traceback (most recent call last)\nCell In[1], line 1\n----> 1 f()\n\nValueError: x"}, true},
		"a chain": {plain + "\nDuring handling of the above exception, another exception occurred:\n\n" + header + ":\n  File \"a\", line 1, in b\nKeyError: 'x'\n",
			Exception{"KeyError", "'x'", strings.TrimRight(plain+"\nDuring handling of the above exception, another exception occurred:\n\n"+header+":\n  File \"a\", line 1, in b\nKeyError: 'x'\n", "\n")}, true},
		"without a message": {header + ":\n  File \"a\", line 1, in b\nKeyboardInterrupt\n",
			Exception{Type: "KeyboardInterrupt", Stack: header + ":\n  File \"a\", line 1, in b\nKeyboardInterrupt"}, true},
		"no traceback": {text: "ValueError: x"},
		"cut off":      {text: header + ":\n  File"},
	} {
		got, ok := FromTraceback(tc.text)
		assert.Equal(t, tc.ok, ok, name)
		assert.Equal(t, tc.want, got, name)
	}
}

func FuzzUnwrap(f *testing.F) {
	f.Add("ray.exceptions.RayTaskError(IndexError)", remote)
	f.Add("", `%Snakepit.Error.PythonException{message: "a", python_type: "b"}`)
	f.Add("", header+"\nE: x")
	f.Fuzz(func(t *testing.T, class, message string) {
		e := Unwrap(Exception{Type: class, Message: message})
		assert.LessOrEqual(t, len(e.Message), len(message))
		e, _ = FromTraceback(message)
		assert.LessOrEqual(t, len(e.Stack), len(message))
	})
}
