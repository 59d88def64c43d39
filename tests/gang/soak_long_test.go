//go:build long

package gang

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	soakKills = 16
	// soakRelief is how long two kills of one run may take at most: what was killed is back, and a
	// newer checkpoint is there.
	soakRelief = 2 * time.Minute
)

// TestSoakKills trains for real while processes and agents are killed by turns, the next always after a
// newer checkpoint: the run succeeds, learns, starts nothing from zero, and leaves no process.
func TestSoakKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	g := blankGang(t, place{})
	g.dir = "catalog:handwriting"
	g.run = start(t, "muster run", g.environment(), "run", g.dir, "--app-id", g.app, "--work-dir", g.work, "--state-dir", g.state,
		"--set", "site.global.train.steps=1000000", "--set", "site.global.train.pace=0.01")
	victims := []string{"ps-0", "worker-0", "worker-1", "worker-2"}
	for n := range soakKills {
		last := newestCheckpoint(g)
		awaitFor(t, soakRelief, "a checkpoint newer than step "+strconv.Itoa(last), func() bool { return newestCheckpoint(g) > last })
		victim := victims[n%len(victims)]
		if dice.IntN(2) == 0 {
			t.Logf("kill %d: the process of %s after step %d", n, victim, newestCheckpoint(g))
			awaitFor(t, soakRelief, "the process of "+victim, func() bool {
				_, code := g.verb("signal", g.app+"/"+victim, "KILL")
				return code == 0
			})
			continue
		}
		t.Logf("kill %d: the agent of %s after step %d", n, victim, newestCheckpoint(g))
		kill(t, g.agentPid(victim), syscall.SIGKILL)
	}
	last := newestCheckpoint(g)
	awaitFor(t, soakRelief, "training after the last kill", func() bool { return newestCheckpoint(g) > last })
	if _, code := g.verb("stop", g.app); code != 0 {
		t.Errorf("muster stop: exit code %d", code)
	}
	if code := g.run.waitFor(soakRelief); code != 0 {
		t.Errorf("muster run: exit code %d, want 0 for a run that was stopped", code)
	}
	for _, in := range victims {
		starts := bytes.Count([]byte(read(g.log(in, "stdout.log"))), []byte("starting at step 0"))
		if starts > 1 {
			t.Errorf("%s started from zero %d times", in, starts)
		}
	}
	if left := processesOf(g.work); len(left) > 0 {
		t.Errorf("still there after the end: %v", left)
	}
}

// newestCheckpoint is the step of the newest checkpoint in the shared folder; 0 without one.
func newestCheckpoint(g *gang) int {
	names, err := filepath.Glob(filepath.Join(g.work, "checkpoint", "ckpt-*.json"))
	if err != nil {
		g.t.Fatal(err)
	}
	newest := 0
	for _, name := range names {
		if m := regexp.MustCompile(`ckpt-(\d+)\.json$`).FindStringSubmatch(name); m != nil {
			step, err := strconv.Atoi(m[1])
			if err != nil {
				g.t.Fatal(err)
			}
			newest = max(newest, step)
		}
	}
	return newest
}

// processesOf lists the command lines that name a folder.
func processesOf(folder string) []string {
	var found []string
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline") // only a bad pattern is an error
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte(folder)) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}
