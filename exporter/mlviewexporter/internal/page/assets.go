package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"sync"
)

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
	entries, err := embedded.ReadDir("assets")
	if err != nil {
		panic(err) // The files are in the binary.
	}
	for _, entry := range entries {
		content, err := embedded.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err) // The files are in the binary.
		}
		ending := path.Ext(entry.Name())
		if ending == ".js" {
			content = withoutComments(content)
		}
		sum := sha256.Sum256(content)
		file := newDocument(contentTypes[ending], content)
		file.tag = hex.EncodeToString(sum[:8])
		files[entry.Name()] = file
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

func serveAsset(w http.ResponseWriter, r *http.Request) {
	file, ok := assets()[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	file.serve(w, r)
}
