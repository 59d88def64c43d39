package yarn_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// sliderStatus is what these tests read of `muster slider status`.
type sliderStatus struct {
	State      int
	Info       map[string]string
	Statistics map[string]map[string]int
	Instances  map[string][]string
	Status     struct {
		Live map[string]map[string]struct {
			Host  string
			Ports map[string]int
		}
	}
}

// TestSlider: with a Hadoop configuration Slider's commands are about apps on YARN, from create to destroy.
func TestSlider(t *testing.T) {
	l := labWith(t, queues)
	const app = "slid"
	slider := func(args ...string) string { return l.slider(0, args...) }
	asked := func() (s sliderStatus) {
		if err := json.Unmarshal([]byte(slider("status", app, "--manager", l.y.RM)), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	l.steps(app, 1_000_000)
	said := slider("create", app, "--appdef", "catalog:handwriting", "--component", "worker", "2", "--queue", "train",
		"--registry", l.consul.URL(), "--engine", "process", "--option", "muster.checkpoint.sync", l.dir+"/kept",
		"--option", "site.global.train.steps", "$(cat "+l.stepsOf(app)+")", "--option", "site.global.train.pace", "0.1",
		"--option", "site.global.train.checkpoint.every", "10")
	first := strings.TrimSpace(strings.TrimPrefix(said, app+": accepted by YARN as "))
	if !applicationID.MatchString(first) {
		t.Fatalf("create says %q, want the application's id", said)
	}
	j := &job{lab: l, app: app, form: "service", id: first}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.y.Logs(j.id))
		}
	})
	if got := l.y.Application(first).Queue; !strings.HasSuffix(got, "train") {
		t.Errorf("queue %s, want train", got)
	}
	j.awaitPhase("running")
	s := asked()
	if s.State != 3 || s.Info["yarn.state"] != "RUNNING" || s.Info["yarn.application.id"] != first || len(s.Instances["worker"]) != 2 {
		t.Errorf("status says %+v, want what runs", s)
	}
	if n := s.Statistics["worker"]; n["containers.desired"] != 2 || n["containers.live"] != 2 {
		t.Errorf("statistics of worker: %v, want 2 live", n)
	}
	if got := l.y.Application(first).RunningContainers; got != 1+1+2 {
		t.Errorf("YARN runs %d containers, want the master's, one of ps and two of worker, as status says", got)
	}
	if got := slider("exports", app, "--group", "worker"); !strings.Contains(got, s.Status.Live["worker"]["worker-0"].Host) {
		t.Errorf("exports: %s", got)
	}
	if got := slider("registry", "--name", app, "--listexp"); !strings.Contains(got, "worker") {
		t.Errorf("registry --listexp: %s", got)
	}
	if got := slider("list", app, "--live"); !strings.Contains(got, "RUNNING") {
		t.Errorf("list: %s", got)
	}

	// Up, down and up again: what the service has started before is not counted twice.
	for _, n := range []string{"3", "2", "3"} {
		slider("flex", app, "--component", "worker", n)
		if s := asked(); len(s.Instances["worker"]) != int(n[0]-'0') {
			t.Errorf("after a flex to %s: %v", n, s.Instances)
		}
	}
	j.await("a checkpoint on HDFS", func() bool { return j.stored() > 0 })

	if got := slider("stop", app, "--message", "enough for today"); !strings.Contains(got, "enough for today") {
		t.Errorf("stop: %s", got)
	}
	if got := l.y.Application(first).State; got != "FINISHED" {
		t.Errorf("%s is %s after stop, want FINISHED", first, got)
	}
	if s := asked(); s.State != 4 {
		t.Errorf("status says %+v, want a stopped app", s)
	}
	l.slider(75, "create", app, "--appdef", "catalog:handwriting")

	start := func() {
		said, before := slider("start", app, "--wait", "200"), j.id
		if j.id = strings.Fields(said)[5]; !applicationID.MatchString(j.id) || j.id == before {
			t.Fatalf("start says %q, want another application", said)
		}
	}
	start()
	l.y.Kill(j.id)
	j.ends("KILLED")
	j.awaitPhase("interrupted")
	if s := asked(); s.State != 4 || s.Info["yarn.state"] != "KILLED" {
		t.Errorf("status says %+v, want a killed app", s)
	}
	start()
	if s := j.status(); s.Run != "2" {
		t.Errorf("it runs as run %s, want 2 to go on", s.Run)
	}
	if s := asked(); s.State != 3 || len(s.Instances["worker"]) != 3 {
		t.Errorf("status says %+v, want three workers", s)
	}
	slider("destroy", app, "--force")
	if got := l.y.Application(j.id).State; got != "FINISHED" && got != "KILLED" {
		t.Errorf("%s is %s after destroy", j.id, got)
	}
	l.slider(255, "exists", app)
	if left, _ := l.hdfs.HDFS("dfs", "-ls", "/user/"+hadoop.Nobody+"/.slider").Output(); strings.Contains(string(left), app) {
		t.Errorf("what the runs were brought is left:\n%s", left)
	}
}

// slider runs one of Slider's commands, which is to end with a code, and gives what it says on stdout.
func (l *lab) slider(code int, args ...string) string {
	l.t.Helper()
	cmd := l.command(muster, append([]string{"slider"}, args...)...)
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+filepath.Join(l.own, "home"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := leash.Run(cmd, 2*watchdog)
	if got := cmd.ProcessState.ExitCode(); got != code {
		l.t.Fatalf("muster slider %s: %v, want %d\n%s%s", strings.Join(args, " "), err, code, &stdout, &stderr)
	}
	l.t.Logf("muster slider %s\n%s%s", strings.Join(args[:min(len(args), 4)], " "), &stdout, &stderr)
	return stdout.String()
}
