package slider

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/need"
)

// oldHome is a home with an app that the old store has, and what asks for it.
type oldHome struct {
	home  home
	old   string // the app's folder in the old store
	state status.Dir
	call  *call
}

// oldStored lays an app out as the old store did, with the files of a run that is over.
func oldStored(t *testing.T) oldHome {
	t.Helper()
	top := t.TempDir()
	s := oldHome{home: home(filepath.Join(top, "muster")), state: status.Dir(filepath.Join(top, "state"))}
	s.old = filepath.Join(s.home.oldStore(), "tf1")
	s.call = &call{Streams: console.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, given: map[string][][]string{}}
	r := record{Version: 1, App: "tf1", Definition: "definition/1/package/app", Run: runRecord{StateDir: string(s.state)}}
	work := filepath.Join(s.old, "work")
	for path, text := range map[string]string{
		"definition/1/package/app/metainfo.json": "{}", "run.out": "tf1: stopped", "run.err": "words",
		"work/log/worker-0/stdout.log": "step 1", "work/checkpoint/ckpt-1": "1", "work/.instance-worker-0": "",
		"work/worker-0/own":          "x",
		"work/checkpoint/checkpoint": `model_checkpoint_path: "` + work + `/checkpoint/ckpt-1"` + "\n",
	} {
		write(t, filepath.Join(s.old, path), text)
	}
	if err := r.write(s.old); err != nil {
		t.Fatal(err)
	}
	file := status.AppFile{Version: 1, App: "tf1", Run: "r1", WorkDir: work, LogDir: work + "/log", Started: time.Now()}
	result := status.ResultFile{Version: 1, App: "tf1", Run: "r1", WorkDir: work, LogDir: work + "/log"}
	result.Outcome = "stopped"
	place := status.PlaceFile{Version: 1, Run: "r1", LogDir: work + "/log/worker-0"}
	for path, value := range map[string]any{
		work + "/app.json": file, work + "/result.json": result, s.state.App("tf1") + "/app.json": file,
		s.state.App("tf1") + "/result.json": result, s.state.Place("tf1", "worker-0"): place,
	} {
		if err := status.WriteJSON(path, value); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// tree are the files below a folder.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkMoved holds that the app lies in its work folder, whole, and that nothing names the old one.
func (s oldHome) checkMoved(t *testing.T) {
	t.Helper()
	if got, err := s.home.names(); err != nil || !slices.Contains(got, "tf1") {
		t.Fatalf("names: got %v, %v", got, err)
	}
	a, err := s.home.find(t.Context(), s.call, "tf1")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(string(s.home), "tf1")
	if a.old || a.work() != to || a.record.Definition != "definition/1/package/app" {
		t.Errorf("got %+v", a)
	}
	if diff := cmp.Diff(tree(t, to), []string{
		".instance-worker-0", ".slider/definition/1/package/app/metainfo.json", ".slider/slider.json", "app.json",
		"checkpoint/checkpoint", "checkpoint/ckpt-1", "log/worker-0/stdout.log", "result.json", "run.err", "run.out", "worker-0/own",
	}); diff != "" {
		t.Errorf("-got +want\n%s", diff)
	}
	state, err := os.ReadFile(filepath.Join(to, "checkpoint", "checkpoint"))
	if want := `model_checkpoint_path: "` + to + `/checkpoint/ckpt-1"` + "\n"; string(state) != want {
		t.Errorf("got %s, %v, want %s", state, err, want)
	}
	f, err := a.onHost(t.Context())
	if err != nil || f.Local == nil || f.Local.LogDir != to+"/log" || f.Result == nil || f.Result.WorkDir != to {
		t.Errorf("got %+v, %v", f, err)
	}
	for _, dir := range []string{to, s.state.App("tf1")} {
		for _, path := range tree(t, dir) {
			if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || strings.Contains(string(text), s.old) {
				t.Errorf("%s: %s, %v", path, text, err)
			}
		}
	}
	if _, err := os.Lstat(s.home.oldStore()); err == nil {
		t.Error("the old store is left")
	}
}

func TestOldAppIsMoved(t *testing.T) { oldStored(t).checkMoved(t) }

// An interrupted move goes on, whichever step was its last.
func TestMoveGoesOn(t *testing.T) {
	steps := []func(s oldHome) error{
		func(s oldHome) error { return os.Mkdir(filepath.Join(s.old, "work", keptIn), 0o755) },
		func(s oldHome) error { return s.rename("definition", "work/.slider/definition") },
		func(s oldHome) error { return s.rename("run.out", "work/run.out") },
		func(s oldHome) error { return s.rename("run.err", "work/run.err") },
		func(s oldHome) error {
			a := s.home.inOldStore(s.call, "tf1")
			return errors.Join(a.read(), a.rewritePaths(a.work(), filepath.Join(string(s.home), "tf1")))
		},
		func(s oldHome) error { return s.rename("slider.json", "work/.slider/slider.json") },
		func(s oldHome) error { return s.rename("work", "../../tf1") },
	}
	for n := range steps {
		s := oldStored(t)
		for _, step := range steps[:n+1] {
			if err := step(s); err != nil {
				t.Fatal(err)
			}
		}
		if n == len(steps)-1 { // nothing of it is there but an empty folder, which no command looks at
			if err := errors.Join(os.Remove(s.old), os.Remove(s.home.oldStore())); err != nil {
				t.Fatal(err)
			}
		}
		s.checkMoved(t)
	}
}

func (s oldHome) rename(from, to string) error {
	return os.Rename(filepath.Join(s.old, from), filepath.Join(s.old, to))
}

func TestOldAppThatNeverRanIsMoved(t *testing.T) {
	s := oldStored(t)
	if err := errors.Join(os.RemoveAll(s.old+"/work"), os.RemoveAll(s.state.App("tf1"))); err != nil {
		t.Fatal(err)
	}
	write(t, s.old+"/mine.txt", "mine")
	a, err := s.home.find(t.Context(), s.call, "tf1")
	if err != nil || a.old {
		t.Fatalf("got %+v, %v", a, err)
	}
	if got := tree(t, s.home.oldStore()); cmp.Diff(got, []string{"tf1/mine.txt"}) != "" {
		t.Errorf("left: %v", got)
	}
}

// What is in the way is named, and nothing is replaced or lost.
func TestFilesInTheWay(t *testing.T) {
	for _, path := range []string{"tf1/notes.txt", "tf1", "slider/tf1/work/run.err", "slider/tf1/work/.slider/slider.json"} {
		s := oldStored(t)
		write(t, filepath.Join(string(s.home), path), "somebody's")
		before := len(tree(t, string(s.home)))
		for range 2 { // it stays so
			_, err := s.home.find(t.Context(), s.call, "tf1")
			named := strings.TrimSuffix(filepath.Join(string(s.home), path), "/notes.txt")
			if err == nil || !strings.Contains(err.Error(), named+" is in the way") || exit.CodeOf(err) != exit.Held {
				t.Errorf("%s: got %v", path, err)
			}
		}
		if after := len(tree(t, string(s.home))); after != before {
			t.Errorf("%s: got %d files, want %d", path, after, before)
		}
		if text, err := os.ReadFile(filepath.Join(string(s.home), path)); string(text) != "somebody's" {
			t.Errorf("%s: got %s, %v", path, text, err)
		}
		if err := os.RemoveAll(filepath.Join(string(s.home), strings.TrimSuffix(path, "/notes.txt"))); err != nil {
			t.Fatal(err)
		}
		s.checkMoved(t)
	}
}

// An app of the old store that runs stays where it is, and nothing of it is changed, until its run is over.
func TestOldAppThatRunsStays(t *testing.T) {
	s := oldStored(t)
	result := filepath.Join(s.state.App("tf1"), "result.json")
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var file status.AppFile
	path := filepath.Join(s.state.App("tf1"), "app.json")
	if err := errors.Join(os.Remove(result), status.ReadJSON(path, &file)); err != nil {
		t.Fatal(err)
	}
	file.Pid = os.Getpid()
	if err := status.WriteJSON(path, file); err != nil {
		t.Fatal(err)
	}
	before := tree(t, s.old)
	lock, err := s.home.lock("tf1") // as of a command that waits
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a, err := s.home.find(t.Context(), s.call, "tf1")
		if err != nil || !a.old || a.work() != s.old+"/work" {
			t.Fatalf("got %+v, %v", a, err)
		}
		if err := a.mayChange(); exit.CodeOf(err) != exit.Held {
			t.Errorf("got %v", err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(tree(t, s.old), before); diff != "" {
		t.Errorf("-got +want\n%s", diff)
	}
	if err := os.WriteFile(result, text, 0o644); err != nil {
		t.Fatal(err)
	}
	s.checkMoved(t)
}

// An app whose work folder is a link stays usable where it is, and so does one that runs.
func TestLinkedAppStays(t *testing.T) {
	s := oldStored(t)
	disk := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.Rename(s.old+"/work", disk), os.Symlink(disk, s.old+"/work")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, s.old)
	s.checkStays(t, before)
	path := filepath.Join(s.state.App("tf1"), "app.json")
	var file status.AppFile
	if err := errors.Join(os.Remove(filepath.Join(s.state.App("tf1"), "result.json")), status.ReadJSON(path, &file)); err != nil {
		t.Fatal(err)
	}
	file.Pid = os.Getpid()
	if err := status.WriteJSON(path, file); err != nil {
		t.Fatal(err)
	}
	s.checkStays(t, before)
}

// An app that no rename can move stays usable where it is, whichever of its folders is a mount point.
func TestUnmovableAppStays(t *testing.T) {
	need.Root(t)
	for _, mounted := range []string{"tf1/work", "tf1", ""} {
		done := make(chan struct{})
		go func() { // its thread has the mount, and ends with it
			defer close(done)
			runtime.LockOSThread()
			s := oldStored(t)
			before, at := tree(t, s.old), filepath.Join(s.home.oldStore(), mounted)
			err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
				unix.Mount(at, at, "", unix.MS_BIND, ""))
			if err != nil {
				t.Error(err)
				return
			}
			for range 2 {
				s.checkStays(t, before)
			}
			if err := unix.Unmount(at, 0); err != nil {
				t.Error(err)
				return
			}
			s.checkMoved(t)
		}()
		<-done
	}
}

// checkStays holds that the app is opened where it is and may be changed there.
func (s oldHome) checkStays(t *testing.T, before []string) {
	t.Helper()
	said := s.call.Err.(*bytes.Buffer)
	said.Reset()
	a, err := s.home.find(t.Context(), s.call, "tf1")
	if err != nil || !a.old || a.work() != s.old+"/work" || a.mayChange() != nil {
		t.Errorf("got %+v, %v", a, err)
		return
	}
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "tf1 stays in "+s.old) {
		t.Errorf("said %s", text)
	}
	if diff := cmp.Diff(tree(t, s.old), before); diff != "" {
		t.Errorf("-got +want\n%s", diff)
	}
	for _, dir := range []string{s.old, s.state.App("tf1")} {
		for _, path := range tree(t, dir) {
			if info, err := os.Stat(filepath.Join(dir, path)); err == nil && info.IsDir() { // a link to one
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil || strings.Contains(string(text), filepath.Join(string(s.home), "tf1")) {
				t.Errorf("%s: %s, %v", path, text, err)
			}
		}
	}
}
