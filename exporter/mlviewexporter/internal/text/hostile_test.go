package text_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"golang.org/x/text/width"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
)

// fill sets every field to the given values and gives every list and map two
// entries.
func fill(v reflect.Value, s string, f float64) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Float64:
		v.SetFloat(f)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(max(-1e18, min(1e18, f))))
	case reflect.Bool:
		v.SetBool(f > 0)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), s, f)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), s, f)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, name := range []string{s, "working"} {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(value, s, f)
			v.SetMapIndex(reflect.ValueOf(name), value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(max(-1e15, min(1e15, f))), 0)))
			return
		}
		for _, field := range v.Fields() {
			fill(field, s, f)
		}
	default:
		panic(v.Kind())
	}
}

// mayBeLonger reports whether a line holds a text that is written to be copied.
func mayBeLonger(line string) bool {
	return strings.HasPrefix(line, "    $ ") || strings.HasPrefix(line, "    > ")
}

func assertHarmless(t *testing.T, written string, limit int) {
	t.Helper()
	assert.True(t, utf8.ValidString(written))
	for line := range strings.Lines(written) {
		line = strings.TrimSuffix(line, "\n")
		used := 0
		for _, r := range line {
			assert.True(t, unicode.IsPrint(r), "%q in %q", r, line)
			used++
			if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
				used++
			}
		}
		if !mayBeLonger(line) {
			assert.LessOrEqual(t, used, limit, line)
		}
	}
}

func FuzzWrite(f *testing.F) {
	for _, s := range []string{"", "plain", "a b c", "\x1b[2J\x07", "\u202eabc", "你好吗🙂", "\xff", "\n\r\t", "<script>alert(1)</script>",
		strings.Repeat("long ", 3000), strings.Repeat("x", 10_000), "الحرب", "e\u0301\u200d", "running", "ended"} {
		f.Add(s, 1.5, 80)
		f.Add(s, math.Inf(1), 123)
		f.Add(s, -1e300, 200)
	}
	f.Add("nan", math.NaN(), 0)
	f.Fuzz(func(t *testing.T, s string, value float64, columns int) {
		state := &api.State{}
		fill(reflect.ValueOf(state).Elem(), s, value)
		state.Time = now
		limit := columns
		if limit == 0 {
			limit = text.DefaultWidth
		}
		assertHarmless(t, written(t, state, text.Options{Width: columns}), min(max(limit, 80), 200))
	})
}

// Only texts that are written to be copied are longer than the line.
func TestEveryWidthFits(t *testing.T) {
	for columns := 80; columns <= 200; columns++ {
		out := written(t, incident(), text.Options{Width: columns})
		assertHarmless(t, out, columns)
		for _, f := range incident().Failures {
			assert.Contains(t, out, "    $ "+f.Command+"\n", "whole, on its own line")
		}
	}
}

func TestColorOnlyEmphasizes(t *testing.T) {
	plain := written(t, incident(), text.Options{Width: 100})
	color := written(t, incident(), text.Options{Width: 100, Color: true})
	assert.NotContains(t, plain, "\x1b")
	assert.Contains(t, color, "\x1b[1;31mNEEDS ATTENTION (5)\x1b[0m\n")
	assert.Equal(t, plain, strings.NewReplacer("\x1b[1m", "", "\x1b[1;31m", "", "\x1b[0m", "").Replace(color))
}

// With more rows than a terminal holds those that need someone are shown, and
// the title says how many are not.
func TestManyRuns(t *testing.T) {
	state := incident()
	problems := state.Runs[1:]
	state.Runs = nil
	for range 298 {
		state.Runs = append(state.Runs, api.Run{Service: "fine", State: "running"})
	}
	state.Runs = append(state.Runs, problems...)
	out := written(t, state, text.Options{Width: 120})
	assert.Contains(t, out, "\nRUNS (showing 50 of 300)\n")
	assert.Regexp(t, `\nRUNS .*\nrates: (?s:.{1,250})\nrun .*\nllama-sft .*\nqwen-dpo .*\nfine `, out)
}

func TestDataThatStopped(t *testing.T) {
	state := incident()
	state.Collector.DataTime = ago(10 * time.Minute)
	assert.Contains(t, written(t, state, text.Options{}), "\nNO DATA since 20 Nov 06:32:10 UTC\n")
}
