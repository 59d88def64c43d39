package submit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// Records lie where others may write: only this submission's registry is asked, for each app once, our own not at all, and one
// that does not answer is not asked again.
func TestWhoIsAskedForRecords(t *testing.T) {
	there, err := registry.ParseAddress("consul://consul:8500")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		address registry.Address
		before  error
		asked   []string
		left    []string
	}{
		{"another registry", registry.SocketAddress("/elsewhere"), registry.ErrNoApp, nil, []string{"d1@r1", "d2@r1", "d2@r2"}},
		{"ours", there, registry.ErrNoApp, []string{"d2"}, []string{"d2@r1", "d2@r2"}}, // nobody has heard of our own app
		{"ours, which does not answer", there, os.ErrDeadlineExceeded, nil, []string{"d1@r1", "d2@r1", "d2@r2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			store, err := openStore(t.Context(), root, schemes.Local())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []record{{App: "d1", Run: "r1"}, {App: "d2", Run: "r1"}, {App: "d2", Run: "r2"}} {
				r.Registry, r.At = there, time.Now().Add(-2*keptUnheard)
				if err := store.Folder(r.App, r.Run).Begin(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			answers := &puppetRegistry{silent: true}
			o := &Options{Registry: answers}
			o.File.AppID, o.File.Run, o.File.Registry = "d1", "r2", tt.address
			s := &submission{Options: o, artifacts: &artifacts{store: store}, before: standing{err: tt.before}}
			s.tidy(t.Context(), func(line string) { t.Log(line) })
			if !slices.Equal(answers.asked, tt.asked) {
				t.Errorf("asked for %v, want %v", answers.asked, tt.asked)
			}
			var left []string
			entries, err := os.ReadDir(root)
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if err != nil || !slices.Equal(left, tt.left) {
				t.Errorf("left are %v, %v, want %v", left, err, tt.left)
			}
		})
	}
}

func TestRunsThatAreOver(t *testing.T) {
	old := time.Now().Add(-2 * keptUnheard)
	status := func(run string, live int, verdict *registry.Verdict) standing {
		s := standing{st: consul.Status{Live: live, Verdict: verdict}}
		s.st.App.Run, s.st.App.Created = run, time.Now()
		return s
	}
	ended := func(ago time.Duration) *registry.Verdict { return &registry.Verdict{At: time.Now().Add(-ago)} }
	for _, tt := range []struct {
		name string
		at   standing
		old  bool
		want bool
	}{
		{"unheard of", standing{err: registry.ErrNoApp}, false, false},
		{"unheard of for long", standing{err: registry.ErrNoApp}, true, true},
		{"no answer", standing{err: os.ErrDeadlineExceeded}, true, false},
		{"in a queue, after an earlier run", status("r0", 0, ended(time.Hour)), false, false},
		{"in a queue, while a later one runs", status("r2", 3, nil), false, false},
		{"never begun", status("r0", 0, ended(time.Hour)), true, true},
		{"runs", status("r1", 3, nil), true, false},
		{"interrupted", status("r1", 0, nil), false, false},
		{"interrupted, and never went on", status("r1-2", 0, nil), true, true},
		{"ended just now", status("r1", 0, ended(time.Second)), true, false},
		{"ended", status("r1", 0, ended(2*keptAfterVerdict)), false, true},
		{"ended, as the launcher's third", status("r1-2", 0, ended(2*keptAfterVerdict)), false, true},
		{"ended, and an agent is left", status("r1", 1, ended(2*keptAfterVerdict)), false, false},
		{"another's that begins alike", status("r1-b", 0, ended(2*keptAfterVerdict)), false, false},
	} {
		r := record{App: "d1", Run: "r1", At: time.Now()}
		if tt.old {
			r.At = old
		}
		if got := tt.at.over(r); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A run's verdict is asked for also when the app has gone on to another run, and of a job that was started again it is the newest one's.
func TestRunsThatOthersFollowed(t *testing.T) {
	old := time.Now().Add(-2 * keptAfterVerdict)
	done := registry.Verdict{Outcome: registry.Succeeded, At: old}
	held := registry.Verdict{Outcome: registry.Failed, Class: registry.ClassHost, At: old}
	if exit.Of(held, "") != exit.Held {
		t.Fatalf("got %d for what asks for another try", exit.Of(held, ""))
	}
	s := &submission{Options: &Options{Registry: &puppetRegistry{verdicts: map[string]registry.Verdict{
		"r1": done, "r2": {Outcome: registry.Succeeded, At: time.Now()}, "r3": held, "r4-0": held, "r4-1": done,
	}}}}
	for _, tt := range []struct {
		run, launcher, now string
		want               bool
	}{
		{"r1", "yarn", "r9", true},
		{"r1", "yarn", "r1", false}, // it is the app's own standing that tells
		{"r2", "yarn", "r9", false},
		{"r3", "yarn", "r9", true},
		{"r3", "slurm", "r9", false},
		{"r4", "k8s", "r9", true},
		{"r5", "yarn", "r9", false},
	} {
		var at standing
		at.st.App.Run = tt.now
		r := record{App: "d1", Run: tt.run, Launcher: tt.launcher, At: time.Now()}
		if got := s.followed(t.Context(), at, r); got != tt.want {
			t.Errorf("%s by %s, while %s is the app's: got %v, want %v", tt.run, tt.launcher, tt.now, got, tt.want)
		}
	}
	if s.followed(t.Context(), standing{err: os.ErrDeadlineExceeded}, record{App: "d1", Run: "r1"}) {
		t.Error("over, of a registry that does not answer")
	}
}

func TestRunsOfAJob(t *testing.T) {
	for run, want := range map[string]bool{"a": true, "a-0": true, "a-12": true, "a-": false, "a-b": false, "a-1-1": false, "ab": false, "b": false} {
		if got := IsRunOf(run, "a"); got != want {
			t.Errorf("%s of a: got %v, want %v", run, got, want)
		}
	}
}

// An app that is forgotten takes its own runs' folders along, and nobody else's of that name.
func TestRemoveRuns(t *testing.T) {
	ours, others := registry.SocketAddress("/ours"), registry.SocketAddress("/others")
	root := t.TempDir()
	s, err := openStore(t.Context(), root, schemes.Local())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []record{
		{App: "d1", Run: "1", Registry: ours},
		{App: "d1", Run: "2", Registry: ours},
		{App: "d1", Run: "3", Registry: others},
		{App: "d2", Run: "1", Registry: ours},
	} {
		if err := s.Folder(r.App, r.Run).Begin(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	err = RemoveRuns(t.Context(), root, schemes.Local(), "d1", ours)
	left, _ := filepath.Glob(filepath.Join(root, "*"))
	if want := []string{root + "/d1@3", root + "/d2@1"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v; want %v", left, err, want)
	}
}
