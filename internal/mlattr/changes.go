package mlattr

// EventChange is the name of log records about something new of a service, run
// or host.
const EventChange = "ml.change"

// Attributes of such a record.
const (
	// ChangeKind is what changed: see the Change values.
	ChangeKind = "ml.change.kind"
	// ChangeFrom is the value before, ChangeTo the new one. Of a prompt, of tools
	// and of settings they are keyed hashes.
	ChangeFrom = "ml.change.from"
	ChangeTo   = "ml.change.to"
	// ChangeSetting is the name of a setting that changed.
	ChangeSetting = "ml.change.setting"
)

// Values of ChangeKind.
const (
	ChangeVersion = "version"
	ChangeCommit  = "commit"
	ChangeImage   = "image"
	// ChangeModel is the model that a service asks for, ChangeAnsweringModel the
	// one that answers.
	ChangeModel          = "model"
	ChangeAnsweringModel = "answering_model"
	ChangePrompt         = "prompt"
	ChangeTools          = "tools"
	ChangeSettings       = "settings"
	ChangeFramework      = "framework"
	ChangeDriver         = "driver"
	// ChangeNodes is the set of hosts of a run.
	ChangeNodes     = "nodes"
	ChangeAttempt   = "attempt"
	ChangeWorldSize = "world_size"
)

// ChangeKey says which change an attribute shows when its value is another.
type ChangeKey struct {
	// Source is the key of the attribute.
	Source string
	// Kind is one of the Change values.
	Kind string
	// Name is the setting or the framework, or which part of an image the value
	// is: see the Image values. It is empty for other kinds.
	Name string
	// NameKey is the key of the attribute of the same resource that has the Name,
	// or is "".
	NameKey string
}

// Values of ChangeKey.Name for an image.
const (
	ImageName = "name"
	ImageTag  = "tag"
	ImageID   = "id"
)

// Secret reports whether the values of a kind of change may have content, so that
// only keyed hashes of them may be kept.
func Secret(change string) bool {
	return change == ChangePrompt || change == ChangeTools || change == ChangeSettings
}

// ChangeKeyOf returns what an attribute of a resource, or of a span that is a
// request to a model, shows about changes, or nil.
func ChangeKeyOf(key string) *ChangeKey { return changeKeys[key] }

var changeKeys = func() map[string]*ChangeKey {
	index := make(map[string]*ChangeKey)
	for _, t := range Tables() {
		for i := range t.Changes {
			index[t.Changes[i].Source] = &t.Changes[i]
		}
	}
	for _, name := range Frameworks() {
		for _, key := range [...]string{name + ".version", name + "_version"} {
			index[key] = &ChangeKey{Source: key, Kind: ChangeFramework, Name: name}
		}
	}
	return index
}()

// settings returns the change keys of settings that have a common prefix.
func settings(prefix string, names ...string) []ChangeKey {
	keys := make([]ChangeKey, 0, len(names))
	for _, name := range names {
		keys = append(keys, ChangeKey{Source: prefix + name, Kind: ChangeSettings, Name: name})
	}
	return keys
}

// deployed are the keys of the conventions, of launchers and of build systems that
// say what runs.
var deployed = []ChangeKey{
	{Source: "service.version", Kind: ChangeVersion},
	{Source: "vcs.ref.head.revision", Kind: ChangeCommit},
	{Source: "mlflow.source.git.commit", Kind: ChangeCommit},
	{Source: "GIT_COMMIT", Kind: ChangeCommit},
	{Source: "GITHUB_SHA", Kind: ChangeCommit},
	{Source: "CI_COMMIT_SHA", Kind: ChangeCommit},
	{Source: "container.image.name", Kind: ChangeImage, Name: ImageName},
	{Source: "container.image.tags", Kind: ChangeImage, Name: ImageTag},
	{Source: "container.image.tag", Kind: ChangeImage, Name: ImageTag},
	{Source: "container.image.id", Kind: ChangeImage, Name: ImageID},
	{Source: "process.runtime.version", Kind: ChangeFramework, Name: "runtime", NameKey: "process.runtime.name"},
	{Source: "telemetry.sdk.version", Kind: ChangeFramework, Name: "telemetry SDK", NameKey: "telemetry.sdk.name"},
	{Source: "cuda.version", Kind: ChangeFramework, Name: "CUDA"},
	{Source: "nccl.version", Kind: ChangeFramework, Name: "NCCL"},
}
