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
