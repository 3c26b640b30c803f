// The allowlist command writes the lists of the section content: keys.txt has
// the attribute keys with the form of their text, words.txt the words of names,
// and texts.txt the texts that this project's components write. metrics.txt of
// ml_guard's section trusted_senders has the metrics that only they write. It reads the
// vocabularies, the semantic conventions of the module go.opentelemetry.io/otel
// in go.mod, and the lists in its own folder. Its argument is the repository's root.
package main

//go:generate go run . ../..

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	removed = "removed"
	plain   = "token"
	label   = "label"
	path    = "path"
	node    = "node"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "allowlist: want one argument: the repository's root")
		os.Exit(1)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "allowlist:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	target := filepath.Join(root, "internal", "content")
	lists := filepath.Join(root, "cmd", "allowlist")
	keys, err := keysOf(lists, root)
	if err != nil {
		return err
	}
	words, err := wordsOf(lists)
	if err != nil {
		return err
	}
	texts, err := ownTexts(root)
	if err != nil {
		return err
	}
	conclusions, err := conclusionWords(root)
	if err != nil {
		return err
	}
	metrics, err := ownMetrics(root)
	if err != nil {
		return err
	}
	lines := make([]string, 0, len(keys))
	for key, form := range keys {
		lines = append(lines, key+" "+form)
	}
	for name, content := range map[string][]string{
		filepath.Join(target, "keys.txt"):  lines,
		filepath.Join(target, "words.txt"): slices.Collect(maps.Keys(words)),
		filepath.Join(target, "texts.txt"): slices.Collect(maps.Keys(texts)),

		filepath.Join(target, "conclusions.txt"): slices.Collect(maps.Keys(conclusions)),

		filepath.Join(root, "processor/mlguardprocessor/internal/trust/metrics.txt"): metrics,
	} {
		slices.Sort(content)
		text := strings.Join(content, "\n") + "\n"
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil { // #nosec G306 G703 -- a list, for everyone to read
			return err
		}
	}
	return nil
}

// keysOf merges the sources. Removed keys take precedence; then the lists
// written by hand, with their forms; then this project's own attributes, the
// vocabularies and the conventions.
func keysOf(lists, root string) (map[string]string, error) {
	keys := map[string]string{}
	add := func(key, form string) {
		if _, ok := keys[key]; !ok {
			keys[key] = form
		}
	}
	noContent, err := readList(filepath.Join(lists, "removed.txt"))
	if err != nil {
		return nil, err
	}
	for _, key := range noContent {
		add(key, removed)
	}
	secrets(add)
	clients, err := readList(filepath.Join(lists, "clients.txt"))
	if err != nil {
		return nil, err
	}
	for _, line := range clients {
		key, form, ok := strings.Cut(line, " ")
		if !ok {
			form = plain
		}
		add(key, form)
	}
	vocabularies(add)
	own, err := ownKeys(root)
	if err != nil {
		return nil, err
	}
	for _, key := range own {
		add(key, formOf(key))
	}
	return keys, conventions(add)
}

// readList returns the trimmed lines of a file without comments.
func readList(name string) ([]string, error) {
	file, err := os.Open(name) // #nosec G304 G703 -- a list of this folder
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var lines []string
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		if line := strings.TrimSpace(scanner.Text()); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, scanner.Err()
}
