package submit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/packages/fetch"
)

// bring has a run bring files with these contents.
func bring(ctx context.Context, s *Store, dir, run string, contents ...string) (names []string, err error) {
	var objects []Object
	for i, content := range contents {
		file := filepath.Join(dir, fmt.Sprintf("%s-%d", run, i))
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return nil, err
		}
		o := Object{Name: "a.zip", File: file, Executable: true}
		name, err := NameOf(ctx, o)
		if err != nil {
			return nil, err
		}
		objects, names = append(objects, o), append(names, name)
	}
	if err := s.Hold(ctx, Mark{App: "app", Run: run, Objects: names, At: time.Unix(1, 0)}); err != nil {
		return nil, err
	}
	for i, o := range objects {
		if _, err := s.Put(ctx, names[i], o); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func TestWhatOthersUseStays(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "store")
	s, err := Open(ctx, "file://"+root, fetch.Options{})
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
	if one[0] != two[0] || !strings.HasPrefix(one[0], sum("shared")+"-") {
		t.Errorf("got %s and %s, want one name by the digest", one[0], two[0])
	}
	if info, err := os.Stat(s.Path(one[0])); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v, want a program for all", info, err)
	}
	if err := s.Release(ctx, "app", "1"); err != nil {
		t.Fatal(err)
	}
	if got := files(t, root); !slices.Equal(got, []string{"objects/" + two[0], "runs/app@2.json"}) {
		t.Errorf("after the first left: %v", got)
	}
	for range 2 { // a second time is no error
		if err := s.Release(ctx, "app", "2"); err != nil {
			t.Fatal(err)
		}
	}
	if got := files(t, root); len(got) != 0 {
		t.Errorf("after both left: %v", got)
	}
}

// Runs that come and go at once each find their file from when it was put to their end, at every moment.
func TestRunsComeAndGoAtOnce(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "store")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := Open(ctx, root, fetch.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			for j := range 20 {
				run := fmt.Sprintf("%d-%d", i, j)
				names, err := bring(ctx, s, dir, run, "shared")
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 {
					if text, err := os.ReadFile(s.Path(names[0])); err != nil || string(text) != "shared" {
						t.Errorf("run %s: got %q, %v", run, text, err)
					}
				}
				if err := s.Release(ctx, "app", run); err != nil {
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

// Whoever finds that a file is being taken away waits for that, and brings it anew.
func TestAFileThatIsBeingTakenAway(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), t.TempDir()
	s, err := Open(ctx, root, fetch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names, err := bring(ctx, s, dir, "1", "shared")
	if err != nil {
		t.Fatal(err)
	}
	announced := filepath.Join(root, "objects", going+sum("shared")+"-"+rand.Text())
	if err := os.WriteFile(announced, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := bring(ctx, s, dir, "2", "shared")
		done <- err
	}()
	mark := filepath.Join(root, "runs", "app@2.json")
	for dog := time.Now().Add(30 * time.Second); ; { // once it has marked it, it may look
		if _, err := os.Stat(mark); err == nil {
			break
		}
		if time.Now().After(dog) {
			t.Fatal("no mark came")
		}
	}
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	if err := errors.Join(os.Remove(s.Path(names[0])), os.Remove(announced)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(s.Path(names[0])); err != nil || string(text) != "shared" {
		t.Errorf("got %q, %v, want it brought anew", text, err)
	}
}

// What clients that died have left goes a day later; nothing else does.
func TestSweep(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), t.TempDir()
	s, err := Open(ctx, root, fetch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names, err := bring(ctx, s, dir, "1", "used")
	if err != nil {
		t.Fatal(err)
	}
	old, keep := []string{
		"objects/." + names[0] + ".new-" + rand.Text(), "objects/" + going + sum("x") + "-" + rand.Text(), "objects/" + sum("x") + "-muster",
		"runs/.app@9.json.new-" + rand.Text(),
	}, []string{"objects/README", "objects/.hidden", "runs/notes", "objects/" + names[0], "runs/app@1.json"}
	young := "objects/" + sum("y") + "-muster"
	for _, name := range slices.Concat(old, keep, []string{young}) {
		f, err := os.OpenFile(filepath.Join(root, name), os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if at := time.Now().Add(-abandoned - time.Hour); name != young {
			if err := os.Chtimes(filepath.Join(root, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	want := append(keep, young)
	slices.Sort(want)
	if got := files(t, root); !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}

// watched is a store that counts what is announced in it.
type watched struct {
	fetch.Store
	announced []string
}

func (w *watched) Create(ctx context.Context, at string) (io.WriteCloser, error) {
	w.announced = append(w.announced, filepath.Base(at))
	return w.Store.Create(ctx, at)
}

// Whoever brings a file waits while it is announced to go: one that is in use is not, neither by a sweep nor by a run that ends. Of
// very many that nobody uses a sweep takes a part.
func TestWhatIsInUseIsNotAnnounced(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), t.TempDir()
	s, err := Open(ctx, root, fetch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bring(ctx, s, dir, "1", "shared"); err != nil {
		t.Fatal(err)
	}
	names, err := bring(ctx, s, dir, "2", "shared", "own")
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Store: s.in}
	s.in = w
	at := time.Now().Add(-abandoned - time.Hour)
	if err := os.Chtimes(s.Path(names[0]), at, at); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(ctx); err != nil || len(w.announced) != 0 {
		t.Errorf("sweep: got %v, announced %v, want nothing", err, w.announced)
	}
	if err := s.Release(ctx, "app", "2"); err != nil || len(w.announced) != 1 || !strings.HasPrefix(w.announced[0], going+sum("own")) {
		t.Errorf("release: got %v, announced %v, want what it alone used", err, w.announced)
	}
	for i := range mostDropped + 10 {
		file := filepath.Join(root, "objects", sum(fmt.Sprint(i))+"-old")
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range []int{10, 0} {
		if err := s.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if got := files(t, root); len(got) != left+2 { // and run 1's
			t.Errorf("left are %d, want %d: %v", len(got), left+2, got)
		}
	}
}

// A mark is a file that others may write: what it names outside of the store is nobody's to take away.
func TestMarksNameNothingElse(t *testing.T) {
	ctx, root := t.Context(), t.TempDir()
	s, err := Open(ctx, root, fetch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(root, "kept")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Hold(ctx, Mark{App: "app", Run: "1", Objects: []string{"../kept", "", "..", sum("x") + "-../../kept"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(ctx, "app", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// What has the right name and size and other bytes is brought anew: it would be run.
func TestWhatIsNotRightIsBroughtAnew(t *testing.T) {
	ctx, dir, root := t.Context(), t.TempDir(), t.TempDir()
	s, err := Open(ctx, root, fetch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, there := range []string{"mustes", "must", "muster"} {
		file := filepath.Join(root, "objects", sum("muster")+"-a.zip")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(there), 0o600)); err != nil {
			t.Fatal(err)
		}
		was, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bring(ctx, s, dir, "1", "muster"); err != nil {
			t.Fatal(err)
		}
		now, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "muster" || os.SameFile(was, now) != (there == "muster") {
			t.Errorf("over %q: got %q, %v, the same file: %v", there, text, err, os.SameFile(was, now))
		}
	}
}

func TestStores(t *testing.T) {
	for _, tt := range []struct{ url, as, object, path string }{
		{"/srv/m/", "", "file:///srv/m/objects/o", "/srv/m/objects/o"},
		{"file:/srv/m", "", "file:///srv/m/objects/o", "/srv/m/objects/o"},
		{"/srv/m", "/mnt/m", "file:///mnt/m/objects/o", "/mnt/m/objects/o"},
		{"/srv/m", "https://web/m/", "https://web/m/objects/o", ""},
	} {
		s, err := Open(t.Context(), tt.url, fetch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if tt.as != "" {
			s.SeenAs(tt.as)
		}
		path := ""
		if s.Local() {
			path = s.Path("o")
		}
		if got := s.URL("o"); got != tt.object || path != tt.path || s.Web() != (tt.path == "") {
			t.Errorf("%s as %s: got %s, %s, want %s, %s", tt.url, tt.as, got, path, tt.object, tt.path)
		}
	}
	if _, err := Open(t.Context(), "https://web/m", fetch.Options{}); !errors.Is(err, ErrReadOnly) {
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
