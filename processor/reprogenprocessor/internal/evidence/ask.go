package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxAnswer bounds the answer of a page, in bytes, maxAsked how many hangs of it count.
const maxAnswer, maxAsked = 1 << 20, 256

// Ask asks the page at an endpoint which runs hang. tag is that of the last answer: if nothing
// has changed, the same tag is returned, and no hang.
func Ask(ctx context.Context, client *http.Client, endpoint, tag string) (hangs []Hang, newTag string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(endpoint, "/")+"/api/v1/hangs", http.NoBody)
	if err != nil {
		return nil, "", err
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotModified {
		return nil, tag, nil
	}
	if response.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("the answer is %d", response.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&hangs); err != nil {
		return nil, "", fmt.Errorf("the answer is no list of problems of at most 1 MiB: %w", err)
	}
	hangs = slices.DeleteFunc(hangs[:min(len(hangs), maxAsked)], func(h Hang) bool {
		return h.ID == "" || h.Run == "" || !slices.Contains(mlattr.Hangs(), h.Kind)
	})
	for i := range hangs {
		hangs[i].heard()
	}
	return hangs, mlattr.CutText(response.Header.Get("ETag"), maxSentence), nil
}

// heard completes a hang that a page has said. Line breaks would forge parts of the report.
func (h *Hang) heard() {
	kind, _ := mlattr.ProblemNamed(h.Kind)
	h.Text = "Run " + h.Run + " (" + h.Text + "): " + kind.Title
	h.Detected, h.Elsewhere = time.Now(), true
	h.Evidence = mlattr.Mapped(h.Evidence[:min(len(h.Evidence), maxEvidence)], oneLine)
	for _, text := range []*string{&h.ID, &h.Run, &h.Service, &h.Job, &h.Container, &h.Text, &h.Next} {
		*text = oneLine(*text)
	}
}

// oneLine returns the beginning of a text as one line without control characters.
func oneLine(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	return mlattr.CutText(strings.Join(words, " "), maxSentence)
}
