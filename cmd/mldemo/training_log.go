package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	type row struct{ kind, step, loss, at string }
	var rows []row
	for scanner := bufio.NewScanner(unzipped); scanner.Scan(); err = scanner.Err() {
		if f := strings.Split(scanner.Text(), ","); len(f) == 4 && (f[0] == "train" || f[0] == "val") {
			rows = append(rows, row{f[0], f[1], f[2], f[3]})
		}
	}
	var first float64
	for _, r := range rows {
		at, err := strconv.ParseFloat(r.at, 64)
		if err != nil {
			return nil, err
		}
		if len(lines) == 0 {
			first = at
		}
		lines = append(lines, trainingLine{
			time.Duration((at - first) * 1e6), fmt.Sprintf("step:%s/%s %s_loss:%s train_time:%.0fms\n", r.step, rows[len(rows)-1].step, r.kind, r.loss, at),
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
