package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets
var embedded embed.FS

// asset is a file of the page with its compressed form.
type asset struct {
	contentType string
	plain, zip  []byte
	// tag is the entity tag of the plain form without quotes.
	tag string
}

// assets returns the files of the page by name.
var assets = sync.OnceValue(func() map[string]asset {
	files := make(map[string]asset)
	entries, err := embedded.ReadDir("assets")
	if err != nil {
		panic(err) // The files are in the binary.
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(embedded, "assets/"+entry.Name())
		if err != nil {
			panic(err) // The files are in the binary.
		}
		if path.Ext(entry.Name()) == ".js" {
			content = withoutComments(content)
		}
		sum := sha256.Sum256(content)
		files[entry.Name()] = asset{
			contentType: contentType(entry.Name()),
			plain:       content,
			zip:         compress(content),
			tag:         hex.EncodeToString(sum[:8]),
		}
	}
	return files
})

// withoutComments removes the lines of a script that are comments: they are for those
// who change the page, and an eighth of it.
func withoutComments(script []byte) []byte {
	short := make([]byte, 0, len(script))
	for line := range bytes.Lines(script) {
		if !bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("//")) {
			short = append(short, line...)
		}
	}
	return short
}

// contentType does not ask the system's table of types, which differs between
// machines.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "text/plain; charset=utf-8"
	}
}

func serveIndex(w http.ResponseWriter, r *http.Request) { writeAsset(w, r, assets()["index.html"]) }

func serveAsset(w http.ResponseWriter, r *http.Request) {
	file, ok := assets()[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	writeAsset(w, r, file)
}

// writeAsset lets a browser keep the file and ask each time whether it changed,
// so that a page never mixes files of two versions.
func writeAsset(w http.ResponseWriter, r *http.Request, file asset) {
	body, tag := file.plain, `"`+file.tag+`"`
	header := w.Header()
	if acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body, tag = file.zip, `"`+file.tag+`-gzip"`
	}
	header.Set("Content-Type", file.contentType)
	header.Set("Cache-Control", "no-cache")
	header.Add("Vary", "Accept-Encoding")
	header.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // The client has gone; nobody else wants to know.
	}
}

// acceptsGzip reports whether the client accepts gzip.
func acceptsGzip(r *http.Request) bool {
	for encoding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, params, err := mime.ParseMediaType(encoding)
		if err == nil && name == "gzip" {
			q, err := strconv.ParseFloat(params["q"], 64)
			return params["q"] == "" || err == nil && q > 0
		}
	}
	return false
}

func compress(b []byte) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write(b) // A buffer takes everything.
	_ = zip.Close()
	return out.Bytes()
}
