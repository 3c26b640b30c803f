package scale

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inside is set in the process that is in a namespace of its own.
const inside = "OTELCOL_ML_SCALE_INSIDE"

// TestMain runs the tests as an administrator of a new network namespace, whose
// loopback interface has the gateways' addresses. It takes no privilege.
func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" {
		fmt.Fprintln(os.Stderr, "scale:", isolate())
		os.Exit(1)
	}
	if output, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "scale: ip link set lo up: %v: %s\n", err, output)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// isolate replaces this process by one in a user and a network namespace of its
// own. It returns only if that fails.
func isolate() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	arguments := append([]string{"unshare", "--map-root-user", "--net", self}, os.Args[1:]...)
	return syscall.Exec(unshare, arguments, append(os.Environ(), inside+"=1"))
}
