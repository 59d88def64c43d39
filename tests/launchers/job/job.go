// Package job has the product write the jobs that tests give to launchers, and has an app for them that saves itself
// when it is stopped. Enters a muster and the words of `muster render`; leaves the job's text, and what its processes
// wrote.
package job

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/servers/tinygang"
)

// watchdog bounds every wait of this package. It only ever ends a test that has gone wrong.
const watchdog = 90 * time.Second

// Render is what `muster render` prints with these words: one job file.
func Render(t testing.TB, muster string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), muster, append([]string{"render"}, words...)...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, bad.String())
	}
	return out.String()
}

// saver is what every instance of a Saver runs, with bash: it tells its life on stdout, saves a step when it is told to
// stop, and ends with the codes that End and Fail ask for.
const saver = `step=${MUSTER_CHECKPOINT##*-}; step=${step:-0}
save() { cd "$MUSTER_CHECKPOINT_DIR"; echo model >.new; mv .new "step-$((step + 1))"; exit 0; }
trap save TERM; trap "exit 0" USR1; trap "exit 75" USR2
echo "life $EPOCHREALTIME $MUSTER_INSTANCE $MUSTER_GENERATION $MUSTER_ATTEMPT $MUSTER_PORT $step"
while :; do sleep 0.1; done`

// Saver lays out an app under dir, of one ps and so many workers, with further settings, and returns the package's
// folder.
func Saver(t testing.TB, dir string, workers int, settings map[string]string) string {
	t.Helper()
	all := map[string]string{
		"muster.command": "exec bash -c '" + saver + "'", "muster.checkpoint.dir": "${AGENT_WORK_ROOT}/saves",
		"muster.checkpoint.pattern": "step-*",
	}
	maps.Copy(all, settings)
	return tinygang.Write(t, dir, workers, all).App
}

// Life is one start of a Saver's process.
type Life struct {
	Instance            string
	Generation, Attempt int
	Port                int
	Step                int // that it goes on from; 0: from the beginning
	at                  float64
}

// Lives are all starts that the logs tell of, in their order; a pattern names the log folders of instances.
func Lives(t testing.TB, pattern string) []Life {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(pattern, "stdout.log"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Life
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "life ") || !strings.HasSuffix(line, "\n") {
				continue
			}
			var l Life
			if _, err := fmt.Sscanf(line, "life %f %s %d %d %d %d", &l.at, &l.Instance, &l.Generation, &l.Attempt,
				&l.Port, &l.Step); err != nil {
				t.Fatalf("%s: %q: %v", path, line, err)
			}
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b Life) int { return cmp.Compare(a.at, b.at) })
	return all
}

// AwaitLives waits until see says yes to Lives. Logs tell nobody of changes: they are read again.
func AwaitLives(t testing.TB, pattern, what string, see func([]Life) bool) []Life {
	t.Helper()
	for ask := Until(t, func() string { return fmt.Sprintf("%s: %+v", what, Lives(t, pattern)) }); ask.Next(); {
		if lives := Lives(t, pattern); see(lives) {
			return lives
		}
	}
	return nil
}

// Of are the lives of one instance.
func Of(lives []Life, instance string) []Life {
	var all []Life
	for _, l := range lives {
		if l.Instance == instance {
			all = append(all, l)
		}
	}
	return all
}

// Gathered are the lives of the newest generation, when that is later than before and has n instances; else none.
func Gathered(all []Life, before, n int) []Life {
	newest := before + 1
	for _, l := range all {
		newest = max(newest, l.Generation)
	}
	var lives []Life
	for _, l := range all {
		if l.Generation == newest {
			lives = append(lives, l)
		}
	}
	if len(lives) < n {
		return nil
	}
	return lives
}

// Asking is something that is asked again and again.
type Asking struct {
	t    testing.TB
	what func() string
	over time.Time
	next *time.Ticker
}

// Until asks until the caller has seen enough, and ends the test when that takes too long; what says what was waited
// for.
func Until(t testing.TB, what func() string) *Asking {
	return &Asking{t: t, what: what, over: time.Now().Add(watchdog)}
}

// Next waits for the time of the next question; the first is at once.
func (a *Asking) Next() bool {
	a.t.Helper()
	if a.next == nil {
		a.next = time.NewTicker(100 * time.Millisecond)
		a.t.Cleanup(a.next.Stop)
		return true
	}
	<-a.next.C
	if time.Now().After(a.over) {
		a.t.Fatalf("not seen within %s: %s", watchdog, a.what())
	}
	return true
}
