package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// startWeb serves a folder by http and sets WEB to its URL: `web DIR`. Below /torn/ the same files are, each with a
// connection that breaks in the middle the first time. What was asked is kept in DIR.log, a line `METHOD PATH RANGE` each.
func startWeb(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: web DIR")
	}
	dir := ts.MkAbs(args[0])
	w := &web{dir: dir, log: dir + ".log", torn: map[string]bool{}}
	server := httptest.NewServer(w)
	ts.Defer(server.Close)
	ts.Setenv("WEB", server.URL)
}

type web struct {
	dir, log string

	mu   sync.Mutex
	torn map[string]bool
}

func (w *web) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.note(r); err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	name, tear := strings.CutPrefix(r.URL.Path, "/torn")
	text, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
	if err != nil {
		http.NotFound(answer, r)
		return
	}
	answer.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(text)))
	if tear && r.Method == http.MethodGet && !w.torn[name] && len(text) > 1 {
		w.torn[name] = true
		answer.Header().Set("Content-Length", fmt.Sprint(len(text)))
		if _, err := answer.Write(text[:len(text)/2]); err == nil {
			panic(http.ErrAbortHandler) // the connection ends here
		}
	}
	file, err := os.Open(filepath.Join(w.dir, filepath.FromSlash(name)))
	if err != nil {
		http.NotFound(answer, r)
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		http.NotFound(answer, r)
		return
	}
	http.ServeContent(answer, r, name, info.ModTime(), file)
}

func (w *web) note(r *http.Request) error {
	f, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	fmt.Fprintf(f, "%s %s %s\n", r.Method, r.URL.Path, r.Header.Get("Range"))
	return f.Close()
}
