// The vocabularypage command writes the documentation of the vocabulary: what
// the canonical names mean, from the comments of the Go file that its first
// argument names, and what is understood of each client, from its tables. The
// second argument is the file to write.
package main

import (
	"bytes"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "vocabularypage:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want two arguments, the names and the file to write, got %d", len(args))
	}
	meanings, err := readMeanings(args[0])
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := writePage(&page, meanings); err != nil {
		return err
	}
	return os.WriteFile(args[1], page.Bytes(), 0o644) // #nosec G306 G703 -- documentation, for everyone to read
}
