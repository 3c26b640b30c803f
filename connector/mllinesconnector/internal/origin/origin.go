// Package origin answers of which run, host and rank a log file or stream is.
package origin

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

// Attributes of resources and records that say where lines are from.
const (
	FilePath     = "log.file.path"
	FileOwner    = "log.file.owner.name"
	containerTag = "k8s.container.name"
	restarts     = "k8s.container.restart_count"
	podUID       = "k8s.pod.uid"
	instance     = "service.instance.id"
	slurmJobName = "slurm.job.name"
)

const (
	// maxAttributes and maxValue limit what is kept of a resource.
	maxAttributes, maxValue = 64, 256
	// maxPath is the longest path that is read, that of Linux.
	maxPath = 4096
)

// identity are the attributes that tell the sources of lines apart.
var identity = [...]string{
	mlattr.ServiceName, instance, mlattr.HostName, mlattr.K8sNamespace, mlattr.K8sPod, podUID, containerTag, restarts,
	mlattr.ContainerID, mlattr.SlurmJobID, mlattr.ProcessID, mlattr.RunID, mlattr.RankGlobal,
}

// Key returns what tells a resource from others.
func Key(resource pcommon.Map) string {
	var key strings.Builder
	for i, name := range identity {
		if id := mlattr.TextAt(resource, name); id != "" {
			fmt.Fprintf(&key, "%d=%s\n", i, id)
		}
	}
	return key.String()
}

// Origin is where lines are from.
type Origin struct {
	// Resource is that of the spans.
	Resource pcommon.Map
	// Owner identifies the program that prints, whatever its streams.
	Owner string
	// Program is what has one Owner for each attempt.
	Program string
	// Member tells apart the processes of a program that write files of their own, "" for
	// others.
	Member string
	// HasService is false if the service must be named after the program.
	HasService bool
	// attempt tells apart the attempts of a program that write files of their own.
	attempt string
	// plain is true for a file that its program may write itself, and writer is the process
	// that does, as far as it is known.
	plain  bool
	writer workload.Details
	// asked is when Known last asked who writes it.
	asked time.Time
}

// readOrigin returns the origin of a file or stream: of a resource, and the attributes of one
// of its records, which name the file. writerOf tells who writes a file.
func readOrigin(resource, record pcommon.Map, writerOf func(path string) (workload.Process, bool)) *Origin {
	o := &Origin{Resource: pcommon.NewMap()}
	for key, v := range resource.All() {
		if o.Resource.Len() >= maxAttributes {
			break
		}
		if v.Type() == pcommon.ValueTypeMap || v.Type() == pcommon.ValueTypeSlice || v.Type() == pcommon.ValueTypeBytes ||
			v.Type() == pcommon.ValueTypeStr && len(v.Str()) > maxValue || len(key) > maxValue || strings.HasPrefix(key, "log.") {
			continue
		}
		v.CopyTo(o.Resource.PutEmpty(key))
	}
	o.put(mlattr.UserName, mlattr.TextAt(record, FileOwner))
	file := mlattr.FirstText(record, FilePath)
	if len(file) > maxPath {
		file = ""
	}
	program := o.readPath(file)
	if o.plain = program != ""; o.plain {
		if writer, ok := writerOf(file); ok {
			o.readWriter(&writer)
		}
	}
	o.Owner = Key(o.Resource) + program + o.attempt
	o.Program = Key(withoutAttempt(o.Resource)) + program
	o.nameService()
	o.nameRun(program)
	return o
}

// withoutAttempt returns a resource without what each start of a pod's container changes.
func withoutAttempt(resource pcommon.Map) pcommon.Map {
	if _, ok := resource.Get(restarts); !ok {
		return resource
	}
	same := pcommon.NewMap()
	resource.CopyTo(same)
	same.Remove(restarts)
	same.Remove(mlattr.ContainerID)
	return same
}

// readWriter adds what is known of the process that writes a file. Where the ranks have files
// of their own, it adds what they have in common.
func (o *Origin) readWriter(p *workload.Process) {
	o.put(mlattr.RunID, p.RunID)
	o.put(mlattr.SlurmJobID, p.SlurmJobID)
	o.put(mlattr.ContainerID, p.ContainerID)
	o.put(podUID, p.PodUID)
	o.put(mlattr.ServiceName, p.ServiceName)
	if o.Member != "" {
		return
	}
	for key, n := range map[string]workload.Number{mlattr.RankGlobal: p.RankGlobal, mlattr.WorldSize: p.WorldSize, mlattr.ProcessID: p.NamespacePID} {
		if n.Known {
			o.putInt(key, strconv.FormatInt(n.Value, 10))
		}
	}
	if o.writer = p.Details; !p.Start.IsZero() {
		o.put("process.creation.time", p.Start.UTC().Format(time.RFC3339Nano))
	}
}

// Has reports whether a process is of the program: by its container, pod or job, or because
// it writes the file.
func (o *Origin) Has(group workload.Cgroup, pid int64) bool {
	for _, of := range [...]struct{ theirs, ours string }{
		{group.ContainerID, o.text(mlattr.ContainerID)}, {group.PodUID, o.text(podUID)}, {group.SlurmJobID, o.text(mlattr.SlurmJobID)},
	} {
		if of.theirs != "" && of.ours != "" {
			return of.theirs == of.ours
		}
	}
	return group == workload.Cgroup{} && o.writer.NamespacePID.Known && o.writer.NamespacePID.Value == pid
}

// HostOf returns the host that a program states where it is another than that of the
// resource, else "": a file on a shared disk is of any host.
func (o *Origin) HostOf(stated string) string {
	name, _, _ := strings.Cut(stated, ".")
	if own, _, _ := strings.Cut(o.text(mlattr.HostName), "."); !o.plain || o.writer.NamespacePID.Known || name == own {
		return ""
	}
	return stated
}

// AddTo adds the attributes of the origin that others lack.
func (o *Origin) AddTo(attributes pcommon.Map) {
	for key, v := range o.Resource.All() {
		if _, ok := attributes.Get(key); !ok {
			v.CopyTo(attributes.PutEmpty(key))
		}
	}
}

// put sets an attribute that the resource does not have.
func (o *Origin) put(key, value string) {
	if _, ok := o.Resource.Get(key); !ok && value != "" {
		o.Resource.PutStr(key, value)
	}
}

func (o *Origin) putInt(key, value string) {
	n, err := strconv.ParseInt(value, 10, 32)
	if _, ok := o.Resource.Get(key); !ok && err == nil && n >= 0 {
		o.Resource.PutInt(key, n)
	}
}

func (o *Origin) text(key string) string { return mlattr.TextAt(o.Resource, key) }

// What paths say. All expressions are applied once for each file.
var (
	// Files that container runtimes write, also those that were rotated:
	// /var/log/pods/<namespace>_<pod>_<uid>/<container>/<restarts>.log, the link to it
	// /var/log/containers/<pod>_<namespace>_<container>-<id>.log, and Docker's
	// <id>/<id>-json.log. Each group is the value of one of containerKeys, unless the operator
	// container of file_log has set it.
	containerFile = regexp.MustCompile(`(?:/pods/([^/_]+)_([^/_]+)_([^/]+)/([^/]+)/(\d+)|` +
		`/containers/([^/_]+)_([^/_]+)_([^/]+)-([0-9a-f]{64})|/([0-9a-f]{64})/[0-9a-f]{64}-json)\.log(?:\.[-\d]+)?(?:\.gz)?$`)
	containerKeys = [...]string{
		mlattr.K8sNamespace, mlattr.K8sPod, podUID, containerTag, restarts,
		mlattr.K8sPod, mlattr.K8sNamespace, containerTag, mlattr.ContainerID, mlattr.ContainerID,
	}
	// torchrun's --log-dir: <folder>/<run>/attempt_<n>/<local rank>/stdout.log.
	elastic = regexp.MustCompile(`^(.*)/attempt_(\d+)/(\d+)/(?:stdout|stderr)\.log$`)
	// Slurm's slurm-<job>.out, and names that end in the job.
	slurmFile  = regexp.MustCompile(`^(?:slurm-(\d+)|.*[-_.](\d{5,}))(?:_(\d+))?\.(?:out|err|log)$`)
	rankInName = regexp.MustCompile(`(?i)[-_.]?\b(?:global[-_]?)?rank[-_.]?(\d+)\b|[-_.]rank[-_.]?(\d+)`)
	streams    = regexp.MustCompile(`(?i)(?:[-_.]?(?:stdout|stderr))?(?:\.(?:out|err|log|txt|jsonl|json))*(?:\.\d+)?$`)
)

// readPath adds what a path says, and returns the path of the program: that of both of its
// streams, of all ranks.
func (o *Origin) readPath(file string) (program string) {
	if file == "" {
		return ""
	}
	if m := containerFile.FindStringSubmatch(file); m != nil {
		for i, key := range containerKeys {
			o.put(key, m[i+1])
		}
		return ""
	}
	if m := elastic.FindStringSubmatch(file); m != nil {
		o.Member = m[3] + "/"
		o.attempt = "/attempt_" + m[2]
		return m[1]
	}
	folder, name := path.Split(file)
	if m := slurmFile.FindStringSubmatch(name); m != nil {
		o.put(mlattr.SlurmJobID, m[1]+m[2])
	}
	if m := rankInName.FindStringSubmatch(name); m != nil {
		o.putInt(mlattr.RankGlobal, m[1]+m[2])
		name = strings.Replace(name, m[0], "", 1)
	}
	return folder + streams.ReplaceAllString(name, "")
}

// nameService names the service of a container, or of a job of Slurm.
func (o *Origin) nameService() {
	name := o.text(mlattr.ServiceName)
	if name == "" || strings.HasPrefix(name, "unknown_service") {
		if name = cmp.Or(o.text(containerTag), o.text(slurmJobName)); name != "" {
			o.Resource.PutStr(mlattr.ServiceName, name)
		}
	}
	o.HasService = name != ""
}

// nameRun sets the run's id, unless the resource names the run. All pods of a job are one
// run, and all ranks of a program that writes files.
func (o *Origin) nameRun(program string) {
	var facts vocabulary.Facts
	vocabulary.Default().Resource(o.Resource, &facts)
	if id, _ := facts.Run(); id != "" {
		return
	}
	id := ""
	switch pod := o.text(mlattr.K8sPod); {
	case pod != "":
		id = jobOf(pod) + "-" + short(o.text(mlattr.K8sNamespace))
	case program != "":
		// Run ids have no blanks.
		id = strings.Join(strings.Fields(path.Base(program)), "_") + "-" + short(o.text(mlattr.HostName), o.text(mlattr.ContainerID), program)
	case o.text(mlattr.ContainerID) != "":
		id = o.text(mlattr.ContainerID)[:min(12, len(o.text(mlattr.ContainerID)))]
	default:
		return
	}
	o.Resource.PutStr(mlattr.RunID, strings.TrimLeft(id, "-"))
	o.Resource.PutBool(mlattr.RunInferred, true)
}

// short returns a short hash.
func short(texts ...string) string {
	h := fnv.New32a()
	for _, text := range texts {
		_, _ = h.Write([]byte(text + "\n")) // a hash does not fail
	}
	return fmt.Sprintf("%08x", h.Sum32())
}

// roles are the parts of a pod's name that say what the pod is of its job.
var roles = map[string]bool{"worker": true, "master": true, "launcher": true, "leader": true, "chief": true, "head": true, "node": true, "replica": true, "evaluator": true}

// podAlphabet is that of the random ends of names of pods.
const podAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// jobOf returns what owns a pod by the pod's name: without its number, its role and its
// random end.
func jobOf(pod string) string {
	parts := strings.Split(pod, "-")
	for n := len(parts); n > 1; n-- {
		last := parts[n-1]
		_, err := strconv.ParseUint(last, 10, 32)
		random := len(last) == 5 && strings.Trim(last, podAlphabet) == "" && n == len(parts)
		if err != nil && !random && !roles[last] {
			return strings.Join(parts[:n], "-")
		}
	}
	return parts[0]
}

// askAgain is after how long a file is asked again who writes it: a program that starts
// again may write to the same file.
const askAgain = time.Minute

// Known remembers the origins of files and streams, so that the spans and the records of one
// have the same. It is safe for concurrent use.
type Known struct {
	component.StartFunc
	component.ShutdownFunc
	now func() time.Time

	mu      sync.Mutex
	writers *writers
	by      *lastused.Map[string, *Origin]
}

// NewKnown returns a Known of at most limit files and streams.
func NewKnown(limit int, now func() time.Time) *Known {
	w := &writers{processes: workload.NewNamespaceProcesses("/"), now: now}
	return &Known{now: now, writers: w, by: lastused.NewMap[string, *Origin](max(limit, 2))}
}

// Of returns the origin of a record's file or stream: of its resource, and of its
// attributes, which name the file. It must not be changed.
func (k *Known) Of(resource, record pcommon.Map) *Origin {
	key := Key(resource) + mlattr.FirstText(record, FilePath)
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	before, ok := k.by.Get(key)
	if ok && (!before.plain || now.Sub(before.asked) < askAgain) {
		return before
	}
	o := readOrigin(resource, record, k.writers.of)
	if ok {
		before.asked = now
		if a, b := &o.writer, &before.writer; !a.NamespacePID.Known || a.NamespacePID == b.NamespacePID && a.Start.Sub(b.Start).Abs() < 2*time.Second {
			return before // the program may have ended since it wrote the lines
		}
	}
	o.asked = now
	k.by.Put(strings.Clone(key), o)
	return o
}
