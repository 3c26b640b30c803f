package reprogenprocessor

import (
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requested is the span of a request that failed.
func requested(method string, more map[string]any) failedCall {
	attrs := map[string]any{
		"http.request.method": method, "url.full": "http://192.0.2.1:8/users/7?full=1#top",
		"server.address": "192.0.2.1", "server.port": int64(8), "http.response.status_code": int64(500), "error.type": "500",
	}
	maps.Copy(attrs, more)
	return failedCall{name: method, attrs: attrs}
}

// addressProgram asks a script's own rule about addresses.
const addressProgram = `
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("repro", sys.argv[1])
repro = importlib.util.module_from_spec(spec)
spec.loader.exec_module(repro)
for host in sys.argv[2:]:
    try:
        repro.connect(repro.split_address("http://%s/" % host)[1], 1, 1)
    except repro.Verdict as refused:
        assert refused.code == 4 and "metadata" in refused.reason, refused.reason
        print("refused")
    except OSError:
        print("tried")
`

// TestRefusedAddresses: services that hand out a machine's credentials are not
// reached by any spelling of their address.
func TestRefusedAddresses(t *testing.T) {
	t.Parallel()
	hosts := []string{
		"169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]",
		"[::169.254.169.254]", "[64:ff9b::169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]", "[::ffff:0:169.254.169.254]", "[2002:a9fe:a9fe::1]",
		"[fd00:ec2::254]", "[fd20:ce::254]", "100.100.100.200", "[::ffff:100.100.100.200]", "[64:ff9b::100.100.100.200]", "168.63.129.16",
		"192.0.0.192", "[fe80::1]", "0.0.0.0", "[::]", "224.0.0.1", "[ff02::1]", "169.254.170.2",
	}
	artifact := script(t, asked(nil))
	for _, py := range pythons(t) {
		out, err := exec.Command(py.path, append([]string{"-B", "-c", addressProgram, filepath.Join(artifact, "repro.py"), "127.0.0.1"}, hosts...)...).Output()
		require.NoError(t, err)
		assert.Equal(t, "tried\n"+strings.Repeat("refused\n", len(hosts)), string(out), py.path)
	}
	r := pythons(t)[0].run(t, artifact, nil, "--allow-side-effects", "--base-url", "http://[64:ff9b::a9fe:a9fe]/")
	assert.Equal(t, 4, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
	assert.Contains(t, r.Reason, "metadata services are")
}

// TestConnectsToWhatWasLookedAt: a name whose first address nobody listens at is
// reached by the next, and one of whose addresses is refused by none.
func TestConnectsToWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	url, seen, _ := modelServer(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	packages := t.TempDir()
	// The names that a test cannot make a resolver know.
	write(t, packages+"/sitecustomize.py", `
import socket
real = socket.getaddrinfo
asked = []
def getaddrinfo(host, *args, **kwargs):
    if host == "two.test": return real("127.0.0.2", *args, **kwargs) + real("127.0.0.1", *args, **kwargs)
    if host == "rebound.test":
        asked.append(host)
        return real("127.0.0.1" if len(asked) == 1 else "169.254.169.254", *args, **kwargs)
    if host == "mixed.test": return real("127.0.0.1", *args, **kwargs) + real("169.254.169.254", *args, **kwargs)
    return real(host, *args, **kwargs)
socket.getaddrinfo = getaddrinfo
`)
	artifact := script(t, asked(nil))
	for host, exit := range map[string]int{"two.test": 1, "rebound.test": 1, "mixed.test": 4} {
		seen.Store(nil)
		r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, "--allow-side-effects", "--base-url", "http://"+host+":"+port+"/broken")
		assert.Equal(t, exit, r.Exit, "%s: %s\n%s", host, r.Stdout, r.Stderr)
		assert.Equal(t, exit == 1, seen.Load() != nil, host)
	}
}

// TestRequestIsContext: a request that is no conversation is shown, and not sent.
func TestRequestIsContext(t *testing.T) {
	artifact := script(t, requested("GET", nil))
	assert.Contains(t, specText(t, artifact), `"reason": "no_payload"`)
	assert.Contains(t, text(t, artifact, "trace.json"), "http://192.0.2.1:8/users/7?full=1#top")
	step := requested("GET", trained([]any{"train.py"}, nil).attrs)
	assert.Contains(t, specText(t, script(t, step)), `"kind": "train_step"`)
}
