package trainstep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckCommand(t *testing.T) {
	for _, entry := range []string{"/srv/train.py", "/srv/my runs/train", "-m app.train", "-m app", "/srv/torchrunner.py", "/srv/train2.py", "/srv/train-3"} {
		require.NoError(t, CheckCommand(entry), entry)
	}
	for entry, told := range map[string]string{
		"": "/path/of/train.py", "train.py": "/path/of/train.py", "./train.py": "/path/of/train.py", "/srv/../train.py": "..",
		"/": "/path/of/train.py", "/srv/": "/path/of/train.py", "/srv//train.py": "/path/of/train.py", "/srv/a\n.py": "/path/of/train.py",
		"-c print(1)": "/path/of/train.py", "-mapp": "/path/of/train.py", "-m app train": "module", "-m ../app": "module", "-m ": "module",
		"-m torch.distributed.run": "arguments", "-m timeit": "arguments", "-m pip": "arguments", "/usr/bin/torchrun": "arguments",
		"/opt/bin/accelerate": "arguments", "/x/pdb.py": "arguments",
		"/usr/bin/pytest-3": "arguments", "/usr/bin/ipython3.11": "arguments", "/usr/bin/accelerate-launch": "arguments",
		"/srv/venv/bin/opentelemetry-instrument": "arguments", "-m opentelemetry.instrumentation.auto_instrumentation": "arguments",
	} {
		assert.ErrorContains(t, CheckCommand(entry), told, "%q", entry)
	}
}
