// Command queuecheck looks for damage in the files of a persistent queue, those
// that the file_storage extension writes, before a collector opens them. It puts
// a damaged file aside, so that the collector begins that queue anew: the
// extension's own option recreate does so too, but not for damage that it meets
// only while the collector runs, and not for damage that ends the process, since
// the file is mapped into memory.
//
//	queuecheck DIRECTORY [COMMAND ARGUMENT…]
//
// It reads each file in a process of its own, which the damage may end. A damaged
// file gets the time and .backup behind its name, as from the extension. Then it
// runs the command in its own place, so that signals reach the command. Without
// a command it exits with 0 where no damaged file is left in the directory and
// with 1 where one is. With wrong arguments it exits with 2.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// readVariable is the environment variable that names the file to read, in the
// process that reads it.
const readVariable = "QUEUECHECK_READ"

func main() {
	if file, ok := os.LookupEnv(readVariable); ok {
		if err := read(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitCode(err))
		}
		return
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "queuecheck: no directory is given; usage: queuecheck DIRECTORY [COMMAND ARGUMENT…]")
		os.Exit(2)
	}
	err := check(os.Args[1], time.Now())
	if err != nil {
		fmt.Fprintf(os.Stderr, "queuecheck: %v\n", err)
	}
	if command := os.Args[2:]; len(command) > 0 {
		// The collector says itself what is wrong with a directory.
		err = replace(command)
		fmt.Fprintf(os.Stderr, "queuecheck: %s: %v\n", command[0], err)
	}
	if err != nil {
		os.Exit(1)
	}
}

// check puts the damaged files of a directory aside. A directory that is not
// there has no damaged file. The errors of several files are joined.
func check(directory string, now time.Time) error {
	entries, err := os.ReadDir(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var failed []error
	for _, entry := range entries {
		if entry.Type().IsRegular() && isQueue(entry.Name()) {
			failed = append(failed, checkFile(filepath.Join(directory, entry.Name()), now))
		}
	}
	return errors.Join(failed...)
}

// isQueue reports whether file_storage opens a file of this name: neither what
// was put aside nor what a compaction has left.
func isQueue(name string) bool {
	return !strings.HasSuffix(name, ".backup") && !strings.HasPrefix(name, "tempdb")
}

// checkFile puts a file aside if it is damaged.
func checkFile(file string, now time.Time) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	reader := exec.Command(self) //nolint:gosec // this program
	reader.Env = append(os.Environ(), readVariable+"="+file)
	output, err := reader.CombinedOutput()
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if exit.ExitCode() == exitUnreadable {
		return fmt.Errorf("%s", firstLine(output))
	}
	aside := file + "." + now.UTC().Format("20060102T150405.000Z0700") + ".backup"
	if err := os.Rename(file, aside); err != nil { //nolint:gosec // a file of the directory on its command line
		return err
	}
	fmt.Fprintf(os.Stderr, "queuecheck: %s is damaged (%s) and now %s\n", file, firstLine(output), aside)
	return nil
}

func firstLine(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	// The Go runtime writes an address before what has happened.
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "fatal error: ") }); i >= 0 {
		return lines[i]
	}
	return lines[0]
}
