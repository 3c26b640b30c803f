package hoststate_test

import (
	"context"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/hoststate"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/hosttree"
)

func TestLinks(t *testing.T) {
	ports, devices := hoststate.Links(hosttree.Write(t))
	assert.Equal(t, map[string]hoststate.Port{
		"mlx5_0/1": {Up: true, Rate: 50_000_000_000, Counts: map[string]int64{
			"symbol_error": 0, "link_error_recovery": 0, "link_downed": 0, "port_rcv_errors": 0, "port_xmit_discards": 0, "port_xmit_wait": 1234567,
		}},
		"mlx5_1/1": {Rate: 312_500_000, Counts: map[string]int64{
			"symbol_error": 1204, "link_downed": 3, "out_of_sequence": 17, "packet_seq_err": 5, "rnr_nak_retry_err": 0, "local_ack_timeout_err": 9,
		}},
	}, ports)
	assert.Equal(t, map[string]hoststate.Device{
		"0000:19:00.0": {
			GPU: true, Link: "16.0 GT/s PCIe x8", Most: "32.0 GT/s PCIe x16",
			Counts: map[string]int64{"correctable": 42, "nonfatal": 1, "fatal": 0},
		},
		"0000:38:00.0": {Link: "32.0 GT/s PCIe x16", Most: "32.0 GT/s PCIe x16", Counts: map[string]int64{}},
		"0000:39:00.0": {Counts: map[string]int64{}},
	}, devices)
}

// TestNoLinks: a host without adapters, and a file system without anything, have none.
func TestNoLinks(t *testing.T) {
	for _, root := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		ports, devices := hoststate.Links(root)
		assert.Empty(t, ports)
		assert.Empty(t, devices)
	}
}

// TestLinksStayBelow: a link out of the file system is not followed.
func TestLinksStayBelow(t *testing.T) {
	outside := t.TempDir()
	hosttree.Change(t, outside, "ports/1/state = 4: ACTIVE", "ports/1/counters/symbol_error = 5")
	root := t.TempDir()
	hosttree.Change(t, root, "sys/class/infiniband/mlx5_0 -> "+outside)
	ports, _ := hoststate.Links(root)
	assert.Empty(t, ports)
}

// TestMounts: only network file systems are asked, and one that does not answer keeps no other
// from it, and gets no second question.
func TestMounts(t *testing.T) {
	root := hosttree.Write(t)
	mounts := hoststate.NewMounts(root)
	home, training := filepath.Join(root, "mnt/home"), filepath.Join(root, "mnt/train data")
	var asked sync.Map // how often each is
	gone := make(chan struct{})
	mounts.Ask = func(path string) {
		times, _ := asked.LoadOrStore(path, new(atomic.Int64))
		times.(*atomic.Int64).Add(1)
		if path == home {
			<-gone
		}
	}
	timesOf := func(path string) int64 {
		times, ok := asked.Load(path)
		require.True(t, ok, path)
		return times.(*atomic.Int64).Load()
	}
	look := func() map[string]bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		silent := make(map[string]bool)
		for _, mount := range mounts.Look(ctx) {
			silent[mount.Point+" "+mount.Type] = mount.Silent > 0
		}
		return silent
	}
	require.Eventually(t, func() bool {
		return maps.Equal(look(), map[string]bool{"/mnt/home nfs4": true, "/mnt/train data nfs": false, "/opt/image fuse.squashfuse": false}) &&
			timesOf(training) > 1
	}, time.Minute, time.Millisecond)
	assert.EqualValues(t, 1, timesOf(home))
	close(gone)
	require.Eventually(t, func() bool { return !look()["/mnt/home nfs4"] }, time.Minute, time.Millisecond)
}

// TestMountsOfThisHost: those that are here answer.
func TestMountsOfThisHost(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, mount := range hoststate.NewMounts("").Look(ctx) {
		assert.Zero(t, mount.Silent, mount.Point)
	}
}
