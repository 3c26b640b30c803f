package mllinesconnector

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// The numbers of trainings that others have published are printed as their trainers, and
// others, print them, by a launcher, into the files of container runtimes. The spans must
// have the numbers of the file.

// event is a line of a file: a step, or another event.
type event struct {
	kind string
	at   time.Duration
	step int64
	// seconds is the stated duration of the step, 0 if there is none.
	seconds, loss float64
	unnumbered    bool
}

// stated is the step as MLPerf's logger writes it, if it does.
func (e *event) stated() string {
	if e.unnumbered {
		return ""
	}
	return fmt.Sprintf(`, "step": %d`, e.step)
}

func readEvents(t *testing.T, path string) (events []event) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // only read
	text, err := gzip.NewReader(file)
	require.NoError(t, err)
	number := func(text string) float64 {
		if text == "" || text == "None" {
			return math.NaN()
		}
		n, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return n
	}
	for scan := bufio.NewScanner(text); scan.Scan(); {
		fields := strings.Split(scan.Text(), ",")
		if fields[0] == "kind" || strings.HasPrefix(fields[0], "#") {
			continue
		}
		e := event{kind: fields[0]}
		if len(fields) == 4 { // of modded-nanogpt
			e.step, e.loss = int64(number(fields[1])), number(fields[2])
			e.at = time.Duration(number(fields[3])) * time.Millisecond
		} else {
			e.at = time.Duration(number(fields[1])) * time.Millisecond
			step := number(fields[2])
			e.step, e.unnumbered, e.seconds, e.loss = int64(step), math.IsNaN(step), number(fields[3]), number(fields[4])
		}
		events = append(events, e)
	}
	return events
}

// wrappers are what may be around a line.
var wrappers = []struct{ name, before, after string }{
	{"plain", "", ""},
	{"torchrun", "[default3]:", ""},
	{"srun, colours", "2: \x1b[32m", "\x1b[0m"},
	{"a bar and warnings around", "\r 99%|#########9| 99/100 [00:10<00:00,  9.9it/s]\r", "\nUserWarning: step 7 is deprecated\n"},
}

// TestModdedNanoGPT: steps, losses and times of 39 trainings are those of their files.
func TestModdedNanoGPT(t *testing.T) {
	files := realFiles(t, "nanogpt")
	for i, path := range files {
		w := wrappers[i%len(wrappers)]
		t.Run(filepath.Base(path)+" "+w.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			start := r.at
			var want []event
			var elapsed time.Duration
			validations, lost := 0, time.Duration(0)
			for _, e := range readEvents(t, path) {
				line := fmt.Sprintf("step:%d/6000 train_loss:%.4f train_time:%dms step_avg:%.2fms", e.step, e.loss, e.at.Milliseconds(), 1.0)
				if e.kind == "val" {
					validations++
					lost += 2 * time.Second // its clock stands still
					line = fmt.Sprintf("step:%d/6000 val_loss:%.4f train_time:%dms step_avg:%.2fms", e.step, e.loss, e.at.Milliseconds(), 1.0)
				} else {
					if len(want) > 0 {
						e.seconds = (e.at - elapsed).Seconds()
					}
					elapsed = e.at
					want = append(want, e)
				}
				r.at = start.Add(e.at + lost)
				r.print(0, w.before+line+w.after)
			}
			compare(t, r.spans(), want, validations, 0)
		})
	}
}

// TestMLPerf: steps, losses and times of 63 trainings are those of their files.
func TestMLPerf(t *testing.T) {
	for i, path := range realFiles(t, "mlperf") {
		w := wrappers[i%len(wrappers)]
		t.Run(filepath.Base(path)+" "+w.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			var want []event
			validations, steps, newest := 0, 0, int64(0)
			var from time.Duration
			for _, e := range readEvents(t, path) {
				at := time.UnixMilli(e.at.Milliseconds()).UTC()
				line := fmt.Sprintf(`:::MLLOG {"namespace": "", "time_ms": %d, "event_type": "POINT_IN_TIME", "key": %q, "value": null, "metadata": {"file": "train.py", "lineno": 10}}`, e.at.Milliseconds(), e.kind)
				switch {
				case e.kind == "step" && (math.IsNaN(e.seconds) || e.unnumbered || e.step < newest):
					// The summary of a block of steps is none.
					line = fmt.Sprintf(`:::MLLOG {"namespace": "", "time_ms": %d, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"train_step_time": %v}, "metadata": {"file": "train.py", "lineno": 10%s}}`, e.at.Milliseconds(), e.seconds, e.stated())
				case e.kind == "step":
					newest = e.step
					loss := ""
					if !math.IsNaN(e.loss) {
						loss = fmt.Sprintf(`, "reduced_train_loss": %v`, e.loss)
					}
					line = fmt.Sprintf(`:::MLLOG {"namespace": "", "time_ms": %d, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"train_step_time": %v%s}, "metadata": {"file": "train.py", "lineno": 10, "step": %d.0}}`, e.at.Milliseconds(), e.seconds, loss, e.step)
					want = append(want, e)
					n := 1
					if from > 0 {
						n = max(int(math.Round((e.at-from).Seconds()/e.seconds)), 1)
					}
					steps, from = steps+n, e.at
				case e.kind == "eval_stop":
					validations++
					from = e.at
				case e.kind == "run_start":
					from = e.at
				}
				r.at = at.Add(100 * time.Millisecond)
				r.print(0, w.before+line+w.after)
			}
			compare(t, r.spans(), want, validations, steps)
		})
	}
}

func realFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "e2e", "anomalies", "testdata", "real", folder, "*.csv.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// compare compares spans with the steps of a file, and with their number, 0 if they are
// numbered.
func compare(t *testing.T, spans []ptrace.Span, want []event, validations, counted int) {
	t.Helper()
	var losses, wanted []float64
	steps, newest, numbered := 0, int64(0), counted == 0
	for _, s := range spans {
		phase, _ := s.Attributes().Get("ml.phase")
		switch phase.Str() {
		case "validation":
			validations--
			continue
		case "batch":
		default:
			continue
		}
		steps++
		loss, ok := s.Attributes().Get("ml.loss")
		if number, has := s.Attributes().Get("ml.step"); numbered && assert.True(t, has) {
			assert.Equal(t, newest+1, number.Int(), "numbers have no gap")
			newest = number.Int()
		}
		if !ok {
			continue
		}
		at := len(losses)
		losses = append(losses, loss.Double())
		if numbered && at < len(want) && want[at].seconds > 0 {
			assert.InDelta(t, want[at].seconds, s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds(), 1e-6, "step %d", want[at].step)
		}
	}
	for _, e := range want {
		if !math.IsNaN(e.loss) {
			wanted = append(wanted, e.loss)
		}
	}
	require.Equal(t, wanted, losses)
	assert.Zero(t, validations, "validations")
	if numbered {
		assert.EqualValues(t, want[len(want)-1].step, steps)
	} else {
		assert.Equal(t, counted, steps)
	}
}
