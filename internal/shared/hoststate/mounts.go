package hoststate

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxMounts is how many file systems are asked.
const maxMounts = 64

// networks are the types of file systems of which a server can be gone. A fuse.* is one, too.
var networks = []string{"nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "wekafs", "cifs", "smb3", "9p", "virtiofs"}

// Mount is a network file system.
type Mount struct {
	// Point is where it is mounted, Type its type.
	Point, Type string
	// Silent is for how long it has not answered a question, 0 if it answers.
	Silent time.Duration
}

// Mounts asks the network file systems of a host whether they answer. A question to a
// server that is gone cannot be taken back, so that each has one at most.
type Mounts struct {
	// Ask asks the file system at a path, and returns when it has answered.
	Ask func(path string)

	root string
	mu   sync.Mutex
	// asked has the question that each file system has not answered, by its mount point.
	asked map[string]*question
}

// question is one to a file system. The context ends with the answer.
type question struct {
	context.Context
	since time.Time
}

// NewMounts returns the file systems of the host whose root directory is mounted at rootPath,
// "" for /.
func NewMounts(rootPath string) *Mounts {
	return &Mounts{Ask: statfs, root: rootPath, asked: make(map[string]*question)}
}

// Look asks all file systems that have answered the last question, and returns them. It waits
// for the answers until ctx ends.
func (m *Mounts) Look(ctx context.Context) []Mount {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.mounted()
	var asked []*question
	for _, mount := range all {
		if m.asked[mount.Point] != nil || len(m.asked) >= maxMounts {
			continue
		}
		answered, answer := context.WithCancel(context.Background())
		q := &question{answered, time.Now()}
		m.asked[mount.Point], asked = q, append(asked, q)
		go func() {
			defer answer()
			m.Ask(filepath.Join("/", m.root, mount.Point))
		}()
	}
	for _, q := range asked {
		select {
		case <-q.Done():
		case <-ctx.Done():
		}
	}
	for i := range all {
		if q := m.asked[all[i].Point]; q != nil && q.Err() == nil {
			all[i].Silent = time.Since(q.since)
		}
	}
	maps.DeleteFunc(m.asked, func(_ string, q *question) bool { return q.Err() != nil })
	return all
}

// mounted returns the network file systems.
func (m *Mounts) mounted() (all []Mount) {
	process := "self" // in a container not the host's
	if m.root != "" {
		process = "1"
	}
	table, _ := os.ReadFile(filepath.Join("/", m.root, "proc", process, "mounts")) // what could be read counts
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || len(all) == maxMounts || !slices.Contains(networks, fields[2]) && !strings.HasPrefix(fields[2], "fuse.") {
			continue
		}
		point := unescape.Replace(fields[1])
		if !slices.ContainsFunc(all, func(of Mount) bool { return of.Point == point }) {
			all = append(all, Mount{Point: point, Type: fields[2]})
		}
	}
	return all
}

// unescape undoes how the kernel writes blanks in a path.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
