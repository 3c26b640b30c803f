package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recordings are what real clients sent: those of the examples, and the inputs
// of the tests of each system that the vocabulary knows.
var recordings = []struct{ name, pattern string }{
	{"recordings of `examples`", "examples/*/recording/*.json"},
	{"inputs of `ml_enrich`'s tests", "processor/mlenrichprocessor/testdata/*/case.txt"},
	{"inputs of `ml_metrics`' tests", "connector/mlmetricsconnector/testdata/*/input.txt"},
}

// attribute is a text of a recording, with the key that it stands under, if any.
type attribute struct{ key, text string }

// falseAlarms redacts the recordings, which have no secrets.
func falseAlarms(t *testing.T) string {
	var out strings.Builder
	out.WriteString("| recorded | different texts | KiB | changed |\n|---|---|---|---|\n")
	for _, r := range recordings {
		seen := map[attribute]bool{}
		size, changed := 0, 0
		for _, a := range read(t, r.pattern) {
			if seen[a] {
				continue
			}
			seen[a] = true
			size += len(a.text)
			if redacted(a.key, a.text) != a.text {
				t.Logf("redacts %s=%.200q", a.key, a.text)
				changed++
			}
		}
		fmt.Fprintf(&out, "| %s | %d | %d | %d |\n", r.name, len(seen), size>>10, changed)
	}
	return out.String()
}

func read(t *testing.T, pattern string) []attribute {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	var all []attribute
	for _, name := range files {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		if filepath.Ext(name) == ".txt" {
			for _, found := range quoted.FindAllStringSubmatch(string(content), -1) {
				text, err := strconv.Unquote(found[2])
				require.NoError(t, err, "%s: %s", name, found[2])
				all = append(all, attribute{"", found[1]}, attribute{found[1], text})
			}
			continue
		}
		for decoder := json.NewDecoder(bytes.NewReader(content)); decoder.More(); {
			var v any
			require.NoError(t, decoder.Decode(&v), name)
			all = texts("", v, all)
		}
	}
	return all
}

// quoted matches key="text" in the tests' inputs of one line a span.
var quoted = regexp.MustCompile(`([^\s{,+]+)=("(?:[^"\\]|\\.)*")`)

// texts collects the texts of OTLP in JSON.
func texts(key string, v any, all []attribute) []attribute {
	switch v := v.(type) {
	case string:
		return append(all, attribute{key, v})
	case []any:
		for _, item := range v {
			all = texts(key, item, all)
		}
	case map[string]any:
		if name, ok := v["key"].(string); ok && v["value"] != nil {
			return texts(name, v["value"], append(all, attribute{"", name}))
		}
		for _, member := range slices.Sorted(keysOf(v)) {
			all = texts(key, v[member], all)
		}
	}
	return all
}

// What has the words of secrets and is none stays as it is.
func TestNoSecrets(t *testing.T) {
	for _, text := range []string{
		"eos_token", "pad_token_id: 0", "token_type_ids=[0, 0, 1]", "tuft.session_id=4f1c9a2e7b3d",
		"prompt_tokens=512, completion_tokens=12", `{"max_tokens": 4096, "total_tokens": 17}`, "tokens: 512", "tokens=512",
		"pass=2", "pass 2 of 10", "epoch 3: pass=2 loss=0.31", "forward pass: 12.3ms", "backward_pass=0.03", "--- PASS: TestX (0.00s)",
		"token=5", "token: 17", "token=</s>", "key=value", "primary_key=abc123def456", `{"key": "value"}`, "sort_key=a, cache_key=b17",
		`{"token": " Hello", "logprob": -0.31, "bytes": [32]}`, `{"eos_token": "<|im_end|>", "bos_token": "<s>"}`,
		"time_to_first_token=0.12", "inter_token_latency: 0.004", "cost_per_token=0.0000025", "tokens_per_second=1523.7",
		"api_key=None", "password: null", "use_auth_token=True", `"api_key": ""`, "api_key=settings.api_key", "token=token",
		`client = Client(secret=load_secret("db"), password=os.environ["DB_PASS"])`, "PASSWORD=${DB_PASSWORD}", "TOKEN=$(cat token)",
		"secret_name=db", "password_file=/run/secrets/db", "k8s.secret.name=hf", "api_key_count: 3",
		"a basic understanding of", "Bearer token expected", "bearer of news", "Basic auth is required",
		"see https://host.example:8080/a/b@c?x=1#y", "git@github.com:org/repo.git", "mailto:someone@example.com", "ssh://git@host.example/x",
		"https://medium.example/@user/title-of-12", "http://127.0.0.1:4318/v1/traces", "https://example.com/hooks/use-state",
		"sk-learn", "task-1 risk-0123456789abcdef01", "hf_hub_download", "xai-tools", "SKILL", "SG.json", "secret_manager_client_initialisation",
		"meta-llama/Llama-3.1-8B-Instruct", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"4d5a9f3c-0000-1111-2222-333344445555", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", "KeyError: 'x'", "TypeError: unexpected token: ','",
		"UPDATE t SET key = 'a' WHERE id = 4", "docker run image -p 8080:80", "ls -a key", "author: x", "secretary: Jane",
		"KeyError: 'password'", "field 'password': required", "secret: not found", "credentials: invalid", "401: bad credentials",
		"def f(token: str, n: int = 3):", "token: Optional[str] = None", "tokenizer.pad_token = tokenizer.eos_token",
		"aws.secretsmanager.secret.arn=arn:aws:x", "no image provided: retrying",
	} {
		got, rules := Redact(text)
		assert.Equal(t, text, got, "%v", rules)
	}
}
