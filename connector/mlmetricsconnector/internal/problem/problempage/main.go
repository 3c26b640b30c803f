// The problempage command writes the documentation of problems and changes to the
// file that its only argument names.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "problempage:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the file to write, got %d", len(args))
	}
	return os.WriteFile(args[0], []byte(page()), 0o644) // #nosec G306 G703 -- documentation, for everyone to read
}
