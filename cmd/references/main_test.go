package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const generated = `# gpu

### energy

Energy.

| Unit |
| ---- |
| J |

#### Attributes

| Name | Description | Values | Requirement Level | Semantic Convention |
| ---- | ----------- | ------ | ----------------- | ------------------- |
| hw.id | The UUID. | Any Str | Required | - |
| error.type | The kind. | Str: ` + "``ecc``, ``crc``" + ` | Required | - |
| hw.state | The state. | Any Str | Required | - |

### power

Power.

#### Attributes

| Name | Description | Values | Requirement Level | Semantic Convention |
| ---- | ----------- | ------ | ----------------- | ------------------- |
| hw.id | The UUID. | Any Str | Required | - |

## Default Events

### xid

An error.

#### Attributes

| Name | Description | Values | Semantic Convention |
| ---- | ----------- | ------ | ------------------- |
| error.type | Whether it was corrected. | Any Str | - |
| hw.id | The UUID. | Any Str | - |
`

const short = `# gpu

### energy

Energy.

| Unit |
| ---- |
| J |

Attributes: ` + "`hw.id`" + `, and:

| Name | Description | Values | Requirement Level | Semantic Convention |
| ---- | ----------- | ------ | ----------------- | ------------------- |
| error.type | The kind. | Str: ` + "``ecc``, ``crc``" + ` | Required | - |
| hw.state | The state. | Any Str | Required | - |

### power

Power.

Attributes: ` + "`hw.id`" + `.

## Default Events

### xid

An error.

Attributes: ` + "`hw.id`" + `, and:

| Name | Description | Values | Semantic Convention |
| ---- | ----------- | ------ | ------------------- |
| error.type | Whether it was corrected. | Any Str | - |

## Attributes of several metrics or events

| Name | Description | Values | Requirement Level |
| ---- | ----------- | ------ | ----------------- |
| hw.id | The UUID. | Any Str | Required |
`

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

	require.NoError(t, os.WriteFile(file, []byte("\n#### Attributes\n\n| Name |\n| ---- |\n| hw.id |\n"), 0o600))
	require.ErrorContains(t, run(root), "has 1 cells")
	require.ErrorContains(t, run(t.TempDir()), "no documentation.md")
}
