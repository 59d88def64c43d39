package confine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// Each promise of a limit, in each engine that holds it.
func TestLimits(t *testing.T) {
	need.Root(t)
	for name, promise := range map[string]struct {
		engines []string
		holds   func(t *testing.T, engine string)
	}{
		"memory":     {engines(), memoryHog},
		"autoscale":  {engines(), autoscale},
		"pids":       {engines()[:2], forkBomb},
		"cpu":        {engines()[:2], cpuQuota},
		"ulimits":    {engines(), ulimits},
		"exits":      {engines(), exits},
		"zombies":    {engines(), zombies},
		"tree":       {engines(), deafTree},
		"ctrl-c":     {engines(), interrupted},
		"run killed": {engines(), runKilled},
		"killed":     {engines(), agentKilled},
		"unenforced": {engines(), unenforced},
	} {
		for _, engine := range promise.engines {
			t.Run(name+"/"+engine, func(t *testing.T) {
				t.Parallel()
				promise.holds(t, engine)
			})
		}
	}
}

func memoryHog(t *testing.T, engine string) {
	j := newJob(t, program("hog", "100"), nil)
	if engine == "process" { // its watchdog looks once a second: what is too much has to last
		j = newJob(t, `mkdir -p x && mkfifo hold && `+program("hog", "100"), nil)
	}
	e := j.run("--engine", engine)
	e.fails(t, registry.ClassOOM, 128+int(syscall.SIGKILL), "worker-0 ran out of memory", "limit of 64 MB", "peak ")
	if !strings.Contains(e.Advice, "raise yarn.memory of worker") {
		t.Errorf("advice %q, want what to set", e.Advice)
	}
	x := e.Instances[0].ExitInfo
	if x == nil || !x.OOM || x.Limit != 64<<20 || x.Signal != int(syscall.SIGKILL) || x.Code != nil {
		t.Fatalf("exit %+v, want out of memory at %d by SIGKILL", x, 64<<20)
	}
	// the kernel stops at the limit; the watchdog sees what is beyond it
	if least := int64(60 << 20); x.Peak < least || engine != "process" && x.Peak > x.Limit {
		t.Errorf("peak %d, want about the limit of %d", x.Peak, x.Limit)
	}
}

// A program that needs more than the limit has it at its second attempt.
func autoscale(t *testing.T, engine string) {
	limits := settings{"muster.restart": "instance", "muster.memory.autoscale": "0.5"}
	command := program("hog", "76")
	if engine == "process" { // what is held has to last until the watchdog has looked, in both attempts
		command = `rm -f hold; mkfifo hold; { test $MUSTER_ATTEMPT = 2 && sleep 2.5 && echo >hold; } & ` + command
	}
	j := newJob(t, command, limits)
	e := j.run("--engine", engine)
	if e.code != 0 || e.Restarts != 1 {
		t.Errorf("exit code %d after %d restarts (%s), want 0 after 1", e.code, e.Restarts, e.Cause)
	}
	if said := j.log("agent.log"); !strings.Contains(said, `msg="memory limit raised" from_mb=64 to_mb=96`) {
		t.Error("agent.log does not say that the limit grew from 64 to 96 MB")
	}
}

// Outside of the envelope nothing grows: the launcher's limit is the container that muster was launched in.
func TestAutoscaleStaysInEnvelope(t *testing.T) {
	need.Root(t)
	t.Parallel()
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		t.Skip("a group of cgroup v2 that has processes has no groups of its own")
	}
	launcher := launcherGroup(t, 110)
	j := newJob(t, program("hog", "90"), settings{"muster.restart": "instance", "muster.restart.budget": "2", "muster.memory.autoscale": "0.5"})
	j.wrap = launcher
	e := j.run("--engine", "container")
	e.fails(t, registry.ClassOOM, 128+int(syscall.SIGKILL), "limit of 78 MB")
	if said := j.log("agent.log"); !strings.Contains(said, "from_mb=64 to_mb=78") {
		t.Error("agent.log does not say that the limit grew to what the launcher leaves, 78 MB")
	}
	j.define(program("hog", "1"), settings{"yarn.memory": "200"})
	j.app += "x"
	if e := j.start("run", j.dir, "--app-id", j.app, "--work-dir", j.work); e.wait() != 65 || !strings.Contains(e.err(), "got 200 MB, want at most 78 MB; the launcher's limit is 110 MB") {
		t.Errorf("a request above the envelope ended with %d: %s; want 65 with both figures", e.wait(), e.err())
	}
}

// launcherGroup makes a cgroup with so many MB, as a resource manager does, and gives the words that start a program in it.
func launcherGroup(t *testing.T, mb int) []string {
	t.Helper()
	dir := groupDir(t, "memory")
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte(strconv.Itoa(mb<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"sh", "-c", `echo $$ >` + dir + `/cgroup.procs && exec "$@"`, "launcher"}
}

// groupDir is a new cgroup of a controller, below the one that the test runs in.
func groupDir(t *testing.T, controller string) string {
	t.Helper()
	dir := filepath.Join("/sys/fs/cgroup", controller, ownGroup(t, controller), "muster-confine-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		need.Skip(t, "needs a cgroup of v1 that can be written: "+err.Error())
	}
	t.Cleanup(func() {
		await(t, "the end of "+dir, func() bool { return removed(dir) })
	})
	return dir
}

// removed takes a cgroup away with those below it; a cgroup whose processes have only just ended is not empty yet.
func removed(dir string) bool {
	below, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	for _, file := range below {
		if !removed(filepath.Dir(file)) {
			return false
		}
	}
	err := os.Remove(dir)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// ownGroup is the cgroup of a controller that this process is in.
func ownGroup(t *testing.T, controller string) string {
	t.Helper()
	for line := range strings.Lines(read("/proc/self/cgroup")) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 && fields[1] == controller {
			return fields[2]
		}
	}
	need.Skip(t, "needs cgroup v1 with "+controller)
	return ""
}

func forkBomb(t *testing.T, engine string) {
	const limit = 40
	out := newJob(t, program("forks", "300"), settings{"muster.pids": strconv.Itoa(limit)}).succeeds("--engine", engine)
	has(t, out, map[string]string{"refused": "EAGAIN"})
	text, _ := lineOf(out, "children")
	if n, err := strconv.Atoi(text); err != nil || n >= limit || n < limit-5 {
		t.Errorf("%s children, want a little less than %d: the program itself and the guard count too", text, limit)
	}
}

// cpuQuota asserts the kernel's own account of a hard limit: what was used is no more than the quota, and that it was
// held back is counted. Where others leave it less than a core there is nothing to hold back.
func cpuQuota(t *testing.T, engine string) {
	j := newJob(t, "python3 app/definition/package/files/spin.py && mkfifo hold && echo over && cat hold", settings{"muster.cpu.hard": "true"})
	p := j.begin("--engine", engine)
	j.sees("running")
	if quota, period := j.cgroupFile("cpu.cfs_quota_us"), j.cgroupFile("cpu.cfs_period_us"); quota == "" || quota != period {
		t.Errorf("the kernel's quota is %q µs in %q µs, want one core", quota, period)
	}
	throttled := func() bool { return j.counter("cpu.stat", "nr_throttled") > 0 }
	for end := time.Now().Add(15 * time.Second); !throttled() && time.Now().Before(end); {
		<-time.After(10 * time.Millisecond) // the kernel tells nobody
	}
	counted := throttled()
	j.must(os.WriteFile(j.own("enough"), nil, 0o644))
	j.says("over")
	used, elapsed := j.seconds("used"), j.seconds("elapsed")
	// A period's quota may be left over from before, on each of the cores.
	if used > elapsed+0.2 {
		t.Errorf("%.2f s of CPU in %.2f s, want no more than one core", used, elapsed)
	}
	if !counted && used > 0.9*elapsed {
		t.Errorf("%.2f s of CPU in %.2f s by two processes, and cpu.stat of %v counts no throttling", used, elapsed, j.cgroups())
	}
	t.Logf("%.2f s of CPU in %.2f s, throttled in %d periods", used, elapsed, j.counter("cpu.stat", "nr_throttled"))
	j.release()
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// seconds is a figure that the program wrote.
func (j *job) seconds(word string) float64 {
	j.t.Helper()
	n, err := strconv.ParseFloat(j.says(word), 64)
	j.must(err)
	return n
}

// counter is a line of a file of the first worker's cgroups; 0 where there is none.
func (j *job) counter(file, word string) int {
	j.t.Helper()
	for _, dir := range j.cgroups() {
		if text, ok := lineOf(read(filepath.Join(dir, file)), word); ok {
			n, err := strconv.Atoi(text)
			j.must(err)
			return n
		}
	}
	return 0
}

// cgroupFile is what a file of the first worker's cgroups says; empty where none of them has it.
func (j *job) cgroupFile(name string) string {
	j.t.Helper()
	for _, dir := range j.cgroups() {
		if text := strings.TrimSpace(read(filepath.Join(dir, name))); text != "" {
			return text
		}
	}
	return ""
}

// release lets a program go on that reads the FIFO hold in its folder.
func (j *job) release() {
	j.t.Helper()
	f, err := os.OpenFile(j.own("hold"), os.O_WRONLY, 0)
	if err != nil {
		j.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		j.t.Fatal(err)
	}
}

func ulimits(t *testing.T, engine string) {
	j := newJob(t, "echo files $(ulimit -Sn) $(ulimit -Hn); echo core $(ulimit -c)", settings{"muster.ulimit.nofile": "300:400", "muster.ulimit.core": "0"})
	has(t, j.succeeds("--engine", engine), map[string]string{"files": "300 400", "core": "0"})
}

// unenforced: what an engine does not hold stands in the plan, in the status and in one warning, and is insisted on by
// --require-limits.
func unenforced(t *testing.T, engine string) {
	j := newJob(t, "mkfifo hold; echo here; cat hold", settings{"muster.pids": "40", "muster.cpu.hard": "true", "muster.shm": "8"})
	want := map[string][]string{"container": {}, "cgroup": {"shm_mb"}, "process": {"cpu_hard", "pids", "shm_mb", "vcores"}}[engine]
	j.names(want, engine)
	if len(want) == 0 {
		return
	}
	j.app += "r"
	e := j.run("--engine", engine, "--require-limits")
	e.fails(t, registry.ClassNotPermitted, 77, append([]string{"--require-limits: engine " + engine + " does not enforce"}, want...)...)
}

// names runs the job and asserts which limits the plan, the status and the warnings name.
func (j *job) names(want []string, engine string) {
	j.t.Helper()
	var planned []string
	for _, u := range j.plan("--engine", engine).Engine.Unenforced {
		planned = append(planned, u.Limit)
		if u.Why == "" {
			j.t.Errorf("plan: %s without a reason", u.Limit)
		}
	}
	p := j.begin("--engine", engine)
	j.says("here")
	shown := j.status().Instances[0].Unenforced
	j.release()
	if code := p.wait(); code != 0 {
		j.t.Errorf("exit code %d, want 0", code)
	}
	if fmt.Sprint(planned) != fmt.Sprint(want) || fmt.Sprint(shown) != fmt.Sprint(want) {
		j.t.Errorf("not enforced by the plan %v, by the status %v, want %v", planned, shown, want)
	}
	for _, limit := range want {
		if n := strings.Count(j.log("agent.log"), `msg="limit is not enforced" limit=`+limit+" "); n != 1 {
			j.t.Errorf("%d warnings of %s, want one", n, limit)
		}
	}
}

func exits(t *testing.T, engine string) {
	for command, want := range map[string]struct{ code, signal, shell int }{
		"exit 7":        {7, 0, 7},
		"kill -SEGV $$": {-1, int(syscall.SIGSEGV), 128 + int(syscall.SIGSEGV)},
		"kill -KILL $$": {-1, int(syscall.SIGKILL), 128 + int(syscall.SIGKILL)},
		"(exit 255)":    {255, 0, 255},
	} {
		t.Run(command, func(t *testing.T) {
			e := newJob(t, command, nil).run("--engine", engine)
			e.fails(t, registry.ClassApp, want.shell)
			x := e.Instances[0].ExitInfo
			code := -1
			if x != nil && x.Code != nil {
				code = *x.Code
			}
			if x == nil || code != want.code || x.Signal != want.signal || x.OOM {
				t.Errorf("exit %+v, want code %d, signal %d", x, want.code, want.signal)
			}
		})
	}
}

func zombies(t *testing.T, engine string) {
	has(t, newJob(t, program("orphans", "100"), nil).succeeds("--engine", engine), map[string]string{"orphans": "100", "zombies": "0"})
}

// What cgroup v1 lacks is named.
func TestHighNeedsV2(t *testing.T) {
	need.Root(t)
	t.Parallel()
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		t.Skip("cgroup v2 has memory.high")
	}
	p := newJob(t, "true", settings{"muster.memory.high": "32"}).plan("--engine", "container")
	if len(p.Engine.Unenforced) != 1 || p.Engine.Unenforced[0].Limit != "high_mb" || !strings.Contains(p.Engine.Unenforced[0].Why, "cgroup v2") {
		t.Errorf("not enforced: %+v, want high_mb for want of cgroup v2", p.Engine.Unenforced)
	}
}
