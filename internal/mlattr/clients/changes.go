package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// deployed are the keys of the conventions, of launchers and of build systems that
// say what runs.
var deployed = []table.ChangeKey{
	{Source: "service.version", Kind: mlattr.ChangeVersion},
	{Source: "vcs.ref.head.revision", Kind: mlattr.ChangeCommit},
	{Source: "mlflow.source.git.commit", Kind: mlattr.ChangeCommit},
	{Source: "GIT_COMMIT", Kind: mlattr.ChangeCommit},
	{Source: "GITHUB_SHA", Kind: mlattr.ChangeCommit},
	{Source: "CI_COMMIT_SHA", Kind: mlattr.ChangeCommit},
	{Source: "container.image.name", Kind: mlattr.ChangeImage, Name: mlattr.ImageName},
	{Source: "container.image.tags", Kind: mlattr.ChangeImage, Name: mlattr.ImageTag},
	{Source: "container.image.tag", Kind: mlattr.ChangeImage, Name: mlattr.ImageTag},
	{Source: "container.image.id", Kind: mlattr.ChangeImage, Name: mlattr.ImageID},
	{Source: "process.runtime.version", Kind: mlattr.ChangeFramework, Name: "runtime", NameKey: "process.runtime.name"},
	{Source: "telemetry.sdk.version", Kind: mlattr.ChangeFramework, Name: "telemetry SDK", NameKey: "telemetry.sdk.name"},
	{Source: "cuda.version", Kind: mlattr.ChangeFramework, Name: "CUDA"},
	{Source: "nccl.version", Kind: mlattr.ChangeFramework, Name: "NCCL"},
}

// settings returns the change keys of settings that have a common prefix.
func settings(prefix string, names ...string) []table.ChangeKey {
	keys := make([]table.ChangeKey, 0, len(names))
	for _, name := range names {
		keys = append(keys, table.ChangeKey{Source: prefix + name, Kind: mlattr.ChangeSettings, Name: name})
	}
	return keys
}
