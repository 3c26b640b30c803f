package main

import (
	"fmt"
	"io"
	"strings"
)

// writePage writes the table as Markdown.
func writePage(w io.Writer, metrics []metric) error {
	var b strings.Builder
	b.WriteString(`# Series of the gpu receiver in Prometheus

<!-- Generated from metadata.yaml by "go generate". Do not edit. -->

The names are those of the prometheus exporter as it is by default, with unit
and type suffixes. [documentation.md](documentation.md) says what each means.

Every series about a GPU has the labels ` + "`hw_id`, `host_name` and `nvidia_gpu_index`" + `,
of a MIG device ` + "`hw_parent`" + ` as well, and of a recording ` + "`nvidia_gpu_source`" + `.
The last column has the others; a label of a workload is there only where it is
known.

| metric | Prometheus | kind | unit | by default | labels of its own |
|---|---|---|---|---|---|
`)
	for _, m := range metrics {
		state := "off"
		if m.enabled {
			state = "on"
		}
		fmt.Fprintf(&b, "| [`%s`](documentation.md#%s) | `%s` | %s | %s | %s | %s |\n",
			m.name, strings.ReplaceAll(m.name, ".", ""), m.prometheus, m.kind, code(m.unit), state, code(m.labels...))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// code is a list in code spans, none where there is nothing.
func code(names ...string) string {
	if list := strings.Join(names, "`, `"); list != "" {
		return "`" + list + "`"
	}
	return "none"
}
