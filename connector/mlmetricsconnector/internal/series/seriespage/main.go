// The seriespage command writes the documentation of the connector's series to
// the file that its only argument names.
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
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the file to write, got %d", len(args))
	}
	var page bytes.Buffer
	if err := writePage(&page); err != nil {
		return err
	}
	return os.WriteFile(args[0], page.Bytes(), 0o644) // #nosec G306 G703 -- documentation, for everyone to read
}
