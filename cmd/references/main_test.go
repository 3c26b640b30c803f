package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const generated = `# gpu

## Default Metrics

The following metrics are emitted by default. Each of them can be disabled by applying the following configuration:

` + "```" + `yaml
metrics:
  <metric_name>:
    enabled: false
` + "```" + `

### energy

Energy.

| Unit | Metric Type | Value Type | Aggregation Temporality | Monotonic | Stability |
| ---- | ----------- | ---------- | ----------------------- | --------- | --------- |
| J | Sum | Double | Cumulative | true | Development |

#### Attributes

| Name | Description | Values | Requirement Level | Semantic Convention |
| ---- | ----------- | ------ | ----------------- | ------------------- |
| hw.id | The UUID. | Any Str | Required | - |
| error.type | The kind. | Str: ` + "``ecc``, ``crc``" + ` | Required | - |
| hw.state | The state. | Any Str | Required | - |

### memory

Memory.

| Unit | Metric Type | Value Type | Aggregation Temporality | Monotonic | Stability |
| ---- | ----------- | ---------- | ----------------------- | --------- | --------- |
| By | Sum | Int | Delta | false | Beta |

#### Attributes

| Name | Description | Values | Requirement Level | Semantic Convention |
| ---- | ----------- | ------ | ----------------- | ------------------- |
| hw.id | The UUID. | Any Str | Required | - |
| user.id | The user. | Any Int | Conditionally Required | - |

### power

Power.

| Unit | Metric Type | Value Type | Stability |
| ---- | ----------- | ---------- | --------- |
|  | Gauge | Double | Development |

#### Attributes

| Name | Description | Values | Requirement Level | Semantic Convention |
| ---- | ----------- | ------ | ----------------- | ------------------- |
| hw.id | The UUID. | Any Str | Required | - |
| hw.task | The task. | Any Str | Recommended | - |

### state

State.

| Unit | Metric Type | Value Type | Stability |
| ---- | ----------- | ---------- | --------- |
| 1 | Gauge | Int | Development |

#### Attributes

| Name | Description | Values | Requirement Level | Semantic Convention |
| ---- | ----------- | ------ | ----------------- | ------------------- |
| hw.id | The UUID. | Any Str | Required | - |

### up

Up.

| Unit | Metric Type | Value Type | Stability |
| ---- | ----------- | ---------- | --------- |
| 1 | Gauge | Int | Development |

## Default Events

### xid

An error.

#### Attributes

| Name | Description | Values | Semantic Convention |
| ---- | ----------- | ------ | ------------------- |
| error.type | Whether it was corrected. | Any Str | - |
| hw.id | The UUID. | Any Str | - |
| hw.task | The task. | Any Str | - |

### pid

A process.

#### Attributes

| Name | Description | Values | Semantic Convention |
| ---- | ----------- | ------ | ------------------- |
| pid | The process. | Any Int | - |

## Resource Attributes

| Name | Description | Values | Enabled | Semantic Convention | Stability |
| ---- | ----------- | ------ | ------- | ------------------- | --------- |
| hw.id | The UUID. | Any Str | true | - | - |
| hw.task | The task. | Any Str | false | - | - |
`

const short = `# gpu

` + legend + `
## Default Metrics

The usual attributes here are ` + "`hw.id`" + `.

On by default; ` + "`metrics: {NAME: {enabled: false}}`" + ` switches one off.

### energy

Energy.

Counter, ` + "`J`" + `. Also:

- ` + "`error.type`: The kind. `ecc`, `crc`" + `.
- ` + "`hw.state`" + `: The state.

### memory

Memory.

Up-down counter, ` + "`By`" + `, Delta, Beta. Also:

- ` + "`user.id`" + `: The user. Int. Conditional.

### power

Power.

Gauge. Also ` + "`hw.task`" + `.

### state

State.

Gauge, ` + "`1`" + `.

### up

Up.

Gauge, ` + "`1`" + `. No attributes.

## Default Events

### xid

An error.

Attributes: ` + "`hw.id`, `hw.task`" + `, and:

- ` + "`error.type`" + `: Whether it was corrected.

### pid

A process.

Attributes:

- ` + "`pid`" + `: The process. Int.

## Resource Attributes

Attributes: ` + "`hw.id`" + `, and:

- ` + "`hw.task`" + `: The task. Off by default.

## Attributes of several metrics or events

- ` + "`hw.id`" + `: The UUID.
- ` + "`hw.task`" + `: The task. Recommended.
`

// The only attribute that several metrics have is described where it is usual.
func TestOneUsualAttributeIsDescribedAtOnce(t *testing.T) {
	const table = "\n\n#### Attributes\n\n| Name | Description | Values | Requirement Level |\n| ---- | --- | --- | --- |\n| processor | The ID. | Any Str | Required |\n"
	const kind = "\n\n| Unit | Metric Type | Value Type | Stability |\n| --- | --- | --- | --- |\n| 1 | Gauge | Int | Development |"
	text, err := shorten("# ml\n\n## Internal Telemetry\n\n### a" + kind + table + "\n### b" + kind + table + "\n### c" + kind + table)
	require.NoError(t, err)
	const line = "\n\nGauge, `1`.\n"
	assert.Equal(t, "# ml\n\n"+legend+"\n## Internal Telemetry\n\nThe usual attribute is `processor`: The ID.\n\n### a"+line+"\n### b"+line+"\n### c"+line, text)
}

// An attribute of several metrics is described once. Two of one name stay with their metrics.
func TestAttributesAreDescribedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "receiver", "gpureceiver", "documentation.md")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
	root := filepath.Join(file, "..", "..", "..")
	require.NoError(t, os.WriteFile(file, []byte(generated), 0o600))
	for range 2 { // a second time changes nothing
		require.NoError(t, run(root))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, short, string(text))
	}

	require.NoError(t, os.WriteFile(file, []byte("# gpu\n\n#### Attributes\n\n| Name |\n| ---- |\n| hw.id |\n"), 0o600))
	require.ErrorContains(t, run(root), "has 1 cells")
	require.ErrorContains(t, run(t.TempDir()), "no documentation.md")
}

// A README.md says in one line how stable a component is.
func TestStatusIsALine(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "receiver", "gpureceiver", "README.md")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "documentation.md"), []byte("# gpu\n"), 0o600))
	const head, tail = "<!-- status autogenerated section -->\n# GPU\n\nReads GPUs.\n\n", statusEnd + "\n\nMore.\n"
	const line = "[Stability](https://github.com/open-telemetry/opentelemetry-collector/blob/main/docs/component-stability.md): "
	for status, want := range map[string]string{
		"| Stability     | [alpha]: logs   |\n|               | [beta]: traces, metrics   |\n| Distributions | [otelcol-ml] |\n": "alpha: logs, beta: traces, metrics.",
		"| Stability     | [development]  |\n": "development.",
		"| Distributions | [] |\n\n[beta]: https://example\n\n| [Exporter Pipeline Type] | [Receiver Pipeline Type] | [Stability Level] |\n| --- | --- | --- |\n| traces | logs | [beta] |\n": "traces to logs beta.",
	} {
		require.NoError(t, os.WriteFile(file, []byte(head+statusTable+"| ------------- |-----------|\n"+status+tail), 0o600))
		for range 2 {
			require.NoError(t, run(root))
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, head+line+want+"\n"+tail, string(text))
		}
	}
	require.NoError(t, os.WriteFile(file, []byte(head+statusTable+tail), 0o600))
	require.ErrorContains(t, run(root), "no stability")
	require.NoError(t, os.WriteFile(file, []byte(head+statusTable), 0o600))
	require.ErrorContains(t, run(root), "no end")
}
