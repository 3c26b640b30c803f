package documents

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParse(t *testing.T) {
	text := "# Title\n\n```sh\nmake demo\n```\n" +
		"text\n\n```yaml\na: 1\n```\n" +
		"## Part\n- item\n\n  ```yaml title=compose\n  b:\n    # no heading\n    c: 2\n  ```\n" +
		"````md\n```yaml\nnot: taken\n```\n````\n"
	assert.Equal(t, []Block{
		{File: "x.md", Line: 3, Section: "Title", Language: "sh", Text: "make demo\n"},
		{File: "x.md", Line: 8, Section: "Title", Language: "yaml", Text: "a: 1\n"},
		{File: "x.md", Line: 14, Section: "Part", Language: "yaml", Info: "title=compose", Text: "b:\n  # no heading\n  c: 2\n"},
		{File: "x.md", Line: 19, Section: "Part", Language: "md", Text: "```yaml\nnot: taken\n```\n"},
	}, Parse("x.md", text))
}

func TestCommands(t *testing.T) {
	block := Block{Text: "$ make demo    # all of it\noutput # of it\n$ one \\\n    --two\n$ three\n"}
	assert.Equal(t, []string{"make demo", "one --two", "three"}, block.Commands())
}

func TestOption(t *testing.T) {
	block := Block{Info: "title=compose over=a/b.yaml"}
	over, found := block.Option("over")
	assert.True(t, found)
	assert.Equal(t, "a/b.yaml", over)
	_, found = block.Option("under")
	assert.False(t, found)
}
