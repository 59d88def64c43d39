package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
)

const benchApp = "bench"

// realAgents is how many members are real agents: 200, or BENCH_GANG_REAL.
func realAgents() int {
	if n, err := strconv.Atoi(os.Getenv(gangVariable + "_REAL")); err == nil && n > 0 {
		return n
	}
	return 200
}

// startingAtOnce is how many agents start at the same time: each looks through all processes of the host.
const startingAtOnce = 8

// agents are the real agents of a gang of n, spread over its ranks. A nil *agents is none.
type agents struct {
	every int // each such rank is one's, from the second on
	count int
	dir   string
	all   []*exec.Cmd
	state string
}

// startAgents starts the real agents, and returns the facts of the app that they have founded.
func startAgents(b *testing.B, url string, n int) (*agents, conductor.Facts) {
	b.Helper()
	a := &agents{every: n / realAgents(), count: realAgents(), dir: folder.Temp(b, "muster-bench-"), state: folder.Temp(b, "muster-bench-")}
	out := folder.OfAll(b, filepath.Join(a.dir, "started"))
	app := writeApp(b, a.dir, n, "date +%s%N >"+out+"/$MUSTER_INSTANCE; exec sleep 1000000")
	address, err := registry.ParseAddress(url)
	if err != nil {
		b.Fatal(err)
	}
	client, err := consul.Open(consul.Config{Address: address})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	x := patientTimes()
	_, err = binary.With(func(muster string) int {
		for rank := range n {
			if !a.has(rank) {
				continue
			}
			run := exec.Command(muster, "agent", "--app", app, "--app-id", benchApp, "--run", "1", "--component", "worker",
				"--index", strconv.Itoa(rank), "--registry", url, "--host", "127.0.0.1", "--api-listen", "127.0.0.1:0",
				"--session-ttl", x.TTL.String(), "--lost-grace", x.Lost.String(), "--lost-mass", x.LostMass.String(),
				"--engine", "cgroup", "--work-dir", filepath.Join(a.dir, "work", strconv.Itoa(rank)), "--state-dir", a.state)
			log, err := os.Create(filepath.Join(a.dir, fmt.Sprintf("agent-%d.log", rank)))
			if err != nil {
				b.Fatal(err)
			}
			run.Stdout, run.Stderr = log, log
			run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := run.Start(); err != nil {
				b.Fatal(err)
			}
			_ = log.Close() // it is the agent's now
			a.all = append(a.all, run)
			awaitWithin(b, watchdogGang, "real agents", func() bool {
				live, err := client.Live(b.Context(), benchApp)
				return err == nil && len(a.all)-len(live) < startingAtOnce
			})
		}
		return 0
	})
	if err != nil {
		b.Fatal(err)
	}
	return a, a.facts(b, client)
}

// facts are those of the app that the agents have founded, once all of them wait.
func (a *agents) facts(b *testing.B, client *consul.Client) conductor.Facts {
	b.Helper()
	var err error
	var status consul.Status
	awaitWithin(b, watchdogGang, "all real agents", func() bool {
		status, err = client.Status(b.Context(), benchApp)
		ready := 0
		for _, m := range status.Members {
			if m.Phase == registry.PhaseReady {
				ready++
			}
		}
		return err == nil && ready == len(a.all)
	})
	def, err := client.Definition(b.Context(), benchApp, status.App)
	if err != nil {
		b.Fatal(err)
	}
	app, err := appdef.Decode(def)
	if err != nil {
		b.Fatal(err)
	}
	facts := plan.Gang(app, plan.Request{AppID: benchApp, Run: "1", Digest: status.App.Digest})
	facts.Times = patientTimes()
	facts.Barrier = facts.Times.Barrier
	return facts
}

func (a *agents) has(rank int) bool {
	return a != nil && a.every > 1 && rank%a.every == 1 && rank/a.every < a.count
}

// seen tells whether one of the agents conducts and has seen that only that member is missing.
func (a *agents) seen(b *testing.B, last int) bool {
	b.Helper()
	if a == nil {
		return false
	}
	logs, err := filepath.Glob(filepath.Join(a.dir, "agent-*.log"))
	if err != nil {
		b.Fatal(err)
	}
	want := regexp.MustCompile(lastMissing + `.*missing="?\[worker-` + strconv.Itoa(last) + `\]`)
	return slices.ContainsFunc(logs, func(log string) bool {
		text, err := os.ReadFile(log)
		return err == nil && want.Match(text)
	})
}

// started is when the last of their processes ran, in Unix nanoseconds; 0 without agents.
func (a *agents) started(b *testing.B) int64 {
	b.Helper()
	if a == nil {
		return 0
	}
	last := int64(0)
	awaitWithin(b, watchdogGang, "the processes of all real agents", func() bool {
		last = 0
		for rank := range a.every * a.count {
			if !a.has(rank) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(a.dir, "started", fmt.Sprintf("worker-%d", rank)))
			at, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err != nil || at == 0 {
				return false
			}
			last = max(last, at)
		}
		return true
	})
	return last
}

func (a *agents) end() {
	if a == nil {
		return
	}
	for _, run := range a.all {
		_ = run.Process.Kill() // the guard ends its process
	}
	for _, run := range a.all {
		_ = run.Wait() // killed
	}
}
