// Package trainstep is the kind of artifacts that start a training's program again,
// with its arguments.
package trainstep

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

//go:embed script/*.py.tmpl
var files embed.FS

// New returns the kind.
func New() *kind.Kind {
	return &kind.Kind{
		Name:        failure.TrainStep,
		FromFailure: fromFailure,
		Parts:       func(jsontree.Object) []string { return []string{"files", "train"} },
		Files:       files,
		Flags:       flags,
		Head:        head,
	}
}

// Attributes of a process.
const (
	attrCommandArgs      = "process.command_args"
	attrCommandLine      = "process.command_line"
	attrWorkingDirectory = "process.working_directory"
)

// ofTraining lists the attributes that only the spans of a training have. A
// command alone makes no training: any service may send its own.
var ofTraining = map[string]bool{
	"repro.epoch": true, "repro.step": true, "repro.batch.ids": true, "repro.checkpoint.uri": true,
	mlattr.Epoch: true, mlattr.Step: true, mlattr.BatchIndex: true, mlattr.Loss: true,
}

// trainingPhases are the values of ml.phase that name a part of a training.
var trainingPhases = []string{
	mlattr.PhaseTrain, mlattr.PhaseForward, mlattr.PhaseBackward, mlattr.PhaseOptimizer, mlattr.PhaseForwardBackward,
	mlattr.PhaseDataLoad, mlattr.PhaseValidation, mlattr.PhaseEpoch, mlattr.PhaseBatch, mlattr.PhaseCheckpoint,
}

// fromFailure returns the command of a failure in a training, if both are known.
// The spans above may be those of the training.
func fromFailure(f *failure.Failure) (*failure.Call, failure.Reason, bool) {
	if !inTraining(f) {
		return nil, "", false
	}
	args, reason := commandOf(f)
	if args == nil {
		return nil, reason, reason != ""
	}
	call, reason := callOf(args, textOf(f, attrWorkingDirectory))
	return call, reason, true
}

func inTraining(f *failure.Failure) bool {
	return isTraining(f.Span.Attributes) || isTraining(f.Resource) ||
		slices.ContainsFunc(f.Ancestors, func(s failure.Span) bool { return isTraining(s.Attributes) })
}

func isTraining(attributes jsontree.Object) bool {
	return slices.ContainsFunc(attributes, func(m jsontree.Member) bool {
		phase, ok := m.Value.(string)
		return ofTraining[m.Key] || ok && m.Key == mlattr.Phase && slices.Contains(trainingPhases, phase)
	})
}

// commandOf returns the command that started the process, or nil.
func commandOf(f *failure.Failure) (jsontree.Array, failure.Reason) {
	incomplete := f.Weight >= snapshot.MaxBytes // what came last may be missing in the copy
	v, listed := f.Span.Attributes.Lookup(attrCommandArgs)
	if !listed {
		v, listed = f.Resource.Lookup(attrCommandArgs)
	}
	line := textOf(f, attrCommandLine)
	list, isList := v.(jsontree.Array)
	switch {
	case !listed && line == "":
		return nil, ""
	case incomplete || len(list) >= snapshot.MaxMembers || snapshot.MayBeCut(list) || !listed && snapshot.MayBeCut(line):
		return nil, failure.Truncated
	case !listed:
		return splitCommand(line)
	case !isList:
		return nil, failure.Invalid
	}
	return list, ""
}

func textOf(f *failure.Failure, key string) string {
	return cmp.Or(f.Span.Attributes.Text(key), f.Resource.Text(key))
}

// attrCheckpoint is where the training began.
const attrCheckpoint = "repro.checkpoint.uri"

func flags(spec jsontree.Object) string {
	flags := " --script FILE"
	if _, began := spec.Object("training").Lookup(attrCheckpoint); began {
		flags += " --checkpoint PATH"
	}
	return flags + kind.SetFlag(spec, "payload.command")
}

// head writes the command.
func head(h *kind.Head, spec jsontree.Object) {
	words := mlattr.Mapped(spec.Object("payload").Array("command"), func(w any) string { return fmt.Sprint(w) })
	h.Add("command", strings.Join(words, " "))
	if checkpoint := spec.Object("training").Text(attrCheckpoint); checkpoint != "" {
		h.Add("began with", checkpoint)
	}
}

// callOf makes what can be replayed of the command that started a process.
// Exactly one of its results is set.
func callOf(command jsontree.Array, folder string) (*failure.Call, failure.Reason) {
	size, lossy := len(folder), false
	for _, a := range command {
		text, ok := a.(string)
		if !ok {
			return nil, failure.Invalid
		}
		size += len(text)
		lossy = lossy || !utf8.ValidString(text)
	}
	switch {
	case size > failure.MaxCallBytes:
		return nil, failure.TooLarge
	case len(command) == 0 || command[0] == "":
		return nil, failure.Invalid
	}
	return &failure.Call{Tree: jsontree.Of("command", command, "working_directory", folder), Lossy: lossy, Weight: 2*size + 16*len(command)}, ""
}

// splitCommand takes a command that was sent as one text apart at its blanks.
// SDKs join the arguments without quoting them, others quote: where there are
// quotes or back-slashes, it is unknown which of them are the arguments'.
func splitCommand(line string) (jsontree.Array, failure.Reason) {
	if strings.ContainsAny(line, "\"'\\`$") {
		return nil, failure.CommandAmbiguous
	}
	return jsontree.Texts(strings.Fields(line)), ""
}
