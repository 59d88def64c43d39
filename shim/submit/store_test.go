package submit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/muster-agent/muster/shim/store/schemes"
)

// bring has a run bring files with these contents.
func bring(ctx context.Context, s *runStore, dir, run string, contents ...string) (a *artifacts, err error) {
	a = &artifacts{store: s, folder: s.Folder("app", run)}
	for i, content := range contents {
		file := artifact{Name: "a.zip", Path: filepath.Join(dir, fmt.Sprintf("%s-%d", run, i)), Executable: true}
		if err := os.WriteFile(file.Path, []byte(content), 0o600); err != nil {
			return nil, err
		}
		name, err := nameOf(ctx, file)
		if err != nil {
			return nil, err
		}
		a.files, a.names = append(a.files, file), append(a.names, name)
	}
	return a, a.bring(ctx, record{App: "app", Run: run})
}

// Each run has a folder of its own, which goes as a whole.
func TestARunHasItsFolder(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "store")
	s, err := openStore(ctx, "file://"+root, schemes.Local())
	if err != nil {
		t.Fatal(err)
	}
	one, err := bring(ctx, s, dir, "1", "shared", "own")
	if err != nil {
		t.Fatal(err)
	}
	two, err := bring(ctx, s, dir, "2", "shared")
	if err != nil {
		t.Fatal(err)
	}
	if one.names[0] != two.names[0] || !strings.HasPrefix(one.names[0], sum("shared")+"-") {
		t.Errorf("got %s and %s, want one name by the digest", one.names[0], two.names[0])
	}
	if info, err := os.Stat(one.folder.Path(one.names[0])); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v, want a program for all", info, err)
	}
	records, err := s.Records(ctx)
	if err != nil || len(records) != 2 || records[0].Run != "1" || records[1].Run != "2" {
		t.Errorf("got %v, %v, want a record of each", records, err)
	}
	if err := one.remove(ctx); err != nil {
		t.Fatal(err)
	}
	if got := files(t, root); !slices.Equal(got, []string{"app@2/" + two.names[0], "app@2/run.json"}) {
		t.Errorf("after the first left: %v", got)
	}
	for range 2 { // a second time is no error
		if err := two.remove(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadDir(root); err != nil || len(got) != 0 {
		t.Errorf("after both left: %v, %v", got, err)
	}
}

// Runs that come and go at once each find their file from when it was put to their end, at every moment.
func TestRunsComeAndGoAtOnce(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "store")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := openStore(ctx, root, schemes.Local())
			if err != nil {
				t.Error(err)
				return
			}
			for j := range 20 {
				run := fmt.Sprintf("%d-%d", i, j)
				a, err := bring(ctx, s, dir, run, "shared")
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 {
					if text, err := os.ReadFile(a.folder.Path(a.names[0])); err != nil || string(text) != "shared" {
						t.Errorf("run %s: got %q, %v", run, text, err)
					}
				}
				if _, err := s.Records(ctx); err != nil {
					t.Error(err)
				}
				if err := a.remove(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := files(t, root); len(got) != 0 {
		t.Errorf("left are %v", got)
	}
}

// The same run submitted again replaces its files once its job is started, and leaves them where it is not.
func TestTheSameRunAgain(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), t.TempDir()
	s, err := openStore(ctx, root, schemes.Local())
	if err != nil {
		t.Fatal(err)
	}
	first, err := bring(ctx, s, dir, "1", "same", "old")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.replace(ctx); err != nil {
		t.Fatal(err)
	}
	again := func() *artifacts {
		t.Helper()
		a, err := bring(ctx, s, dir, "1", "same", "new")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	there := func(contents ...string) {
		t.Helper()
		want := []string{"app@1/run.json"}
		for _, content := range contents {
			want = append(want, "app@1/"+sum(content)+"-a.zip")
		}
		slices.Sort(want)
		if got := files(t, root); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if err := again().takeBack(ctx); err != nil {
		t.Fatal(err)
	}
	there("same", "old")
	if err := again().replace(ctx); err != nil {
		t.Fatal(err)
	}
	there("same", "new")
}

// Others may write into the store: what lies there under the file's name is brought anew, and what is no run's folder is no run's.
func TestWhatOthersWrite(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), t.TempDir()
	s, err := openStore(ctx, root, schemes.Local())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "app@1", sum("muster")+"-a.zip")
	for name, text := range map[string]string{
		file: "mustes", filepath.Join(root, "app@2", "run.json"): `{"app":"other","run":"2"}`, filepath.Join(root, "a@b@c", "run.json"): `{}`,
		filepath.Join(root, "runs", "app@3.json"): `{"app":"app","run":"3"}`, filepath.Join(root, "app@4", "run.json"): "oops",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if records, err := s.Records(ctx); err != nil || len(records) != 0 {
		t.Errorf("got %v, %v, want no record", records, err)
	}
	if _, err := bring(ctx, s, dir, "1", "muster"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "muster" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestStores(t *testing.T) {
	for _, tt := range []struct{ url, as, file, path string }{
		{"/srv/m/", "", "file:///srv/m/a@1/o", "/srv/m/a@1/o"},
		{"file:/srv/m", "", "file:///srv/m/a@1/o", "/srv/m/a@1/o"},
		{"/srv/m", "/mnt/m", "file:///mnt/m/a@1/o", "/mnt/m/a@1/o"},
		{"/srv/m", "https://web/m/", "https://web/m/a@1/o", ""},
	} {
		s, err := openStore(t.Context(), tt.url, schemes.Local())
		if err != nil {
			t.Fatal(err)
		}
		if tt.as != "" {
			s.SeenAs(tt.as)
		}
		path, folder := "", s.Folder("a", "1")
		if s.Local() {
			path = folder.Path("o")
		}
		if got := folder.URL("o"); got != tt.file || path != tt.path || s.Web() != (tt.path == "") {
			t.Errorf("%s as %s: got %s, %s, want %s, %s", tt.url, tt.as, got, path, tt.file, tt.path)
		}
	}
	if _, err := openStore(t.Context(), "https://web/m", schemes.Local()); !errors.Is(err, errReadOnly) {
		t.Errorf("a web server: got %v", err)
	}
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func files(t *testing.T, root string) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
