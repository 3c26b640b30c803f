package secret

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reads reports whether a secret of p can be read in text.
func (p planted) reads(text string) bool {
	for _, part := range p.parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return strings.Contains(text, encoded("x "+p.text)) || p.key != "" && strings.Contains(text, encoded(p.key+"="+p.text))
}

func TestX(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n, miss := 0, 0
	all := corpus(r)
	for _, p := range all {
		for _, at := range positionsOf(p) {
			key, text := at.put(p)
			if text == "" {
				continue
			}
			n++
			if Value(key, text) {
				continue
			}
			out, _ := Redact(text)
			if p.reads(out) {
				miss++
				fmt.Printf("MISS %s %s @%s\n   %.200q\n   %.200q\n", p.name, p.key, at.name, text, out)
			}
		}
	}
	fmt.Println(len(all), n, miss)
}

func TestExport(t *testing.T) {
	var rows []map[string]any
	for _, p := range corpus(rand.New(rand.NewPCG(1, 2))) {
		for _, at := range positionsOf(p) {
			key, text := at.put(p)
			if text == "" {
				continue
			}
			rows = append(rows, map[string]any{"class": p.class, "name": p.name + " " + p.key, "pos": at.name, "key": key, "text": text, "parts": p.parts, "enc1": encoded("x " + p.text), "enc2": encoded(p.key + "=" + p.text)})
		}
	}
	b, _ := json.Marshal(rows)
	os.WriteFile("/tmp/rd/corpus.json", b, 0o600)
}

func TestHeldOut(t *testing.T) {
	b, _ := os.ReadFile("/tmp/rd/heldout.jsonl")
	n, ok := map[string]int{}, map[string]int{}
	bad := map[string]map[string]string{}
	for line := range strings.Lines(string(b)) {
		var r map[string]string
		json.Unmarshal([]byte(line), &r)
		out, rules := Redact(r["text"])
		if r["kind"] == "fp" {
			n["fp"]++
			if len(rules) > 0 {
				ok["fp"]++
				fmt.Printf("FP %s %.150q -> %.150q\n", r["id"], r["text"], out)
			}
			continue
		}
		n["tp"]++
		n["tp "+r["id"]]++
		if !strings.Contains(out, r["secret"]) {
			ok["tp"]++
			ok["tp "+r["id"]]++
		} else {
			if bad[r["id"]] == nil {
				bad[r["id"]] = map[string]string{}
			}
			bad[r["id"]][r["text"]] = r["secret"]
		}
	}
	fmt.Println(n["tp"], ok["tp"], n["fp"], ok["fp"])
	for k, m := range bad {
		i := 0
		for text, sec := range m {
			if i < 2 {
				fmt.Printf("HMISS %s %d/%d %.160q secret %.80q\n", k, ok["tp "+k], n["tp "+k], text, sec)
			}
			i++
		}
	}
}

type stock struct{ keys, values []*regexp.Regexp }

func newStock() (s stock) {
	for _, p := range valuePatterns() {
		s.values = append(s.values, regexp.MustCompile(p))
	}
	return s
}
func (s stock) redact(key, text string) string {
	for _, k := range s.keys {
		if k.MatchString(key) {
			return "****"
		}
	}
	for _, v := range s.values {
		if v.MatchString(text) {
			text = v.ReplaceAllString(text, "****")
		}
	}
	return text
}
func TestStock(t *testing.T) {
	s := newStock()
	n, miss := 0, map[string]int{}
	for _, p := range corpus(rand.New(rand.NewPCG(1, 2))) {
		for _, at := range positionsOf(p) {
			key, text := at.put(p)
			if text == "" {
				continue
			}
			n++
			out := s.redact(key, text)
			if p.reads(out) {
				miss["all"]++
				miss["class "+p.class]++
				miss["pos "+at.name]++
				if at.name != "base64" {
					miss["name "+p.name+" "+p.key]++
					if miss["pos "+at.name] < 8 {
						fmt.Printf("%s\n   %.150q\n   %.150q\n", at.name, text, out)
					}
				}
			}
		}
	}
	fmt.Println(n)
	for _, k := range slices.Sorted(maps.Keys(miss)) {
		fmt.Println(k, miss[k])
	}
}
func BenchmarkStock(b *testing.B) {
	s := newStock()
	for i, v := range s.values {
		b.Run(fmt.Sprint(i), func(b *testing.B) {
			for b.Loop() {
				v.MatchString("claude-3-opus-20240229 with some words/and a path, a=1")
			}
		})
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			s.redact("gen_ai.request.model", "claude-3-opus-20240229 with some words/and a path, a=1")
		}
	})
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			Redact("claude-3-opus-20240229 with some words/and a path, a=1")
		}
	})
}
