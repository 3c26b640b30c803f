package page

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// document is an answer that is made once and served to all who ask for it.
type document struct {
	contentType string
	plain       []byte
	zip         func() []byte
}

func newDocument(contentType string, plain []byte) *document {
	return &document{contentType: contentType, plain: plain, zip: sync.OnceValue(func() []byte { return compress(plain) })}
}

func jsonDocument(value any) (*document, error) {
	body, err := json.Marshal(value)
	return newDocument("application/json", body), err
}

// serve answers with the document, compressed if the client accepts it. No cache
// keeps the answer.
func (d *document) serve(w http.ResponseWriter, r *http.Request) {
	header, body := w.Header(), d.plain
	header.Set("Content-Type", d.contentType)
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "Accept-Encoding")
	if len(body) > 1024 && acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body = d.zip()
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		// The browser reads data and text as such: nosniff. Reports escape what they
		// show. An error means that the client has gone.
		_, _ = w.Write(body) //nolint:gosec // see above
	}
}

// textForm is a form of the text; the zero value stands for JSON.
type textForm struct {
	width int
	color bool
}

// stateCache keeps the documents of one State, which all readers of an interval
// share.
type stateCache struct {
	mu        sync.Mutex
	state     *api.State
	documents map[textForm]*document
}

// document returns the form of the State, made if nobody has asked for it yet.
func (c *stateCache) document(s *api.State, form textForm, encode func(*api.State) (*document, error)) (*document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != s || c.documents == nil {
		c.state, c.documents = s, make(map[textForm]*document)
	}
	if d := c.documents[form]; d != nil {
		return d, nil
	}
	d, err := encode(s)
	if err != nil {
		return nil, err
	}
	c.documents[form] = d
	return d, nil
}

// maxDetails is how many details are kept.
const maxDetails = 64

// detailCache keeps the documents of runs and traces for the time keep, so that
// the costs of one do not grow with the requests for it.
type detailCache struct {
	keep time.Duration

	mu        sync.Mutex
	since     time.Time
	documents map[string]*document
}

// made returns the document with a name, created if nobody has asked for it yet. It
// is nil if create returns none.
func (c *detailCache) made(name string, create func() (*document, error)) (*document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); len(c.documents) >= maxDetails || now.Sub(c.since) >= c.keep {
		c.since, c.documents = now, make(map[string]*document)
	}
	if d := c.documents[name]; d != nil {
		return d, nil
	}
	d, err := create()
	if err != nil || d == nil {
		return nil, err
	}
	c.documents[name] = d
	return d, nil
}
