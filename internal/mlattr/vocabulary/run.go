package vocabulary

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Run returns the id of the run that the facts state, or "". It is the first of these that
// is stated and is no sentinel:
//
//  1. RunID under its canonical name, unless it is inferred: ml_enrich or the
//     user has decided.
//  2. TrainingRunID.
//  3. RunID under a client's or launcher's name, or inferred.
//  4. JobID.
//  5. KubernetesJob.
//
// inferred reports that the id was computed and that nobody sent it.
func (f *Facts) Run() (id string, inferred bool) {
	if id, inferred = f.NamedRun(); id != "" {
		return id, inferred
	}
	for _, slot := range [...]Slot{SlotJobID, SlotKubernetesJob} {
		if id = f.TextAt(slot); !mlattr.Sentinel(id) {
			return id, false
		}
	}
	return "", false
}

// NamedRun is Run without the ids of schedulers. It is for spans: a job id on a
// span says less than the run that the resource names.
func (f *Facts) NamedRun() (id string, inferred bool) {
	run, mark := f.At(SlotRunID), f.At(SlotRunInferred)
	return NamedRun(run.text(), run != nil && run.Own, mark != nil && mark.Bool, f.TextAt(SlotTrainingRunID))
}

// NamedRun is Facts.NamedRun for values that were read elsewhere: of RunID, with
// whether it has its canonical name and is inferred, and of TrainingRunID.
func NamedRun(run string, canonical, runInferred bool, training string) (id string, inferred bool) {
	switch named := !mlattr.Sentinel(run); {
	case named && canonical && !runInferred:
		return run, false
	case !mlattr.Sentinel(training):
		return training, false
	case named:
		return run, runInferred
	default:
		return "", false
	}
}

// ServesCallers reports whether a service of this name works for the runs of its
// callers and is no run itself, although its client's processes are.
func ServesCallers(service string) bool { return slices.Contains(workerServices, service) }

var workerServices = collectKeys(func(t *table.Table) []string { return t.WorkerServices })
