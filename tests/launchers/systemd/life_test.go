package systemd_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/systemdmachine"
	"github.com/muster-agent/muster/tests/servers/tinygang"
)

// machine is the one that all subtests share: each has a gang of its own there.
type machine struct {
	host
	*systemdmachine.Machine
	registry string
	// short is the time-out of a start and of a stop, in seconds, which the wait for the gang and a checkpoint outlast.
	short int
	// watch is WatchdogSec.
	watch int
}

// with is the machine for a subtest.
func (m machine) with(t *testing.T) machine {
	m.host.t = t
	return m
}

// TestSystemd has one machine; what takes the manager's own time goes on beside the rest.
func TestSystemd(t *testing.T) {
	t.Parallel()
	m := machine{short: 5, watch: 20}
	if os.Getenv("MUSTER_MACHINE") == emulated {
		m.host, m.Machine, m.registry = inThis(t), systemdmachine.This(t), serve(t)
		m.short, m.watch = 20, 90
		if err := os.Symlink(muster, rendered); err != nil {
			t.Fatal(err)
		}
	} else {
		m.host, m.Machine = inMachine(t, withMuster())
		m.registry = consulserver.Start(t, consulserver.Options{}).URL()
	}
	hung := m.hang()
	t.Run("Life", func(t *testing.T) { m.with(t).life(t) })
	t.Run("Failure", func(t *testing.T) { m.with(t).failure(t) })
	t.Run("Privileged", func(t *testing.T) { m.with(t).privileged(t) })
	t.Run("Watchdog", func(t *testing.T) { m.with(t).watchdog(t, hung) })
}

// life is that of a gang whose units are the rendered ones.
func (m machine) life(t *testing.T) {
	g := m.lay("life", 2, m.registry, map[string]string{"muster.env.SLOW": strconv.Itoa(m.short + 3)})
	ps, one, other := g.unit("ps-0"), g.unit("worker-0"), g.unit("worker-1")
	m.run("systemd-analyze", "verify", "--man=no", filepath.Join(m.units, g.target), filepath.Join(m.units, ps), filepath.Join(m.units, other))
	if score := m.exposure(ps); score > 4 {
		t.Errorf("exposure of the unprivileged template: got %.1f, want at most 4.0", score)
	}
	g.dropIn("ps-0", fmt.Sprintf("TimeoutStartSec=%d", m.short))    // systemd's own would be over long before the gang is whole
	g.dropIn("worker-1", fmt.Sprintf("TimeoutStopSec=%d", m.short)) // and before its checkpoint is

	begun := time.Now()
	m.run("systemctl", "start", "--no-block", ps, one)
	saysMissing := func(p systemdmachine.Properties) bool {
		return strings.HasPrefix(p["StatusText"], "ps-0 waiting: ") && strings.Contains(p["StatusText"], "missing worker-1")
	}
	m.Await(ps, "who is missing", saysMissing)
	<-time.After(time.Until(begun.Add(time.Duration(m.short+2) * time.Second))) // what is shown is that time passes and nothing happens
	for _, unit := range []string{ps, one} {
		if p := m.Show(unit); p["ActiveState"] != "activating" || p["NRestarts"] != "0" {
			t.Fatalf("%s without its peer: it is %s after %s restarts, %q, want activating", unit, p["ActiveState"], p["NRestarts"], p["StatusText"])
		}
	}
	if len(g.Starts(t)) > 0 {
		t.Fatalf("got starts %v before the gang is whole", g.Starts(t))
	}
	m.run("systemctl", "start", g.target)
	for _, unit := range []string{ps, one, other} {
		m.Await(unit, "ready, and running", func(p systemdmachine.Properties) bool {
			return p["ActiveState"] == "active" && strings.Contains(p["StatusText"], " running: generation 1")
		})
	}

	awaitStarts(t, g, "ps-0 1 1 none", "worker-0 1 1 none", "worker-1 1 1 none")

	m.Signal(one, "main", "SIGKILL")
	m.Await(one, "a restart by systemd", func(p systemdmachine.Properties) bool {
		return p["NRestarts"] == "1" && p["ActiveState"] == "active" && strings.Contains(p["StatusText"], "running")
	})
	awaitStarts(t, g, "ps-0 1 1 none", "worker-0 1 1 none", "worker-0 1 2 none", "worker-1 1 1 none")

	m.run("systemctl", "stop", g.target)
	for _, unit := range []string{ps, one, other} {
		if p := m.Show(unit); p["ActiveState"] != "inactive" || len(m.Processes(unit)) > 0 {
			t.Errorf("%s after the target was stopped: %s, with processes %v", unit, p["ActiveState"], m.Processes(unit))
		}
		if said := m.Journal(unit); !strings.Contains(said, "Deactivated successfully") || strings.Contains(said, "timed out") {
			t.Errorf("%s did not stop in order:\n%s", unit, said)
		}
	}
	for instance, step := range map[string]string{"ps-0": "step-1", "worker-0": "step-2", "worker-1": "step-1"} {
		if text, err := os.ReadFile(filepath.Join(g.Dir, instance, step)); err != nil || string(text) != instance+"\n" {
			t.Errorf("checkpoint %s of %s: got %q, %v", step, instance, text, err)
		}
	}

	m.run("systemctl", "start", g.target, ps) // of a unit it waits for READY
	awaitLast(t, g, map[string]int{"ps-0": 1, "worker-0": 2, "worker-1": 1})
	g.Go(t, 0)
	for _, unit := range []string{ps, one, other} {
		p := m.AwaitState(unit, "inactive")
		if p["Result"] != "success" || !strings.HasPrefix(p["StatusText"], "succeeded: ") || len(m.Processes(unit)) > 0 {
			t.Errorf("%s after the end: %s, %q, with processes %v", unit, p["Result"], p["StatusText"], m.Processes(unit))
		}
	}

	m.run("systemctl", "start", one) // the run is over: there is nothing left to do
	if said := m.Journal(one); !strings.Contains(said, "run 1 is over: succeeded") {
		t.Errorf("started after the verdict it does not say so:\n%s", said)
	}
	wantNeverTwo(t, g)
}

// failure is one that no restart mends: systemd leaves it alone.
func (m machine) failure(t *testing.T) {
	g := m.lay("failure", 1, m.registry, map[string]string{"muster.restart": "never"})
	m.run("systemctl", "start", g.target, g.unit("worker-0"))
	g.Go(t, 3)
	for _, instance := range []string{"ps-0", "worker-0"} {
		p := m.AwaitState(g.unit(instance), "failed")
		if p["ExecMainStatus"] != "93" || p["NRestarts"] != "0" || !strings.HasPrefix(p["StatusText"], "failed (app-error): ") {
			t.Errorf("%s: exit %s after %s restarts, %q, want 93 at once", instance, p["ExecMainStatus"], p["NRestarts"], p["StatusText"])
		}
	}
}

// privileged is the other template, whose agents make containers.
func (m machine) privileged(t *testing.T) {
	g := m.lay("root", 1, m.registry, nil, "--privileged")
	worker := g.unit("worker-0")
	t.Logf("exposure of the privileged template: %.1f", m.exposure(worker))
	m.run("systemctl", "start", g.target, worker)
	awaitStarts(t, g, "ps-0 1 1 none", "worker-0 1 1 none")
	m.Signal(worker, "main", "SIGKILL")
	m.Await(worker, "a restart by systemd", func(p systemdmachine.Properties) bool {
		return p["NRestarts"] == "1" && p["ActiveState"] == "active" && strings.Contains(p["StatusText"], "running")
	})
	g.Go(t, 0)
	for _, instance := range []string{"ps-0", "worker-0"} {
		if p := m.AwaitState(g.unit(instance), "inactive"); p["Result"] != "success" || len(m.Processes(g.unit(instance))) > 0 {
			t.Errorf("%s: %s, with processes %v", instance, p["Result"], m.Processes(g.unit(instance)))
		}
	}
	wantNeverTwo(t, g)
}

// hang starts a gang and stops its worker's agent in its tracks.
func (m machine) hang() gang {
	g := m.lay("dog", 1, m.registry, nil)
	g.dropIn("worker-0", fmt.Sprintf("WatchdogSec=%d", m.watch)) // the rendered one is of 60 s: shorter, or for a slow machine longer
	m.run("systemctl", "start", g.target, g.unit("worker-0"))
	awaitStarts(m.t, g, "ps-0 1 1 none", "worker-0 1 1 none")
	m.Signal(g.unit("worker-0"), "main", "SIGSTOP")
	return g
}

// watchdog is systemd's: it ends an agent that gives no sign of life, and starts another.
func (m machine) watchdog(t *testing.T, g gang) {
	g.host.t = t
	worker := g.unit("worker-0")
	m.Await(worker, "a restart after its watchdog", func(p systemdmachine.Properties) bool {
		return p["NRestarts"] == "1" && p["ActiveState"] == "active" && strings.Contains(p["StatusText"], "running")
	})
	if said := m.Journal(worker); !strings.Contains(said, "Watchdog timeout") || !strings.Contains(said, "Failed with result 'watchdog'") {
		t.Errorf("it was not the watchdog:\n%s", said)
	}
	awaitStarts(t, g, "ps-0 1 1 none", "worker-0 1 1 none", "worker-0 1 2 none")
	g.Go(t, 0)
	if p := m.AwaitState(worker, "inactive"); p["Result"] != "success" {
		t.Errorf("after the end: %s, want success", p["Result"])
	}
	wantNeverTwo(t, g)
}

// scored is the last line of `systemd-analyze security`.
var scored = regexp.MustCompile(`Overall exposure level for .*: ([0-9.]+) `)

func (m machine) exposure(unit string) float64 {
	m.t.Helper()
	found := scored.FindStringSubmatch(m.run("systemd-analyze", "security", "--no-pager", unit))
	if found == nil {
		m.t.Fatalf("no score of %s", unit)
	}
	score, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		m.t.Fatal(err)
	}
	return score
}

// awaitStarts waits until processes have told of all these starts, INSTANCE GENERATION ATTEMPT CHECKPOINT, and of no other.
func awaitStarts(t *testing.T, g gang, want ...string) {
	t.Helper()
	slices.Sort(want)
	for end := time.Now().Add(watchdog); ; <-time.After(lookAgain) {
		var got []string
		for _, s := range g.Starts(t) {
			got = append(got, fmt.Sprintf("%s %d %d %s", s.Instance, s.Generation, s.Attempt, checkpointOf(s)))
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
		if len(got) >= len(want) || time.Now().After(end) {
			t.Fatalf("got starts %v, want %v", got, want)
		}
	}
}

// awaitLast waits until the last start of each instance went on from this step or a later one, all of them in one generation:
// agents that are all launched anew may form another, before which processes that run already are asked to save themselves.
func awaitLast(t *testing.T, g gang, steps map[string]int) {
	t.Helper()
	until(t, func() string {
		last := map[string]tinygang.Start{}
		for _, s := range g.Starts(t) {
			last[s.Instance] = s
		}
		for instance, least := range steps {
			step, err := strconv.Atoi(strings.TrimPrefix(checkpointOf(last[instance]), "step-"))
			if err != nil || step < least || last[instance].Generation != last["ps-0"].Generation {
				return fmt.Sprintf("last starts %v, want %v", last, steps)
			}
		}
		return ""
	})
}

// lookAgain is between two looks at a file.
const lookAgain = 50 * time.Millisecond

// checkpointOf is what the program has in the place of its folder.
func checkpointOf(s tinygang.Start) string { return filepath.Base(s.Cwd) }

// wantNeverTwo looks for what a process notes that finds another of its rank.
func wantNeverTwo(t *testing.T, g gang) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(g.Dir, "two")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("two processes of one rank: %q, %v", text, err)
	}
}
