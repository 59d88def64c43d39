package transfer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/web"
	"github.com/muster-agent/muster/tests/folder"
)

// What is secret in a URL is in no error, in nothing that is told, and not in the ledger on disk.
func TestSecretsOfURLsAreNotTold(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "a", time.Unix(1, 0), strings.NewReader("content"))
	}))
	defer server.Close()
	opened, at, err := web.Open(t.Context(), strings.Replace(server.URL, "//", "//ada:SECRET@", 1)+"/a?sig=SECRET")
	if err != nil {
		t.Fatal(err)
	}
	info, err := opened.Stat(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	dir, told := t.TempDir(), ""
	ledger, err := OpenLedger(folder.Root(t, dir), "ledger")
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	files := func(version string) []Copy {
		return []Copy{{File{Store: opened, Path: at, Version: version}, "x"}}
	}
	how := Transfer{Ledger: ledger, Retries: 1, Again: func(file, why string) { told += file + ": " + why }}
	how.Moved = func(file string, _ int64) { told += file }
	if err := how.Bring(t.Context(), folder.Root(t, dir), files(info.Validator)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "ledger"))
	if err != nil || len(text) == 0 {
		t.Fatalf("the ledger is empty: %v", err)
	}
	broken := &brittle{Store: opened, breaks: 9, err: errCut}
	err = how.Bring(t.Context(), folder.Root(t, dir), []Copy{{File{Store: broken, Path: at, URL: opened.(store.Located).URL(at)}, "y"}})
	server.Close()
	lost := how.Bring(t.Context(), folder.Root(t, dir), files("another"))
	if err == nil || lost == nil || !strings.Contains(lost.Error(), "/a?…") || !strings.Contains(lost.Error(), "ada:xxxxx@") {
		t.Errorf("got %v, %v, want what could not be copied", err, lost)
	}
	for what, text := range map[string]string{"told": told, "error": fmt.Sprint(err, lost), "ledger": string(text)} {
		if text == "" || strings.Contains(text, "SECRET") {
			t.Errorf("%s: %s", what, text)
		}
	}
}
