package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

func init() { roles["as-linger-agent"] = asLingerAgent }

// everywhere runs a test with each engine that this host permits.
func everywhere(t *testing.T, test func(t *testing.T, g *Guard)) {
	t.Helper()
	t.Run(NameProcess, func(t *testing.T) { test(t, processGuard(t, Options{})) })
	for _, e := range engines(t) {
		t.Run(e.Name(), func(t *testing.T) { test(t, newRig(t, e, "worker-0", cgroup.Limits{}).Guard) })
	}
}

// A starter's folder is its own /tmp in a container, and unlike any other outside; D is its name in scripts.
func starterEnv(t *testing.T) []string {
	t.Helper()
	return []string{"PATH=" + os.Getenv("PATH"), "D=" + t.TempDir()}
}

// daemon is a shell's function: it forks twice, makes a session, does what $1 says before it has a pid file and what $2
// says after, and returns when it has one, named $3. Each
// has a fifo of its own: one that is opened again while the last writer has it open still would end at once.
const daemon = `mkdir -p $D; mkfifo $D/end $D/end2
	daemon() { mkfifo $D/up.$3; (setsid sh -c "$1; echo \$\$ >$D/$3; echo >$D/up.$3; $2" &); read up <$D/up.$3; }
`

// says runs a script in a session and returns what it says.
func says(t *testing.T, g *Guard, env []string, script string) string {
	t.Helper()
	s := run(t, g, ExecSpec{Env: env}, script)
	got := text(t, s.Stdout)
	if x := ended(t, s); deref(x.Code) != 0 {
		t.Fatalf("%s: %s: %s", script, x.Message, text(t, s.Stderr))
	}
	return got
}

// asks runs a script that ends the app, which may end it too.
func asks(t *testing.T, g *Guard, env []string, script string) {
	t.Helper()
	if x := ended(t, run(t, g, ExecSpec{Env: env}, script)); deref(x.Code) != 0 && x.Signal != 9 {
		t.Fatalf("%s: %s", script, x.Message)
	}
}

func pidIn(t *testing.T, g *Guard, env []string, name string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(says(t, g, env, "cat $D/"+name)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func adopt(t *testing.T, g *Guard, env []string, name string) {
	t.Helper()
	if err := g.Adopt(pidIn(t, g, env, name)); err != nil {
		t.Fatal(err)
	}
}

func TestStarterThatLingers(t *testing.T) {
	const stays = `daemon : "exec sleep 1000" pid`
	for _, c := range []struct {
		name, script string
		left         int
		then         func(t *testing.T, g *Guard, env []string)
		code         any
		signal       int
		starter      bool
	}{
		{"adopted, killed by another", stays, 1, func(t *testing.T, g *Guard, env []string) {
			adopt(t, g, env, "pid")
			asks(t, g, env, "kill -9 $(cat $D/pid)")
		}, nil, 9, false},
		{"adopted, ends with 3", `daemon : "read x <$D/end; exit 3" pid`, 1, func(t *testing.T, g *Guard, env []string) {
			adopt(t, g, env, "pid")
			asks(t, g, env, "echo >$D/end")
		}, 3, 0, false},
		{"adopted, gets the signals", `daemon "trap 'exit 5' TERM" "while :; do read x <$D/end; done" pid`, 1, func(t *testing.T, g *Guard, env []string) {
			adopt(t, g, env, "pid")
			if err := g.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}, 5, 0, false},
		{"not adopted, all of it gets the signals", `daemon "trap 'exit 5' TERM" "while :; do read x <$D/end; done" pid; daemon "trap 'exit 0' TERM" "while :; do read x <$D/end2; done" other`, 2, func(t *testing.T, g *Guard, _ []string) {
			if err := g.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			deserted(t, g, 5)
		}, 0, 0, false},
		{"adopted when reaped", stays + `; daemon : "read x <$D/end; exit 3" early`, 2, func(t *testing.T, g *Guard, env []string) {
			says(t, g, env, "echo >$D/end; while kill -0 $(cat $D/early) 2>/dev/null; do :; done") // a zombie has its number
			adopt(t, g, env, "early")
		}, 3, 0, false},
		{"two adoptions", stays + `; daemon : "read x <$D/end; exit 3" second`, 2, func(t *testing.T, g *Guard, env []string) {
			adopt(t, g, env, "pid")
			adopt(t, g, env, "second")
			asks(t, g, env, "kill -9 $(cat $D/pid); while kill -0 $(cat $D/pid) 2>/dev/null; do :; done; echo >$D/end")
		}, 3, 0, false},
		{"another's child", `daemon "sh -c 'read x <$D/end; exit 4' & echo \$! >$D/child" "wait; exec sleep 1000" pid`, 2, func(t *testing.T, g *Guard, env []string) {
			adopt(t, g, env, "child")
			if err := g.Finish(); !errors.Is(err, errBusy) {
				t.Errorf("finish: %v", err)
			}
			asks(t, g, env, "echo >$D/end")
			if l := await[Lingers](t, g, noExit(t)); l.Left != 1 || l.Ended != nil { // its parent, which knows its end
				t.Errorf("%+v, want 1 left", l)
			}
			adopt(t, g, env, "pid")
			asks(t, g, env, "kill -9 $(cat $D/pid)")
		}, nil, 9, false},
		{"another's child that becomes ours", `daemon "sh -c 'read x <$D/end; exit 4' & echo \$! >$D/child" "wait; exec sleep 1000" pid`, 2, func(t *testing.T, g *Guard, env []string) {
			adopt(t, g, env, "child")
			asks(t, g, env, "kill -9 $(cat $D/pid); while kill -0 $(cat $D/pid) 2>/dev/null; do :; done; echo >$D/end")
		}, 4, 0, false},
		{"another's child, signalled", `daemon "sleep 1000 & echo \$! >$D/child" "exec sleep 1000" pid`, 2, func(t *testing.T, g *Guard, env []string) {
			adopt(t, g, env, "child")
			if err := g.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			await[Lingers](t, g, noExit(t))
			if err := g.Finish(); err != nil {
				t.Error(err)
			}
		}, 0, 0, false},
		{"finished", stays, 1, func(t *testing.T, g *Guard, _ []string) {
			if err := g.Finish(); err != nil {
				t.Error(err)
			}
		}, 0, 0, false},
		{"the last ends", `daemon : "read x <$D/end" pid; daemon : "read x <$D/end2; exit 3" second`, 2, func(t *testing.T, g *Guard, env []string) {
			run(t, g, ExecSpec{}, "exec sleep 1000") // does not count
			asks(t, g, env, "echo >$D/end2; while kill -0 $(cat $D/second) 2>/dev/null; do :; done; echo >$D/end")
			deserted(t, g, 3)
		}, 0, 0, false},
		{"the last ends, after an exec was given up", `daemon : "read x <$D/end; exit 3" pid`, 1, func(t *testing.T, g *Guard, env []string) {
			s := run(t, g, ExecSpec{}, "(sleep 1000; true) & echo up; wait")
			wantLine(t, s, "up")
			s.giveUp() // the end of its parts is no end of the app's
			asks(t, g, env, "echo >$D/end")
			deserted(t, g, 3)
		}, 0, 0, false},
		{"the last ends, after an exec was given up that had not seen its child's end", `daemon : "read x <$D/end" pid`, 1, func(t *testing.T, g *Guard, env []string) {
			s := run(t, g, ExecSpec{Env: env}, `mkfifo $D/die; (read x <$D/die; exit 5) & echo $! >$D/child; exec sh -c 'echo up; exec sleep 1000'`)
			wantLine(t, s, "up")
			says(t, g, env, "echo >$D/die; until grep -q ') Z ' /proc/$(cat $D/child)/stat; do :; done")
			s.giveUp()
			asks(t, g, env, "echo >$D/end")
			deserted(t, g, 0)
		}, 0, 0, false},
		{"killed", stays, 1, func(t *testing.T, g *Guard, _ []string) {
			if err := g.Kill(); err != nil {
				t.Error(err)
			}
		}, 0, 0, true},
		{"closed", stays, 1, func(t *testing.T, g *Guard, _ []string) {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}, 0, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, g *Guard) {
				env := starterEnv(t)
				start(t, g, Spec{Attempt: 4, Linger: true, Argv: []string{"sh", "-c", daemon + c.script + "\nexit 0"}, Env: env, Dir: "/"})
				if l := await[Lingers](t, g, noExit(t)); l.Attempt != 4 || l.Left != c.left {
					t.Errorf("%+v, want %d of attempt 4", l, c.left)
				}
				c.then(t, g, env)
				x := await[Exited](t, g)
				if x.Attempt != 4 || deref(x.Exit.Code) != c.code || x.Exit.Signal != c.signal || x.Exit.Starter != c.starter || x.Exit.At.IsZero() {
					t.Errorf("exited %+v (code %v), want code %v, signal %d, starter %v", x, deref(x.Exit.Code), c.code, c.signal, c.starter)
				}
				if c.code == nil && c.signal == 0 && !strings.Contains(x.Exit.Message, "status unknown") {
					t.Errorf("message %q", x.Exit.Message)
				}
				if e := await[Empty](t, g); e.Attempt != 4 {
					t.Errorf("empty %+v", e)
				}
				if left := below(t, g.PID()); len(left) > 0 {
					t.Errorf("left %+v", left)
				}
			})
		})
	}
}

// deserted awaits that nothing is left, of which the first that failed ended with code, and finishes the start.
func deserted(t *testing.T, g *Guard, code int) {
	t.Helper()
	l := await[Lingers](t, g, noExit(t))
	if l.Left != 0 || l.Ended == nil || deref(l.Ended.Code) != code {
		t.Errorf("%+v, %+v, want nothing left, ended with %d", l, l.Ended, code)
	}
	if err := g.Finish(); err != nil {
		t.Error(err)
	}
}

func noExit(t *testing.T) func(Event) {
	return func(e Event) {
		if x, ok := e.(Exited); ok {
			t.Errorf("exited first: %+v", x)
		}
	}
}

// Other ends of a starter, and of others, are told as ever.
func TestNothingLingers(t *testing.T) {
	for _, c := range []struct {
		name, script string
		linger       bool
		code         any
		signal       int
	}{
		{"non-zero", `daemon : "exec sleep 1000" pid; exit 7`, true, 7, 0},
		{"signal", `daemon : "exec sleep 1000" pid; kill -9 $$`, true, nil, 9},
		{"not asked for", `daemon : "exec sleep 1000" pid; exit 0`, false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := processGuard(t, Options{})
			beside := run(t, g, ExecSpec{}, "exec sleep 1000")
			start(t, g, Spec{Linger: c.linger, Argv: []string{"sh", "-c", daemon + c.script}, Env: starterEnv(t)})
			x := await[Exited](t, g, func(e Event) {
				if l, ok := e.(Lingers); ok {
					t.Errorf("%+v", l)
				}
			})
			if deref(x.Exit.Code) != c.code || x.Exit.Signal != c.signal || x.Exit.Starter {
				t.Errorf("exited %+v, want code %v, signal %d", x, c.code, c.signal)
			}
			await[Empty](t, g)
			ended(t, beside)
		})
	}
}

// A starter that leaves nothing is held as well: what it started may be elsewhere. How an orphan ended before it is told.
func TestStarterThatLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		name, script string
		ended        any // exit code
	}{
		{"nothing", `true & wait`, nil},
		{"one that has failed", `daemon : "exit 3" early; while kill -0 $(cat $D/early) 2>/dev/null; do :; done`, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, g *Guard) {
				start(t, g, Spec{Attempt: 2, Linger: true, Argv: []string{"sh", "-c", daemon + c.script + "; exit 0"}, Env: starterEnv(t), Dir: "/"})
				l := await[Lingers](t, g, noExit(t))
				if l.Attempt != 2 || l.Left != 0 || (c.ended == nil) != (l.Ended == nil) || l.Ended != nil && deref(l.Ended.Code) != c.ended {
					t.Errorf("%+v, %+v, want nothing left, ended with %v", l, l.Ended, c.ended)
				}
				ended(t, run(t, g, ExecSpec{}, "exit 0")) // a STATUS, say
				if err := g.Finish(); err != nil {
					t.Fatal(err)
				}
				if x := await[Exited](t, g); deref(x.Exit.Code) != 0 || x.Exit.Starter {
					t.Errorf("exited %+v", x)
				}
				await[Empty](t, g)
			})
		})
	}
}

// A starter that kills what it has started, and ends at once, leaves nothing: what is dying is no process that is left.
func TestStarterKillsItsHelper(t *testing.T) {
	everywhere(t, func(t *testing.T, g *Guard) {
		for i := range 20 {
			start(t, g, Spec{Attempt: i + 1, Linger: true, Argv: []string{"sh", "-c", "sleep 1000 & kill $!; exit 0"}, Env: starterEnv(t), Dir: "/"})
			if l := await[Lingers](t, g, noExit(t)); l.Left != 0 {
				t.Errorf("%+v, want nothing left", l)
			}
			if err := g.Finish(); err != nil {
				t.Fatal(err)
			}
			await[Exited](t, g)
			await[Empty](t, g)
		}
	})
}

func TestStrangersAreNotAdopted(t *testing.T) {
	everywhere(t, func(t *testing.T, g *Guard) {
		env := starterEnv(t)
		beside := run(t, g, ExecSpec{}, "exec sleep 1000")
		start(t, g, Spec{Attempt: 1, Argv: []string{"sleep", "1000"}, Env: env, Dir: "/"})
		for name, err := range map[string]error{"adopt": g.Adopt(2), "finish": g.Finish()} {
			if !errors.Is(err, errBusy) {
				t.Errorf("%s while the first lives: %v", name, err)
			}
		}
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		await[Empty](t, g)
		ended(t, beside)
		start(t, g, Spec{Attempt: 2, Linger: true, Argv: []string{"sh", "-c", daemon + `daemon : "exec sleep 1000" pid`}, Env: env, Dir: "/"})
		await[Lingers](t, g)
		beside = run(t, g, ExecSpec{}, "exec sleep 1000")
		for _, pid := range []int{os.Getpid(), beside.PID(), 1, 0, -1} {
			want := fmt.Sprintf("adopt process %d: not a process of this start", pid)
			if err := g.Adopt(pid); !errors.Is(err, ErrNotOurs) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		adopt(t, g, env, "pid") // nothing has changed
		a := await[Adopted](t, g)
		if s, err := (proc.Host{}).Stat(a.PID); err != nil || s.Start != a.Ticks || s.Name != "sleep" || a.Attempt != 2 {
			t.Errorf("%+v is %+v, %v", a, s, err)
		}
		asks(t, g, env, "kill $(cat $D/pid)")
		await[Exited](t, g)
		await[Empty](t, g)
		for name, err := range map[string]error{"adopt": g.Adopt(2), "finish": g.Finish()} {
			if !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("%s after the end: %v", name, err)
			}
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if err := g.Adopt(2); !errors.Is(err, ErrGone) {
			t.Errorf("adopt without a guard: %v", err)
		}
	})
}

func TestGuardKilledWhileLingering(t *testing.T) {
	g := processGuard(t, Options{})
	fifo := filepath.Join(fifoOnly(t), "alive")
	held := openFifo(t, fifo)
	start(t, g, Spec{Attempt: 5, Linger: true, Argv: []string{self(t), "as-rebel", fifo, "4"}})
	held.wantReady(t)
	await[Lingers](t, g)
	if err := syscall.Kill(g.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); x.Attempt != 5 || !x.Exit.Starter {
		t.Errorf("exited %+v", x)
	}
	await[Empty](t, g)
	held.wantEnd(t)
}

// asLingerAgent is asAgent whose app is a starter; it speaks when that has ended and, if args[1] says so, its first
// child is adopted.
func asLingerAgent(args []string) error {
	g, err := Process{}.StartGuard(context.Background(), Options{LogDir: args[0]})
	if err != nil {
		return err
	}
	pid, err := g.Start(Spec{Attempt: 1, Linger: true, Argv: args[2:], Env: os.Environ(), Dir: args[0]})
	if err != nil {
		return err
	}
	for e := range g.Events() {
		if _, ok := e.(Lingers); !ok {
			continue
		}
		if args[1] == "adopt" {
			children := proc.Host{}.ChildrenOf(g.PID(), strconv.Itoa(g.PID()))
			if err := g.Adopt(children[0]); err != nil {
				return err
			}
		}
		fmt.Println(g.PID(), pid)
	}
	return nil
}

func TestAgentKilledWhileLingering(t *testing.T) {
	for _, how := range []string{"held", "adopt"} {
		t.Run(how, func(t *testing.T) {
			fifo := filepath.Join(fifoOnly(t), "alive")
			held := openFifo(t, fifo)
			agent, guardPID, _ := fakeAgentAs(t, "as-linger-agent", t.TempDir(), how, self(t), "as-rebel", fifo, "4")
			held.wantReady(t)
			if err := agent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			held.wantEnd(t)
			awaitEnd(t, guardPID)
		})
	}
}

// family are the numbers of all descendants of a guard that live.
func family(t *testing.T, g *Guard) map[int]bool {
	t.Helper()
	all, err := (proc.Host{}).Processes()
	if err != nil {
		t.Fatal(err)
	}
	alive := map[int]bool{}
	for _, s := range proc.WithDescendants(all, func(s proc.Stat) bool { return s.PPID == g.PID() }) {
		if s.Alive() {
			alive[s.PID] = true
		}
	}
	return alive
}

func TestSessionKillSparesTheApp(t *testing.T) {
	const tree = `trap '' TERM HUP
		setsid sleep 1000 & mkfifo $D/up.1 $D/up.2
		(setsid sh -c "sleep 1000 & echo >$D/up.1; wait" &); read up <$D/up.1
		(sh -c "trap '' TERM; echo >$D/up.2; exec sleep 1000" &); read up <$D/up.2; `
	for _, c := range []struct {
		name, script string
		signal       int
	}{
		{"while it runs", tree + "echo ready; sleep 1000", 9},
		{"after its end", tree + "echo ready", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, g *Guard) {
				env := starterEnv(t)
				start(t, g, Spec{Linger: true, Argv: []string{"sh", "-c", daemon + `daemon : "sleep 1000 & exec sleep 1000" pid; daemon : "exec sleep 1000" other`}, Env: env, Dir: "/"})
				await[Lingers](t, g)
				adopt(t, g, env, "pid")
				beside := run(t, g, ExecSpec{Env: env}, "sleep 1000 & echo ready; wait")
				wantLine(t, beside, "ready")
				before := family(t, g)
				s := run(t, g, ExecSpec{Env: env}, c.script)
				wantLine(t, s, "ready")
				if c.signal == 0 {
					ended(t, s)
				}
				if n := len(family(t, g)); n < len(before)+4 {
					t.Fatalf("%d processes beside %d, want 4 or more", n-len(before), len(before))
				}
				if err := s.Kill(); err != nil {
					t.Fatal(err)
				}
				if after := family(t, g); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("alive are %v, want %v", after, before)
				}
				if x := ended(t, s); x.Signal != c.signal {
					t.Errorf("%+v", x)
				}
				if err := s.Kill(); err != nil {
					t.Errorf("once more: %v", err)
				}
				asks(t, g, env, "kill $(cat $D/pid)")
				if x := await[Exited](t, g); x.Exit.Signal != 15 {
					t.Errorf("the app: %+v", x)
				}
				await[Empty](t, g)
				ended(t, beside)
			})
		})
	}
}

// What has left its parents and its session is found though it is another user's.
func TestSessionKillOfAnotherUser(t *testing.T) {
	everywhere(t, func(t *testing.T, g *Guard) {
		s := run(t, g, ExecSpec{User: nobody(t)}, `(setsid sh -c "echo ready; exec sleep 1000" &); read x; exit 0`)
		wantLine(t, s, "ready")
		if err := s.Stdin.Close(); err != nil {
			t.Fatal(err)
		}
		ended(t, s)
		if n := len(family(t, g)); n != 1 {
			t.Fatalf("%d processes, want the one that was left", n)
		}
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if left := family(t, g); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	})
}

func wantLine(t *testing.T, s *Session, want string) {
	t.Helper()
	if got, err := bufio.NewReader(s.Stdout).ReadString('\n'); err != nil || got != want+"\n" {
		t.Fatalf("session says %q, %v; want %q", got, err, want)
	}
}

func TestSweep(t *testing.T) {
	everywhere(t, func(t *testing.T, g *Guard) {
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		if err := g.Sweep(ctx); err != nil {
			t.Errorf("of nothing: %v", err)
		}
		env := starterEnv(t)
		for range 3 {
			says(t, g, env, "rm -rf $D;"+daemon+`daemon "trap '' TERM HUP" "sleep 1000 & wait" pid`)
			living := run(t, g, ExecSpec{}, "exec sleep 1000")
			if err := g.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
			if left := below(t, g.PID()); len(left) > 0 {
				t.Errorf("left %+v", left)
			}
			ended(t, living)
		}
		start(t, g, Spec{Argv: []string{"sleep", "1000"}, Env: env, Dir: "/"}) // no start is refused after it
		if err := g.Sweep(ctx); !errors.Is(err, errBusy) {
			t.Errorf("beside an app: %v", err)
		}
		if err := g.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if x := await[Exited](t, g, func(e Event) {
			if _, ok := e.(Empty); ok {
				t.Error("a sweep said Empty")
			}
		}); x.Exit.Signal != 15 {
			t.Errorf("exited %+v", x)
		}
		await[Empty](t, g)
	})
}

func TestExecIntoFiles(t *testing.T) {
	g := processGuard(t, Options{})
	dir := t.TempDir()
	var files [2]*os.File
	for i, name := range []string{"output", "errors"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	s := run(t, g, ExecSpec{Stdout: files[0], Stderr: files[1], Rlimits: map[string]Rlimit{"nofile": {77, 77}}}, "ulimit -n; cat; echo err >&2; ls /proc/self/fd | wc -l")
	if _, err := s.Stdin.Write([]byte("in\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	ended(t, s)
	if got, want := readFile(t, dir, "output"), "77\nin\n4\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	if got := readFile(t, dir, "errors"); got != "err\n" {
		t.Errorf("errors %q", got)
	}
	if got := text(t, s.Stdout) + text(t, s.Stderr); got != "" {
		t.Errorf("session says %q", got)
	}
	if _, err := files[0].WriteString("more\n"); err != nil {
		t.Errorf("the caller's file: %v", err)
	}
	_, err := g.Exec(t.Context(), ExecSpec{Argv: []string{"true"}, Terminal: &Size{}, Stdout: files[0]})
	if want := "run true: a terminal is its own output"; err == nil || err.Error() != want {
		t.Errorf("on a terminal: %v", err)
	}
	// One stream may be a file alone.
	s = run(t, g, ExecSpec{Stdout: files[0]}, "echo err >&2")
	if got := text(t, s.Stderr); got != "err\n" {
		t.Errorf("stderr %q", got)
	}
	ended(t, s)
}

// What a starter has left and what was over before it: how that ended is known, while the start lasts and after it.
func TestStarterThatLingersNoMore(t *testing.T) {
	everywhere(t, func(t *testing.T, g *Guard) {
		env := starterEnv(t)
		script := `daemon : "exit 3" pid; daemon : "kill -9 \$\$" other; while kill -0 $(cat $D/pid) || kill -0 $(cat $D/other); do :; done 2>/dev/null; echo $$ >$D/own; exit 0`
		start(t, g, Spec{Attempt: 1, Linger: true, Argv: []string{"sh", "-c", daemon + script}, Env: env, Dir: "/"})
		if l := await[Lingers](t, g, noExit(t)); l.Left != 0 || l.Ended == nil || deref(l.Ended.Code) == 0 {
			t.Errorf("%+v, %+v, want nothing left, of which the first has failed", l, l.Ended)
		}
		if err := g.Finish(); err != nil {
			t.Fatal(err)
		}
		if x := await[Exited](t, g); deref(x.Exit.Code) != 0 || x.Exit.Starter {
			t.Errorf("got %+v, want 0 of a starter that has left nothing", x.Exit)
		}
		await[Empty](t, g)
		for name, want := range map[string]any{"pid": 3, "own": 0, "other": 9} {
			x, err := g.Ended(t.Context(), pidIn(t, g, env, name))
			got := deref(x.Code)
			if name == "other" {
				got = x.Signal
			}
			if err != nil || got != want {
				t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
			}
		}
		if _, err := g.Ended(t.Context(), 1); !errors.Is(err, ErrNotOurs) {
			t.Errorf("of a stranger: got %v, want ErrNotOurs", err)
		}
	})
}
