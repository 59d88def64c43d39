// Package rest_test asks a real muster ui about a real run as programs of the old systems ask, and holds the answers to
// what those systems answer.
package rest_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"
)

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise.
const watchdog = 60 * time.Second

// muster is the program under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

type object = map[string]any

// site is a run with a page.
type site struct {
	t    *testing.T
	dir  string
	link string // that opens the page
	run  *child.Process
}

// worker says that it runs, and what it hears, until it is asked to end.
const worker = `trap 'echo heard' USR1; trap 'exit 0' TERM; mkdir -p model; echo weights >model/w; echo begun
while :; do sleep 0.1; done`

// board answers at its port.
const board = `exec python3 -m http.server --bind "$MUSTER_HOST" "$MUSTER_PORT_SIDE_BOARD"`

// begin runs an app of a ps with a board and two workers, and its page.
func begin(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: folder.Temp(t, "mrs-")}
	folder.Lay(t, s.dir, map[string]string{
		"app/metainfo.json": text(t, object{"schemaVersion": "2.1", "application": object{
			"name": "rest", "version": "1",
			"exportGroups": []object{{"name": "ps", "exports": []object{
				{"name": "host_port", "value": "${ps_HOST}:${site.global.ps.port}"}, {"name": "board", "value": "http://${ps_HOST}:${site.side.board}"},
			}}},
			"components": []object{{"name": "ps", "category": "MASTER", "compExports": "ps-host_port,ps-board"}, {"name": "worker", "category": "MASTER"}},
		}}),
		"app/appConfig.json": text(t, object{"schema": "http://example.org/specification/v2.0.0", "metadata": object{}, "global": object{
			"muster.framework": "none", "muster.command": worker, "site.global.ps.port": "${ps.ALLOCATED_PORT}{PER_CONTAINER}",
		}, "components": object{
			"ps": object{"muster.side.board": board, "muster.side.board.port": "true"}, "worker": object{"muster.output.model": "file:" + s.dir + "/w/out"},
		}}),
		"app/resources.json": text(t, object{"schema": "http://example.org/specification/v2.0.0", "metadata": object{}, "global": object{}, "components": object{
			"ps":     object{"yarn.role.priority": "1", "yarn.component.instances": "1", "yarn.memory": "128", "yarn.vcores": "1"},
			"worker": object{"yarn.role.priority": "2", "yarn.component.instances": "2", "yarn.memory": "256", "yarn.vcores": "1"},
		}}),
		"w/": "", "s/": "", "h/": "",
	})
	folder.OfAll(t, s.dir+"/w/out") // the process is no user of this host
	s.run = s.start("run", "run", filepath.Join(s.dir, "app"), "--app-id", "r1", "--work-dir", filepath.Join(s.dir, "w"), "--engine", "process")
	for _, instance := range []string{"ps-0", "worker-0", "worker-1"} {
		s.await(instance+" has begun", func() bool { return strings.Contains(s.read("w/log/"+instance+"/stdout.log"), "begun") })
	}
	s.start("ui", "ui")
	s.await("the link", func() bool {
		sc := bufio.NewScanner(strings.NewReader(s.read("ui.out")))
		if sc.Scan() {
			s.link = sc.Text()
		}
		return strings.Contains(s.link, "/login?key=")
	})
	return s
}

func text(t *testing.T, document object) string {
	t.Helper()
	b, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s *site) read(name string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// command is a program with nothing of who runs the test in its environment.
func (s *site) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "TMPDIR=/tmp",
		"HOME=" + s.dir + "/h", "MUSTER_AGENT_STATE_DIR=" + s.dir + "/s", "GORACE=" + os.Getenv("GORACE"),
	}
	return cmd
}

// start starts a verb, whose output lies in NAME.out, until the end of the test.
func (s *site) start(name string, args ...string) *child.Process {
	s.t.Helper()
	p, err := child.StartApart(s.command(muster, args...), filepath.Join(s.dir, name+".out"), filepath.Join(s.dir, name+".err"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := p.End(syscall.SIGTERM, watchdog/2); err != nil {
			s.t.Error(err)
		}
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s%s", name, s.read(name+".out"), s.read(name+".err"))
		}
	})
	return p
}

func (s *site) await(what string, see func() bool) {
	s.t.Helper()
	end := time.Now().Add(watchdog)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !see() {
		if s.run != nil && s.run.Ended(0) || time.Now().After(end) {
			s.t.Fatalf("not seen: %s\n%s", what, s.read("run.err"))
		}
		<-look.C
	}
}

// answer is a status and a body: a string, or what its JSON says.
type answer struct {
	code int
	body any
}

func (a *answer) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&a.code, &a.body}) }

// at is a value below the body by its keys and indexes.
func (a *answer) at(path ...any) any {
	v := a.body
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(object)
			v = o[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

// A program that asks as HBox's, PAI's and Slider's users do is answered as they were, a signal and a save reach the
// processes, and a stop ends the run.
func TestOldClients(t *testing.T) {
	s := begin(t)
	script, err := filepath.Abs("client.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command("python3", script, s.link, "r1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]*answer
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		code int
		path []any
		want any
	}{
		{"app", 200, []any{"appId"}, "r1"},
		{"app", 200, []any{"workerNum"}, 2.0},
		{"app", 200, []any{"workerMem"}, "0.25 GB"},
		{"app", 200, []any{"psNum"}, 1.0},
		{"containers", 200, []any{"containerInfos", 0, "cid"}, "ps-0"},
		{"containers", 200, []any{"containerInfos", 2, "status"}, "RUNNING"},
		{"container", 200, []any{"cid"}, "worker-1"},
		{"stdout", 200, nil, "begun\n"},
		{"nothing", 200, nil, ""},
		{"evaluator", 200, nil, ""},
		{"signal", 200, nil, "SUCCEED"},
		{"signal_failed", 200, nil, "FAILED"},
		{"ps", 200, []any{"entries", "host_port", 0, "level"}, "component"},
		{"live", 200, []any{"worker", "actual"}, 2.0},
		{"jobs", 200, []any{0, "state"}, "RUNNING"},
		{"jobs", 200, []any{0, "totalTaskNumber"}, 3.0},
		{"job", 200, []any{"taskRoles", "worker", "taskStatuses", 1, "taskState"}, "RUNNING"},
		{"job", 200, []any{"jobStatus", "subState"}, "APPLICATION_RUNNING"},
		{"config", 200, []any{"taskRoles", 1, "taskNumber"}, 2.0},
		{"ssh", 404, []any{"code"}, "NoJobSshInfoError"},
		{"no_job", 404, []any{"code"}, "NoJobError"},
		{"submit", 501, []any{"code"}, "NotOffered"},
		{"start", 501, []any{"code"}, "NotOffered"},
		{"stop", 202, []any{"message"}, "job r1 is asked to stop"},
	} {
		a := got[tt.name]
		if v := a.at(tt.path...); a.code != tt.code || v != tt.want {
			t.Errorf("%s %v: %d %v, want %d %v; all of it: %v", tt.name, tt.path, a.code, v, tt.code, tt.want, a.body)
		}
	}
	if url, _ := got["boardUrl"].body.(string); !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Errorf("boardUrl %v", got["boardUrl"])
	}
	to, _ := got["savemodel"].at("outputInfos", 0).(string)
	if files, _ := filepath.Glob(filepath.Join(strings.TrimPrefix(to, "file:"), "worker-0", "*")); len(files) == 0 {
		t.Errorf("saved in %v: no files of worker-0", got["savemodel"])
	}
	if !s.run.Ended(watchdog) {
		t.Fatal("the run goes on after PAI's STOP")
	}
	if text := s.read("w/log/worker-0/stdout.log"); !strings.Contains(text, "heard\n") {
		t.Errorf("worker-0 has heard no signal: %s", text)
	}
	if text := s.read("w/log/worker-1/stdout.log"); strings.Contains(text, "heard") {
		t.Errorf("HBox's signal went to more than one process: %s", text)
	}
}
