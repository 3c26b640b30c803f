package reproductions

import (
	"path"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// maxDirectory limits the directory and the name of a machine, in bytes.
const maxDirectory = 4096

// Record is what a log record of another collector's repro_gen says of an artifact.
type Record struct {
	// Host is the machine that has the artifact, Directory the absolute path of
	// repro_gen's directory there, and Artifact the path below it.
	Host, Directory, Artifact string
	Report                    []byte
}

// Describe adds the command that reproduces a failure on the machine that has its
// artifact. It adds nothing if the record has no path that repro_gen writes.
func (r *Record) Describe(f *api.Failure) {
	group, name := path.Split(r.Artifact)
	if group != f.Key+"/" || !groupName.MatchString(f.Key) || !artifactName.MatchString(name) {
		return
	}
	if !path.IsAbs(r.Directory) || len(r.Directory)+len(r.Host) > maxDirectory || len(r.Report) > maxReportBytes {
		return
	}
	describe(f, path.Join(r.Directory, r.Artifact, scriptFile), r.Report)
	if r.Host != "" {
		f.Requires = append([]string{"host " + strings.ToValidUTF8(r.Host, "")}, f.Requires...)
	}
}
