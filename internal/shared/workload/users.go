package workload

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Limits of the file of users: its size in bytes, its users, and the length of a
// name.
const (
	maxPasswdSize = 4 << 20
	maxUsers      = 65_536
	maxUserName   = 64
)

// users has the names of a host's users, from its etc/passwd. The zero value has
// none.
type users struct {
	// root is the host's root directory, "" if there are no names.
	root string
	// info is of the file that was read last, nil if none was.
	info  fs.FileInfo
	names map[int64]string
}

// newUsers returns the users of the host whose root directory is mounted at
// rootPath. An empty rootPath means /, unless this program runs in a container,
// whose users are others than the host's.
func newUsers(rootPath string) users {
	if rootPath == "" && inContainer() {
		return users{}
	}
	return users{root: filepath.Join("/", rootPath)}
}

// inContainer reports whether this program runs in a container of Docker, Podman or
// Kubernetes.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// of returns the name of a process's user, or "": that of its id, else that of the
// user of its Slurm job, which the process may have changed.
func (u *users) of(uid Number, job, slurmUser string) string {
	if uid.Known {
		if name := u.name(uid.Value); name != "" {
			return name
		}
	}
	if job != "" && isUserName(slurmUser) {
		return slurmUser
	}
	return ""
}

// name returns the name of a user, or "". The file is read again if it has changed.
// Directories such as LDAP are not asked: an answer may take long.
func (u *users) name(uid int64) string {
	if u.root == "" {
		return ""
	}
	root, err := os.OpenRoot(u.root)
	if err != nil {
		return u.names[uid]
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat("etc/passwd")
	if err != nil || !info.Mode().IsRegular() || u.info != nil && info.Size() == u.info.Size() && info.ModTime().Equal(u.info.ModTime()) {
		return u.names[uid]
	}
	// A file that cannot be read is not read again before it changes.
	u.info = info
	if raw, err := readIn(root, "etc/passwd", maxPasswdSize); err == nil {
		u.names = parsePasswd(raw)
	}
	return u.names[uid]
}

// parsePasswd reads the names of users by their ids. Of several names the first
// counts, as for the system.
func parsePasswd(raw []byte) map[int64]string {
	names := make(map[int64]string)
	for line := range bytes.Lines(raw) {
		fields := bytes.SplitN(bytes.TrimRight(line, "\n"), []byte{':'}, 4)
		if len(fields) < 4 || len(names) >= maxUsers {
			continue
		}
		uid, err := strconv.ParseInt(string(fields[2]), 10, 64)
		name := string(fields[0])
		if _, known := names[uid]; err == nil && !known && isUserName(name) {
			names[uid] = name
		}
	}
	return names
}

// isUserName reports whether a text can be the name of a user: an id that is no
// number, with which it could be confused.
func isUserName(name string) bool {
	_, err := strconv.ParseInt(name, 10, 64)
	return err != nil && len(name) <= maxUserName && mlattr.ValidID(name)
}
