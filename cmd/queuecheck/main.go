// Command queuecheck checks the files of a persistent queue, which the
// file_storage extension writes, before a collector opens them. It moves a
// damaged file away, so that the collector starts an empty queue. The option
// recreate of the extension does the same, but not for damage that appears
// later, and not for damage that ends the process, because the file is mapped
// into memory.
//
//	queuecheck DIRECTORY [COMMAND ARGUMENT…]
//	queuecheck -owner USER DIRECTORY
//
// It reads each file in a separate process, which the damage may end. Like the
// extension, it adds the time and .backup to the name of a damaged file. Then it
// replaces itself by the command, so that signals reach the command. Without a
// command it exits with 0 if no damaged file is left in the directory and with 1
// if one is. With wrong arguments it exits with 2.
//
// With -owner it only makes the directory, closes it to others and gives it to the user
// and the group with this number. Kubernetes makes folders of a node for root.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readVariable is the environment variable with the file to read, set in the
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
	if os.Args[1] == "-owner" {
		if err := own(os.Args[2:]); err != nil {
			fmt.Fprintf(os.Stderr, "queuecheck: %v\n", err)
			os.Exit(2)
		}
		return
	}
	err := check(os.Args[1], time.Now())
	if err != nil {
		fmt.Fprintf(os.Stderr, "queuecheck: %v\n", err)
	}
	if command := os.Args[2:]; len(command) > 0 {
		// The collector reports problems with the directory itself.
		err = replace(command)
		fmt.Fprintf(os.Stderr, "queuecheck: %s: %v\n", command[0], err)
	}
	if err != nil {
		os.Exit(1)
	}
}

// own makes a directory and gives it to a user.
func own(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("-owner needs a user's number and a directory")
	}
	user, err := strconv.Atoi(arguments[0])
	if err != nil || user < 0 {
		return fmt.Errorf("the user is %q; it must be a number", arguments[0])
	}
	directory := arguments[1]
	if err := os.MkdirAll(directory, 0o700); err != nil { //nolint:gosec // who starts the program names it
		return err
	}
	// Without the right to change what belongs to others: it may have been given already.
	if err := os.Chmod(directory, 0o700); err != nil && !errors.Is(err, fs.ErrPermission) { //nolint:gosec // as above
		return err
	}
	return os.Chown(directory, user, user) //nolint:gosec // as above
}

// check moves damaged files of a directory away. It returns nil if the
// directory does not exist, and joins the errors of several files.
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

// isQueue reports whether file_storage opens a file of this name. Backups and
// remains of a compaction are no queues.
func isQueue(name string) bool {
	return !strings.HasSuffix(name, ".backup") && !strings.HasPrefix(name, "tempdb")
}

// checkFile moves a file away if it is damaged.
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
	// The Go runtime prints an address before the error.
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "fatal error: ") }); i >= 0 {
		return lines[i]
	}
	return lines[0]
}
