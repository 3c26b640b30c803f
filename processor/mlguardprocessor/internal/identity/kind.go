package identity

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr"

// kind is a kind of identities with its own limit.
type kind uint8

const (
	kindService kind = iota
	kindInstance
	kindRun
	kindRank
	kindSession
	kindModel
	kindOperation
	kindUser
	kindProcess
	kindLabel
	kindCombination
	kindStream

	kindCount
)

// kindNames are the kinds' names in the configuration, the metrics and the log.
var kindNames = [kindCount]string{
	kindService:     "service",
	kindInstance:    "instance",
	kindRun:         "run",
	kindRank:        "rank",
	kindSession:     "session",
	kindModel:       "model",
	kindOperation:   "operation",
	kindUser:        "user",
	kindProcess:     "process",
	kindLabel:       "label",
	kindCombination: "combination",
	kindStream:      "stream",
}

// kindsOfKeys are the kinds of labels. Any other label is of kindLabel.
var kindsOfKeys = map[string]kind{
	mlattr.RunID:              kindRun,
	mlattr.TrainingRunID:      kindRun,
	mlattr.JobID:              kindRun,
	mlattr.RankGlobal:         kindRank,
	mlattr.SessionID:          kindSession,
	mlattr.SamplingSessionID:  kindSession,
	"session.id":              kindSession,
	"gen_ai.conversation.id":  kindSession,
	mlattr.GenAIRequestModel:  kindModel,
	mlattr.GenAIResponseModel: kindModel,
	mlattr.Operation:          kindOperation,
	mlattr.GenAIOperationName: kindOperation,
	"http.route":              kindOperation,
	"rpc.method":              kindOperation,
	mlattr.User:               kindUser,
	"user.id":                 kindUser,
	"enduser.id":              kindUser,
	"process.pid":             kindProcess,
	"process.vpid":            kindProcess,
	"process.creation.time":   kindProcess,
}

// kindOf returns the kind of a label.
func kindOf(key string) kind {
	if k, ok := kindsOfKeys[key]; ok {
		return k
	}
	return kindLabel
}

// spanLabels are the span attributes that become labels: in ml_metrics after
// ml_enrich, and in span_metrics as the shipped configurations have it. The
// labels of runs are not included.
var spanLabels = map[string]bool{
	mlattr.GenAIRequestModel:  true,
	mlattr.GenAIResponseModel: true,
	mlattr.Operation:          true,
	mlattr.GenAIOperationName: true,
	mlattr.GenAIProviderName:  true,
	mlattr.Phase:              true,
	mlattr.Role:               true,
	mlattr.Side:               true,
	mlattr.Library:            true,
	mlattr.Function:           true,
	mlattr.LossScope:          true,
	mlattr.ThroughputBasis:    true,
	mlattr.ErrorType:          true,
	"http.route":              true,
	"rpc.method":              true,
	"server.address":          true,
	"server.port":             true,
	mlattr.Overflow:           true,
}
