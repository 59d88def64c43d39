package apps

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/jail"
)

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise: on busy cores Java takes
// its time.
const watchdog = 2 * time.Minute

// app is one of Slider's apps, whose processes end with the test. Its methods end the test on errors.
type app struct {
	t    *testing.T
	jail *jail.Jail
	env  []string // of every command
	name string   // the app's
	pack string   // the folder of its package
	java string   // the folder of the Java that it runs on
	work string   // the app's work folder
}

// newApp lays out the package of testdata with the archive of an application in package/files.
func newApp(t *testing.T, name, application string) *app {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real " + name + ": not with -short")
	}
	dir := folder.Temp(t, "ma-")
	a := &app{
		t: t, jail: jail.New(t), name: name, pack: filepath.Join(dir, "package"), java: lab(t, "java"),
		work: filepath.Join(dir, "state", "muster", name),
	}
	a.env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "TMPDIR=/tmp",
		"HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"), "JAVA_HOME=" + a.java,
		"MUSTER_AGENT_STATE_DIR=" + filepath.Join(dir, "s"),
	}
	t.Cleanup(func() {
		a.tell()
		a.jail.Kill()
	})
	must(t, os.CopyFS(a.pack, os.DirFS(filepath.Join("testdata", name))))
	archive := lab(t, "path", application)
	must(t, os.MkdirAll(filepath.Join(a.pack, "package", "files"), 0o755))
	text, err := os.ReadFile(archive)
	must(t, err)
	a.write(filepath.Join("package", "files", filepath.Base(archive)), text)
	return a
}

// lab asks scripts/lab/apps.
func lab(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../scripts/lab/apps", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		need.Skip(t, fmt.Sprintf("%q: %v", cmd.Args, err))
	}
	return strings.TrimSpace(string(out))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write adds a file to the package.
func (a *app) write(name string, text []byte) {
	a.t.Helper()
	must(a.t, os.WriteFile(filepath.Join(a.pack, name), text, 0o600))
}

// do runs a muster, which has to succeed, and gives what it printed.
func (a *app) do(args ...string) []byte {
	a.t.Helper()
	cmd := exec.CommandContext(a.t.Context(), muster, args...)
	cmd.Env = a.env
	out, err := a.jail.Output(cmd)
	must(a.t, err)
	return []byte(out)
}

// slider runs a command of Slider's client, which has to work, and gives what it printed.
func (a *app) slider(verb string, args ...string) []byte {
	a.t.Helper()
	return a.do(append([]string{"slider", verb, a.name}, args...)...)
}

// create makes the app of its package and waits until that many instances run.
func (a *app) create(instances int, args ...string) {
	a.t.Helper()
	if out := a.do("validate", a.pack); !strings.HasPrefix(string(out), "ok: ") {
		a.t.Errorf("validate: %s", out)
	}
	a.slider("create", append([]string{
		"--appdef", a.pack, "--wait", "60", "--option", "muster.restart.backoff", "0.05",
		"--option", "site.global.jvm_options", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
	}, args...)...)
	a.up(instances)
}

// instance is a row of `muster status --json`.
type instance struct {
	Instance string         `json:"instance"`
	Phase    string         `json:"phase"`
	Since    string         `json:"since"`
	Attempt  int            `json:"attempt"`
	Ports    map[string]int `json:"ports"`
	Cause    string         `json:"cause"`
	LastEnd  string         `json:"last_end"`
}

// started tells whether an instance is up.
func (in instance) started() bool { return in.Phase == "running" && in.Cause == "" }

// instances are all, by name.
func (a *app) instances() map[string]instance {
	a.t.Helper()
	report := commandline.Parse[struct{ Instances []instance }](a.t, a.do("status", a.name, "--json"))
	all := map[string]instance{}
	for _, in := range report.Instances {
		all[in.Instance] = in
	}
	return all
}

// up waits until just that many instances have started.
func (a *app) up(instances int) {
	a.t.Helper()
	a.await(strconv.Itoa(instances)+" instances to run", func() bool {
		all := a.instances()
		maps.DeleteFunc(all, func(_ string, in instance) bool { return !in.started() })
		return len(all) == instances
	})
}

// await looks until what is waited for is there.
func (a *app) await(what string, see func() bool) {
	a.t.Helper()
	end := time.Now().Add(watchdog)
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for !see() {
		if time.Now().After(end) {
			a.t.Fatalf("waited %s for %s", watchdog, what)
		}
		<-look.C
	}
}

// exports are the values of one export of a group, in the order of the instances that have published them.
func (a *app) exports(group, name string) []string {
	a.t.Helper()
	type entry struct{ Value, Tag string }
	got := commandline.Parse[struct{ Entries map[string][]entry }](a.t, a.slider("exports", "--group", group))
	entries := got.Entries[name]
	slices.SortFunc(entries, func(x, y entry) int { return cmp.Compare(x.Tag, y.Tag) })
	var values []string
	for _, e := range entries {
		values = append(values, e.Value)
	}
	return values
}

// servers waits until that many instances have published where they listen.
func (a *app) servers(n int, export string) []string {
	a.t.Helper()
	var all []string
	a.await(fmt.Sprintf("%d servers among the exports", n), func() bool {
		all = a.exports("servers", export)
		return len(all) == n
	})
	return all
}

// file is the text of a file in the app's work folder.
func (a *app) file(name string) string {
	a.t.Helper()
	text, err := os.ReadFile(filepath.Join(a.work, name))
	must(a.t, err)
	return string(text)
}

// starts tells whether a process is the script of an instance that does START.
func (a *app) starts(pid int, name string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && strings.Contains(string(text), "/"+name+"/") && strings.Contains(string(text), "\x00START\x00")
}

// kill ends the process of an instance, as the instance's own pid file names it, by SIGKILL, and waits for its next
// life. It gives how the last one ended, in muster's words.
func (a *app) kill(name, pidFile string) string {
	a.t.Helper()
	a.await("START of "+name+" to be over", func() bool { // or START would see the process die, and fail
		return !slices.ContainsFunc(a.jail.Processes(), func(pid int) bool { return a.starts(pid, name) })
	})
	before := a.instances()[name]
	// The end of the process ends what was started beside it: the shell goes before.
	a.do("exec", a.name+"/"+name, "--", "sh", "-c", "pid=`cat "+pidFile+"`; (sleep 0.2; kill -9 $pid) > /dev/null 2>&1 < /dev/null &")
	var now instance
	a.await(name+" to run again", func() bool {
		now = a.instances()[name]
		return now.started() && now.Attempt > before.Attempt
	})
	return now.LastEnd
}

// flex changes how many instances a component has, once it has been said that this starts and stops these alone.
func (a *app) flex(component string, count int, starts, stops string) {
	a.t.Helper()
	args := []string{"--component", component, strconv.Itoa(count)}
	said := string(a.slider("flex", append(args, "--explain")...))
	if want := "\n  stops: " + stops + "\n  starts: " + starts + "\n  restarts: none\n"; !strings.Contains(said, want) {
		a.t.Errorf("flex %q --explain says %q, want %q in it", args, said, want)
	}
	a.slider("flex", args...)
}

// left asserts that these instances are in the life that they were in.
func (a *app) left(before map[string]instance) {
	a.t.Helper()
	now := a.instances()
	for name, was := range before {
		if is := now[name]; is.Attempt != was.Attempt || is.Since != was.Since {
			a.t.Errorf("%s is in attempt %d since %s, want attempt %d since %s as before",
				name, is.Attempt, is.Since, was.Attempt, was.Since)
		}
	}
}

// stop stops the app: each instance's STOP has run, and nothing of it runs any longer.
func (a *app) stop(instances ...string) {
	a.t.Helper()
	a.slider("stop")
	for _, name := range instances {
		if told := a.commands(name); len(told) == 0 || told[len(told)-1] != "STOP" {
			a.t.Errorf("%s was told %v, want a STOP at the end", name, told)
		}
	}
	if left := a.jail.Processes(); len(left) > 0 {
		a.t.Errorf("processes are left: %v", left)
	}
	a.slider("destroy", "--force")
	if _, err := os.Stat(a.work); !os.IsNotExist(err) {
		a.t.Errorf("destroy has left %s: %v", a.work, err)
	}
}

// commands are those that the script of an instance was told, one after the other, STATUS aside.
func (a *app) commands(name string) []string {
	a.t.Helper()
	files, err := filepath.Glob(filepath.Join(a.work, "log", name, "command-*.json"))
	must(a.t, err)
	slices.SortFunc(files, func(x, y string) int { return a.written(x).Compare(a.written(y)) })
	var all []string
	for _, file := range files {
		var command struct {
			RoleCommand string `json:"roleCommand"`
		}
		text, err := os.ReadFile(file)
		must(a.t, err)
		must(a.t, json.Unmarshal(text, &command))
		all = append(all, command.RoleCommand)
	}
	return all
}

// written is when a file was written.
func (a *app) written(name string) time.Time {
	a.t.Helper()
	info, err := os.Stat(name)
	must(a.t, err)
	return info.ModTime()
}

// tell shows the logs of an app whose test has failed.
func (a *app) tell() {
	if !a.t.Failed() {
		return
	}
	for _, pattern := range []string{
		"run.err", "log/*/agent.log", "log/*/std*.log", "log/*/errors-*", "*/application.*", "log/*/*.out",
	} {
		files, err := filepath.Glob(filepath.Join(a.work, pattern))
		must(a.t, err)
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil {
				a.t.Logf("%s:\n%s", file, child.Tail(string(text), 20))
			}
		}
	}
}
