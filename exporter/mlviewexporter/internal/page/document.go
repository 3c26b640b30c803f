package page

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// encoded is made once for all who ask for it; zip is its compressed form.
type encoded struct {
	plain []byte
	zip   func() []byte
}

func newEncoded(plain []byte, compress func([]byte) []byte) *encoded {
	return &encoded{plain, sync.OnceValue(func() []byte { return compress(plain) })}
}

// document is an answer.
type document struct {
	*encoded
	contentType string
	// tag is the entity tag of the plain form of a file without quotes, empty for an answer that no
	// cache keeps.
	tag string
}

func newDocument(contentType string, plain []byte) *document {
	return &document{encoded: newEncoded(plain, compress), contentType: contentType}
}

func jsonDocument(value any) (*document, error) {
	body, err := json.Marshal(value)
	return newDocument("application/json", body), err
}

// tagBytes is the number of bytes of an entity tag's hash.
const tagBytes = 8

// serve answers with the document, compressed if the client accepts it. A browser keeps a
// file and asks each time whether it changed, so that a page never mixes files of two
// versions.
func (d *document) serve(w http.ResponseWriter, r *http.Request) {
	header, body, tag := w.Header(), d.plain, d.tag
	header.Set("Content-Type", d.contentType)
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "Accept-Encoding")
	if (d.tag != "" || len(body) > 1024) && acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body, tag = d.zip(), tag+"-gzip"
	}
	if d.tag != "" {
		header.Set("Cache-Control", "no-cache")
		header.Set("ETag", `"`+tag+`"`)
	}
	r.Header.Del("Range") // the whole of it is small
	header.Set("Content-Length", strconv.Itoa(len(body)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reports whether the client accepts gzip. One that weighs it against other
// encodings gets none.
func acceptsGzip(r *http.Request) bool {
	return httpguts.HeaderValuesContainsToken(r.Header["Accept-Encoding"], "gzip")
}

func compress(b []byte) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write(b) // A buffer takes everything.
	_ = zip.Close()
	return out.Bytes()
}

// maxDocuments is how many documents a cache keeps.
const maxDocuments = 64

// cache keeps documents by their names for the time keep, so that the costs of one do not
// grow with the requests for it.
type cache struct {
	keep time.Duration

	mu        sync.Mutex
	since     time.Time
	documents map[any]*document
}

// serve answers with the document with a name, created if nobody has asked for it yet. It is
// not found if create returns none.
func (c *cache) serve(w http.ResponseWriter, r *http.Request, name any, create func() (*document, error)) {
	c.mu.Lock()
	if now := time.Now(); len(c.documents) >= maxDocuments || now.Sub(c.since) >= c.keep {
		c.since, c.documents = now, make(map[any]*document)
	}
	made, err := c.documents[name], error(nil)
	if made == nil {
		if made, err = create(); err == nil && made != nil {
			c.documents[name] = made
		}
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		http.Error(w, "The answer cannot be written.", http.StatusInternalServerError)
	case made == nil:
		http.NotFound(w, r)
	default:
		made.serve(w, r)
	}
}

//go:embed assets
var embedded embed.FS

// contentTypes are those of the files. The system's table of types differs between
// machines.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// assets returns the files of the page by name.
var assets = sync.OnceValue(func() map[string]*document {
	files := make(map[string]*document)
	names, _ := fs.Glob(embedded, "assets/*") // The files are in the binary.
	for _, name := range names {
		content, _ := embedded.ReadFile(name)
		ending := path.Ext(name)
		if ending == ".js" {
			content = comments.ReplaceAll(content, nil)
		}
		file := newDocument(contentTypes[ending], content)
		file.tag = mlattr.Digest(tagBytes, string(content))
		files[path.Base(name)] = file
	}
	return files
})

// comments are the lines of a script that are comments: they are for those who change the
// page, and an eighth of it.
var comments = regexp.MustCompile(`(?m)^ *//.*\n`)
