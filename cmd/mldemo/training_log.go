package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// realTraining has the numbers of a training of GPT-2 on 8 H100 that others have published:
// the kind of a line, its step, its loss, and the milliseconds since the start. Source:
// KellerJordan/modded-nanogpt f411b3d, MIT.
//
//go:embed nanogpt.csv.gz
var realTraining []byte

// trainingLog is the file that prints it again, as its program did, in the same time.
const trainingLog = "modded-nanogpt-replay.log"

// trainingLine is a line of the log, and when it was printed after the first one.
type trainingLine struct {
	after time.Duration
	text  string
}

// trainingLines returns the lines of the training.
func trainingLines(compressed []byte) (lines []trainingLine, err error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	type row struct {
		kind, loss string
		step       int64
		at         float64
	}
	var rows []row
	for scanner := bufio.NewScanner(unzipped); scanner.Scan(); err = scanner.Err() {
		f := strings.Split(scanner.Text(), ",")
		if len(f) != 4 || f[0] != "train" && f[0] != "val" {
			continue
		}
		step, stepErr := strconv.ParseInt(f[1], 10, 64)
		at, atErr := strconv.ParseFloat(f[3], 64)
		if err := errors.Join(stepErr, atErr); err != nil {
			return nil, err
		}
		if step == 0 {
			continue // before it, the program is compiled for 24 s
		}
		rows = append(rows, row{f[0], f[2], step, at})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.step, b.step) })
	var after, before float64
	for i, r := range rows {
		if i > 0 && r.at > before { // it begins again after the first steps
			after += r.at - before
		}
		before = r.at
		lines = append(lines, trainingLine{
			time.Duration(after * 1e6), fmt.Sprintf("step:%d/%d %s_loss:%s train_time:%.0fms\n", r.step, rows[len(rows)-1].step, r.kind, r.loss, r.at),
		})
	}
	return lines, err
}

// createTrainingLog creates the log, without the lines of an earlier demo.
func createTrainingLog(folder string) (*os.File, error) {
	return os.OpenFile(filepath.Join(folder, trainingLog), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // The folder is the user's choice.
}

// printTraining writes the log until it ends or ctx is done.
func printTraining(ctx context.Context, to io.StringWriter) error {
	lines, err := trainingLines(realTraining)
	if err != nil {
		return err
	}
	begun := time.Now()
	for _, line := range lines {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(begun.Add(line.after))):
		}
		if _, err := to.WriteString(line.text); err != nil {
			return err
		}
	}
	return nil
}
