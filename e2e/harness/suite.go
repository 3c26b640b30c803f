package harness

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
)

// Suite stands in for a test where something shall live as long as all tests
// of a package: TestMain starts servers with it and closes it at the end. A
// failure ends the program.
type Suite struct {
	// The interface has a method that only package testing can write. Of its
	// other methods those that the harness needs are below.
	testing.TB
	failed   bool
	cleanups []func()
}

// RunSuite calls start, runs the tests, releases what start has made, and
// returns the exit code of the program.
func RunSuite(m *testing.M, start func(*Suite)) (code int) {
	suite := &Suite{}
	start(suite)
	code = m.Run()
	suite.failed = code != 0
	suite.close()
	if suite.failed {
		code = max(code, 1)
	}
	return code
}

func (s *Suite) close() {
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
	s.cleanups = nil
}

// Helper does nothing.
func (s *Suite) Helper() {}

// Context returns the background.
func (s *Suite) Context() context.Context { return context.Background() }

// Cleanup has a function called when all tests have ended.
func (s *Suite) Cleanup(cleanup func()) { s.cleanups = append(s.cleanups, cleanup) }

// TempDir returns a new folder that is removed when all tests have ended.
func (s *Suite) TempDir() string {
	dir, err := os.MkdirTemp("", "suite")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Failed reports whether a test or the suite itself has failed.
func (s *Suite) Failed() bool { return s.failed }

// Logf prints a line.
func (s *Suite) Logf(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
}

// Errorf prints a line and makes the program fail.
func (s *Suite) Errorf(format string, arguments ...any) {
	s.failed = true
	s.Logf(format, arguments...)
}

// Fatal prints a line, releases everything and ends the program.
func (s *Suite) Fatal(arguments ...any) { s.Fatalf("%s", fmt.Sprint(arguments...)) }

// Fatalf prints a line, releases everything and ends the program.
func (s *Suite) Fatalf(format string, arguments ...any) {
	s.Errorf(format, arguments...)
	s.close()
	os.Exit(1)
}

// FailNow releases everything and ends the program.
func (s *Suite) FailNow() { s.Fatalf("failed before any test") }

// RunProgram is RunSuite for a program that is no test: it calls run, releases
// what that has made, and returns the exit code.
func RunProgram(run func(*Suite)) (code int) {
	suite := &Suite{}
	run(suite)
	suite.close()
	if suite.failed {
		return 1
	}
	return 0
}
