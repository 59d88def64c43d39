package plan

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
)

// watchdog is the longest that a test waits for what must come.
const watchdog = 30 * time.Second

// threeEach is an app whose workers train with framework, n processes in a container.
func threeEach(framework string, n int) appdef.App {
	app := with(trainingApp(), "worker", func(c *appdef.Component) {
		c.Settings.Command, c.Settings.Processes = "train --fast", n
	})
	app.Settings.Framework = framework
	return app
}

func TestCommandTimes(t *testing.T) {
	wrapped := func(shell, n string, argv ...string) []string {
		return append([]string{shell, "-c", several, "muster", n}, argv...)
	}
	plain := []string{"bash", "-c", "train --fast"}
	image := func(app appdef.App) appdef.App {
		return with(app, "worker", func(c *appdef.Component) { c.Limits.Image = "i" })
	}
	inImage := request("worker", 0)
	inImage.Engine.Name = engineContainer
	inImage.Image = &ImageFacts{Entrypoint: []string{"/entry", "{{checkpoint}}"}, Cmd: []string{"serve"}}
	for _, tt := range []struct {
		name     string
		app      appdef.App
		req      Request
		want     []string
		verbatim int
	}{
		{name: "once", app: threeEach("pytorch", 1), req: request("worker", 0), want: plain},
		{name: "three times", app: threeEach("pytorch", 3), req: request("worker", 0), want: wrapped("bash", "3", plain...)},
		{name: "mpirun starts them", app: threeEach("mpi", 3), req: request("worker", 1), want: nil},
		{
			name: "behind an image's entrypoint", app: image(threeEach("pytorch", 3)), req: inImage, verbatim: 2,
			want: append([]string{"/entry", "{{checkpoint}}"}, wrapped("sh", "3", "sh", "-c", "train --fast")...),
		},
		{
			name: "an image's own command", req: inImage, verbatim: 8,
			app: with(image(threeEach("pytorch", 3)), "worker", func(c *appdef.Component) {
				c.Settings.Command, c.CommandScript = "", nil
			}),
			want: wrapped("sh", "3", "/entry", "{{checkpoint}}", "serve"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustBuild(t, tt.app, tt.req)
			if tt.want == nil {
				if slices.Contains(p.Process.Argv, several) {
					t.Errorf("argv %q", p.Process.Argv)
				}
				return
			}
			if diff := cmp.Diff(p.Process.Argv, tt.want); diff != "" {
				t.Errorf("argv (-got +want):\n%s", diff)
			}
			if p.Process.Verbatim != tt.verbatim {
				t.Errorf("the first %d stay as they are, want %d", p.Process.Verbatim, tt.verbatim)
			}
		})
	}
}

// Resume arguments go to the command, not to what starts it.
func TestResumeOfSeveral(t *testing.T) {
	app := with(threeEach("pytorch", 2), "worker", func(c *appdef.Component) { c.Settings.ResumeArgs = "--resume {{checkpoint}}" })
	argv := finish(t, app, request("worker", 0), StartFacts{Checkpoint: "/ckpt/7"}).Argv
	if got, want := argv[len(argv)-1], "train --fast --resume /ckpt/7"; got != want || argv[2] != several {
		t.Errorf("the command is %q, want %q; argv %q", got, want, argv)
	}
}

// Servers are told how many processes they serve, and run once themselves.
func TestServersCountProcesses(t *testing.T) {
	app := with(threeEach("mxnet", 3), "ps", func(c *appdef.Component) { c.Settings.Command, c.Settings.Processes = "serve", 3 })
	p := mustBuild(t, app, request("ps", 0))
	if p.Processes != 3 || !slices.Equal(p.Process.Argv, []string{"bash", "-c", "serve"}) {
		t.Errorf("a server counts %d processes and runs %q", p.Processes, p.Process.Argv)
	}
}

func TestProcessProblems(t *testing.T) {
	chief := func(app appdef.App) appdef.App {
		c := app.Components[1]
		c.Name, c.Instances, c.Settings.Role = "chief", 1, appdef.RoleChief
		app.Components = append([]appdef.Component{c}, app.Components...)
		return app
	}
	for _, tt := range []struct {
		name, want string
		app        appdef.App
	}{
		{"each needs a port", "got 3 processes in a container with framework lightgbm, want 1", threeEach("lightgbm", 3)},
		{
			"not the same for all", "got 3 processes in a container of worker, want 2",
			with(chief(threeEach("pytorch", 3)), "chief", func(c *appdef.Component) { c.Settings.Processes = 2 }),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := Build(tt.app, request("worker", 0))
			if text := fmt.Sprint(problems.Errors()); !strings.Contains(text, tt.want) {
				t.Errorf("problems %s, want one with %q", text, tt.want)
			}
		})
	}
	if _, problems := Build(chief(threeEach("pytorch", 3)), request("worker", 0)); len(problems.Errors()) != 0 {
		t.Errorf("the same for all: %v", problems)
	}
}

// shells are those of this host that several must work in.
func shells(t *testing.T) map[string][]string {
	found := map[string][]string{}
	for _, name := range []string{"bash", "dash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			found[name] = []string{path}
		}
	}
	if path, err := exec.LookPath("busybox"); err == nil {
		found["busybox"] = []string{path, "sh"}
	}
	if len(found) == 0 {
		t.Fatal("no shell")
	}
	return found
}

// group is several processes started in a folder of its own, with an environment of nothing else.
type group struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Scanner
	dir string
}

func runSeveral(t *testing.T, shell []string, n int, command string, env ...string) *group {
	t.Helper()
	dir := t.TempDir()
	argv := slices.Concat(shell, []string{"-c", several, "muster", fmt.Sprint(n)}, shell, []string{"-c", command})
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append([]string{"MUSTER_WORK_DIR=" + dir, "PATH=" + os.Getenv("PATH")}, env...), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dog := time.AfterFunc(watchdog, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() { dog.Stop(); _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return &group{t: t, cmd: cmd, out: bufio.NewScanner(out), dir: dir}
}

// lines reads n lines, in no order.
func (g *group) lines(n int) []string {
	g.t.Helper()
	var lines []string
	for len(lines) < n && g.out.Scan() {
		lines = append(lines, g.out.Text())
	}
	if len(lines) < n {
		g.t.Fatalf("%d lines %q, want %d", len(lines), lines, n)
	}
	slices.Sort(lines)
	return lines
}

// end waits for the end: the exit code and what else was printed. Nothing may be left behind.
func (g *group) end() (code int, rest []string) {
	g.t.Helper()
	for g.out.Scan() {
		rest = append(rest, g.out.Text())
	}
	if err := g.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		g.t.Fatal(err)
	}
	if left, err := filepath.Glob(g.dir + "/.several*"); err != nil || len(left) > 0 {
		g.t.Errorf("left behind: %v, %v", left, err)
	}
	slices.Sort(rest)
	return g.cmd.ProcessState.ExitCode(), rest
}

func (g *group) signal(s syscall.Signal) {
	g.t.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		g.t.Fatal(err)
	}
}

// tellsItsEnd is a process that waits for ever, says when it is told something and ends with the code
// that is put in the place of %d. It waits by wait: a signal that comes just before a read begins is
// heeded only when the read ends, which this one would not.
const tellsItsEnd = `trap 'echo "$MUSTER_PROC told"; kill -s KILL $!; exit %d' TERM
trap 'echo "$MUSTER_PROC saved"' USR1
mkfifo pipe$MUSTER_PROC
cat <>pipe$MUSTER_PROC >/dev/null 2>&1 &
echo "$MUSTER_PROC ready"
while :; do wait; done`

func TestSeveralProcesses(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			for _, tt := range []struct {
				name, command string
				n             int
				env           []string
				code          int
				want          []string
			}{
				{
					name: "ranks rise", n: 3, command: `echo "$MUSTER_PROC of $MUSTER_PROCS: $RANK $LOCAL_RANK $WORLD_SIZE"`,
					env:  []string{"MUSTER_PROC_RANKS=RANK LOCAL_RANK", "RANK=6", "LOCAL_RANK=0", "WORLD_SIZE=9"},
					want: []string{"0 of 3: 6 0 9", "1 of 3: 7 1 9", "2 of 3: 8 2 9"},
				},
				{name: "words stay whole", n: 1, command: `echo "a  'b' \$c"`, want: []string{`a  'b' $c`}},
				{name: "a name that is not set", n: 2, command: `echo $R`, env: []string{"MUSTER_PROC_RANKS=R"}, want: []string{"0", "1"}},
				{name: "beside a process", n: 3, command: `echo "${MUSTER_PROC-alone}"`, env: []string{"MUSTER_SIDE=scheduler"}, want: []string{"alone"}},
				{name: "killed", n: 2, command: `[ $MUSTER_PROC = 0 ] || kill -s KILL $$`, code: 137},
				{name: "not found", n: 2, command: `exec ./nothing 2>/dev/null`, code: 127},
				{name: "both fail", n: 2, command: `exit 4`, code: 4},
				{name: "its folder is not to be written", n: 2, command: `exit 4`, env: []string{"MUSTER_WORK_DIR=/proc/self"}, code: 1},
			} {
				t.Run(tt.name, func(t *testing.T) {
					code, lines := runSeveral(t, shell, tt.n, tt.command, tt.env...).end()
					if code != tt.code || !slices.Equal(lines, tt.want) {
						t.Errorf("code %d, lines %q, want %d, %q", code, lines, tt.code, tt.want)
					}
				})
			}
		})
	}
}

// When one fails, the rest are told to end, once, and its code is that of all, whatever theirs are.
func TestOneOfSeveralFails(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			start := filepath.Join(dir, "go")
			if err := syscall.Mkfifo(start, 0o600); err != nil {
				t.Fatal(err)
			}
			g := runSeveral(t, shell, 3, `[ $MUSTER_PROC != 1 ] || { read -r line <`+start+`; exit 42; }
`+fmt.Sprintf(tellsItsEnd, 3))
			if got, want := g.lines(2), []string{"0 ready", "2 ready"}; !slices.Equal(got, want) {
				t.Fatalf("lines %q, want %q", got, want)
			}
			if err := os.WriteFile(start, []byte("go\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			code, lines := g.end()
			if want := []string{"0 told", "2 told"}; code != 42 || !slices.Equal(lines, want) {
				t.Errorf("code %d, lines %q, want 42, %q", code, lines, want)
			}
		})
	}
}

// What the agent says to one it says to all: once, and INT as TERM.
func TestSeveralAreTold(t *testing.T) {
	for name, shell := range shells(t) {
		for _, tt := range []struct {
			signal syscall.Signal
			ends   int
		}{{syscall.SIGTERM, 0}, {syscall.SIGTERM, 3}, {syscall.SIGINT, 0}} {
			t.Run(fmt.Sprintf("%s/%s ends with %d", name, tt.signal, tt.ends), func(t *testing.T) {
				g := runSeveral(t, shell, 3, fmt.Sprintf(tellsItsEnd, tt.ends))
				g.lines(3)
				g.signal(syscall.SIGUSR1)
				if got, want := g.lines(3), []string{"0 saved", "1 saved", "2 saved"}; !slices.Equal(got, want) {
					t.Fatalf("lines %q, want %q", got, want)
				}
				g.signal(tt.signal)
				code, lines := g.end()
				if want := []string{"0 told", "1 told", "2 told"}; code != tt.ends || !slices.Equal(lines, want) {
					t.Errorf("code %d, lines %q, want %d, %q", code, lines, tt.ends, want)
				}
			})
		}
	}
}
