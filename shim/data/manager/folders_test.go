package manager

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// The agent makes no folder of this host for a script, whatever the form of its path: it may have rights that the script
// does not have.
func TestAttackFolderOfThisHost(t *testing.T) {
	dir := t.TempDir()
	rest := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := (&Manager{}).WithFolders("/secret", rest)
	for _, form := range []string{"", "file:", "FILE:", "file://", "file://localhost", "/../..", "file:/.."} {
		made := filepath.Join(dir, "made")
		body, err := json.Marshal(wantedFolder{URL: form + made, Mode: "4777"})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/secret"+foldersRoute, strings.NewReader(string(body))))
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "it is on this host") {
			t.Errorf("%s: got %d %s", form, w.Code, w.Body)
		}
		if found, err := filepath.Glob(made); err != nil || len(found) > 0 {
			t.Fatalf("%s: it was made", form)
		}
	}
}
