// The seriespage command writes what the receiver's metrics are called in
// Prometheus. Its arguments are metadata.yaml and the file to write.
package main

import (
	"bytes"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "seriespage:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want two arguments, metadata.yaml and the file to write, got %d", len(args))
	}
	text, err := os.ReadFile(args[0]) // #nosec G304 G703 -- the file that "go generate" names
	if err != nil {
		return err
	}
	metrics, err := parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	var page bytes.Buffer
	if err := writePage(&page, metrics); err != nil {
		return err
	}
	return os.WriteFile(args[1], page.Bytes(), 0o644) // #nosec G306 G703 -- documentation, for everyone to read
}
