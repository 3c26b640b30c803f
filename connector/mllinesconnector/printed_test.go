package mllinesconnector

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// printed are the outputs of programs that were run on a CPU, with what is in them. Their
// versions are in the first lines of the files, their commands in the formats.
var printed = map[string]struct {
	steps, validations, checkpoints int
	// losses are the numbers of steps and their losses.
	losses []string
	ended  bool
}{
	"transformers": {18, 2, 2, []string{"3=1.305", "6=1.477", "9=1.353", "12=2.301", "15=1.38", "18=1.455"}, true},
	// Steps take a few milliseconds: the bar is printed again after each line with a loss.
	"transformers_fast": {18, 2, 2, []string{"3=1.242", "6=0.9298", "9=1.199", "12=2.144", "15=1.228", "18=1.387"}, true},
	"trl":               {6, 0, 0, []string{"2=1.758", "4=1.757", "6=1.757"}, true},
	"lightning":         {40, 0, 0, nil, true},
	"mmengine":          {40, 0, 2, []string{"5=1.595", "10=1.4703", "15=1.4553", "20=1.1977", "25=0.9561", "30=0.8891", "35=0.9448", "40=1.0246"}, false},
	"keras_bar":         {48, 3, 0, nil, false},
	"keras_lines":       {48, 3, 0, []string{"16=91.2453", "32=74.0699", "48=56.11"}, false},
	"xgboost":           {12, 0, 0, nil, false},
	"lightgbm":          {12, 0, 0, []string{"2=0.267791", "4=0.178319", "6=0.118848", "8=0.0793615", "10=0.0531777", "12=0.0357243"}, false},
	"ultralytics":       {4, 0, 0, []string{"2=0.5811", "3=0.9959", "4=0.9959"}, true},
	"tqdm":              {20, 0, 0, nil, false},
	"torchtitan":        {6, 1, 0, []string{"1=7.1", "2=3.55", "4=1.775", "6=1.18333"}, false},
}

func TestPrinted(t *testing.T) {
	files, err := filepath.Glob("testdata/printed/*.txt")
	require.NoError(t, err)
	assert.Len(t, files, len(printed))
	for name, want := range printed {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "printed", name+".txt"))
			require.NoError(t, err)
			r := newRig(t, nil)
			for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
				r.print(100*time.Millisecond, line)
			}
			r.wait(10 * time.Second)
			steps, validations, checkpoints, ended := 0, 0, 0, false
			var losses []string
			traces := map[string]bool{}
			for _, s := range r.spans() {
				phase, _ := s.Attributes().Get("ml.phase")
				traces[s.TraceID().String()] = true
				switch phase.Str() {
				case "batch":
					steps++
					number, _ := s.Attributes().Get("ml.step")
					assert.EqualValues(t, steps, number.Int())
					if loss, ok := s.Attributes().Get("ml.loss"); ok {
						losses = append(losses, fmt.Sprintf("%d=%.6g", number.Int(), loss.Double()))
					}
				case "validation":
					validations++
				case "checkpoint":
					checkpoints++
				case "train":
					ended = true
				}
			}
			assert.Equal(t, want.steps, steps, "steps")
			assert.Equal(t, want.validations, validations, "validations")
			assert.Equal(t, want.checkpoints, checkpoints, "checkpoints")
			assert.Equal(t, want.ended, ended, "ended")
			assert.Len(t, traces, 1, "attempts")
			if want.losses != nil {
				assert.Equal(t, want.losses, losses)
			} else {
				assert.NotEmpty(t, losses)
			}
		})
	}
}
