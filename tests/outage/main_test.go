// Package outage_test plays what may befall the network between hosts and Consul: network namespaces are the hosts, a
// real Consul is in one of them, and links are cut and healed while a gang runs. Each process holds a lock of its rank,
// so that two of one rank at any moment would be seen. Times are the product's own and pass: the scenarios wait for what
// is said and done, side by side.
package outage_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/netns"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// atOnce is how many scenarios run side by side: all of them, as they hardly do anything but wait.
const atOnce = 8

// muster is the program under test; TestMain builds it.
var muster string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == puppetVerb {
		os.Exit(puppet())
	}
	flag.Parse()
	os.Exit(binary.Main(func(built string) int {
		muster = built
		if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < atOnce {
			if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}))
}

// The hosts: three for the members, one to spare, and Consul's.
const (
	spare      = 3
	consulHost = 4
	hosts      = 5
)

// watchdog ends a test that has gone wrong: it is longer than the longest time of a scenario.
const watchdog = 200 * time.Second

// job is a gang of workers, each on a host of its own. Methods end the test on errors.
type job struct {
	t      *testing.T
	net    *netns.Net
	server *consulserver.Server
	app    string
	top    string
	times  []string
	actors chan *actor // as they start
	early  chan string // agents that have ended before any test waited for that

	mu     sync.Mutex
	starts []*actor
}

// actor is a member's process.
type actor struct {
	word
	at   time.Time
	conn net.Conn
	term chan struct{} // closed when it has heard TERM
	gone chan struct{} // closed at its end
	end  time.Time     // set before that
}

// agent is a muster agent on a host.
type agent struct {
	*exec.Cmd
	j    *job
	log  string
	done chan struct{}
}

type settings = map[string]string

// newJob starts Consul and lays out an app of three workers.
func newJob(t *testing.T, more settings, times ...string) *job {
	t.Helper()
	if testing.Short() {
		t.Skip("waits for what takes its time: not with -short")
	}
	need.Root(t)
	j := &job{t: t, net: netns.New(t, hosts), app: "o" + strings.ToLower(rand.Text()[:8]), times: times, actors: make(chan *actor, 64), early: make(chan string, 64)}
	j.server = consulserver.Start(t, consulserver.Options{Net: j.net, Host: consulHost})
	j.top = folder.Temp(t, "mo-")
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(j.top, "*.log"))
			for _, path := range logs {
				text := j.read(path)
				t.Logf("%s:\n%s", path, text[max(0, len(text)-8000):])
			}
		}
	})
	j.stage()
	j.define(more)
	return j
}

// define lays the app package out.
func (j *job) define(more settings) {
	self, err := os.Executable()
	j.must(err)
	global := settings{
		"muster.framework": "none", "muster.command": fmt.Sprintf("exec %q %s", self, puppetVerb), "muster.restart.backoff": "0.05",
		"muster.env." + stageVariable: j.stageDir(), "site.global.worker.port": "${worker.ALLOCATED_PORT}{PER_CONTAINER}",
	}
	maps.Copy(global, more)
	type object = map[string]any
	const schema = "http://example.org/specification/v2.0.0"
	export := object{"name": "address", "value": "${worker_HOST}:${site.global.worker.port}"}
	for name, value := range map[string]any{
		"metainfo.json": object{"schemaVersion": "2.1", "application": object{
			"name": "outage", "version": "1", "exportGroups": []any{object{"name": "worker", "exports": []any{export}}},
			"components": []any{object{"name": "worker", "category": "SLAVE", "compExports": "worker-address"}},
		}},
		"appConfig.default.json": object{"schema": schema, "global": global, "components": object{"worker": object{}}},
		"resources.default.json": object{"schema": schema, "global": object{}, "components": object{"worker": settings{
			"yarn.role.priority": "1", "yarn.component.instances": "3", "yarn.memory": "64", "yarn.vcores": "1",
		}}},
	} {
		text, err := json.Marshal(value)
		j.must(err)
		j.must(os.MkdirAll(filepath.Join(j.top, "app"), 0o755))
		j.must(os.WriteFile(filepath.Join(j.top, "app", name), text, 0o644))
	}
}

// stage hears the processes: each says that it has started, and its connection ends with it.
func (j *job) stage() {
	path := filepath.Join(folder.OfAll(j.t, j.stageDir()), "stage.sock")
	l, err := net.Listen("unix", path)
	j.must(err)
	j.must(os.Chmod(path, 0o777)) //nolint:gosec // processes of any user connect
	var hearers sync.WaitGroup
	j.t.Cleanup(func() { // after the agents' end: what is seen until then counts
		_ = l.Close()
		j.mu.Lock()
		for _, a := range j.starts {
			_ = a.conn.Close()
		}
		j.mu.Unlock()
		hearers.Wait()
	})
	hearers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			hearers.Go(func() { j.hear(conn) })
		}
	})
}

// stageDir is where processes have their locks.
func (j *job) stageDir() string { return filepath.Join(j.top, "stage") }

func (j *job) hear(conn net.Conn) {
	a := &actor{at: time.Now(), conn: conn, term: make(chan struct{}), gone: make(chan struct{})}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &a.word) != nil {
		return
	}
	if a.Twice {
		j.t.Errorf("two processes of %s at %s", a.Name, a.at.Format(time.TimeOnly))
	}
	j.mu.Lock()
	j.starts = append(j.starts, a)
	j.mu.Unlock()
	j.actors <- a
	if lines.Scan() {
		close(a.term)
	}
	for lines.Scan() {
	}
	a.end = time.Now()
	close(a.gone)
}

// agent starts the agent of worker-i on a host. A launcher started it, as far as it knows: it stands by behind a holder.
func (j *job) agent(host, i int) *agent {
	j.t.Helper()
	args := append([]string{
		"agent", "--app", filepath.Join(j.top, "app"), "--app-id", j.app, "--component", "worker", "--index", strconv.Itoa(i),
		"--host", j.net.Addr(host), "--work-dir", filepath.Join(j.top, fmt.Sprint("w", host)), "--state-dir", j.state(host),
		"--registry", j.server.URL(), "--engine", "process",
	}, j.times...)
	cmd := j.net.Command(host, muster, args...)
	path := filepath.Join(j.top, fmt.Sprintf("agent-%d-host-%d.log", i, host))
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	j.must(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.top, "LANG=C", "NOMAD_ALLOC_ID=" + rand.Text()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	j.must(cmd.Start())
	a := &agent{Cmd: cmd, j: j, log: path, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its state tells
		if code := cmd.ProcessState.ExitCode(); code != 0 && code != 75 {
			j.early <- filepath.Base(path)
		}
		close(a.done)
	}()
	j.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Signal(syscall.SIGTERM) // it has ended where all went well
		select {
		case <-a.done:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			<-a.done
		}
	})
	return a
}

func (j *job) state(host int) string { return filepath.Join(j.top, fmt.Sprint("s", host)) }

// begin starts the three agents and returns them with their processes, by index.
func (j *job) begin() ([]*agent, []*actor) {
	j.t.Helper()
	var agents []*agent
	for i := range 3 {
		agents = append(agents, j.agent(i, i))
	}
	cast := make([]*actor, 3)
	for range cast {
		a := j.next()
		cast[a.index()] = a
	}
	return agents, cast
}

func (a *actor) index() int { return int(a.Name[len(a.Name)-1] - '0') }

// next is the process that starts next.
func (j *job) next() *actor {
	j.t.Helper()
	select {
	case a := <-j.actors:
		return a
	case log := <-j.early:
		j.t.Fatalf("%s has ended", log)
	case <-time.After(watchdog):
		j.t.Fatalf("no process has started within %s", watchdog)
	}
	return nil
}

// finish lets processes end with 0, and their agents with them.
func (j *job) finish(agents []*agent, cast ...*actor) {
	j.t.Helper()
	for _, a := range cast {
		_ = a.conn.Close()
	}
	for _, a := range agents {
		a.ends(0)
	}
}

// ends waits for the agent's end with that code.
func (a *agent) ends(code int) {
	a.j.t.Helper()
	a.j.wait(a.done, "the end of "+filepath.Base(a.log))
	if got := a.ProcessState.ExitCode(); got != code {
		a.j.t.Errorf("%s: exit code %d, want %d", filepath.Base(a.log), got, code)
	}
}

// says waits for a line of the agent's log.
func (a *agent) says(text string) {
	a.j.t.Helper()
	a.j.await(fmt.Sprintf("%q in %s", text, filepath.Base(a.log)), func() bool { return strings.Contains(a.j.read(a.log), text) })
}

func (j *job) wait(c <-chan struct{}, what string) {
	j.t.Helper()
	select {
	case <-c:
	case <-time.After(watchdog):
		j.t.Fatalf("not seen within %s: %s", watchdog, what)
	}
}

// await looks again and again until see says yes.
func (j *job) await(what string, see func() bool) {
	j.t.Helper()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for !see() {
		select {
		case <-poll.C:
		case <-dog.C:
			j.t.Fatalf("not seen within %s: %s", watchdog, what)
		}
	}
}

// stay asserts that the processes live and nobody has asked them to end.
func (j *job) stay(cast ...*actor) {
	j.t.Helper()
	for _, a := range cast {
		select {
		case <-a.term:
			j.t.Errorf("%s was told to stop", a.Name)
		case <-a.gone:
			j.t.Errorf("%s has ended", a.Name)
		default:
		}
	}
}

// count is how many processes have started.
func (j *job) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.starts)
}

func (j *job) read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		j.t.Fatal(err)
	}
	return string(text)
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// view is what muster status says on a host.
type view struct {
	Phase     string
	Instances []struct {
		Instance, Phase, Cause string
		Outage                 *struct {
			CutOff  int `json:"cut_off"`
			Members int
			Fenced  bool
		}
		Waits []struct {
			Instance string
			Mass     bool
		}
	}
}

func (j *job) view(host int) view {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	at := j.net.Command(host, muster, "status", j.app, "--json", "--state-dir", j.state(host))
	cmd := exec.CommandContext(ctx, at.Path, at.Args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.top}
	out, err := cmd.Output()
	var v view
	if err := errors.Join(err, json.Unmarshal(out, &v)); err != nil {
		j.t.Fatalf("muster status: %v: %s", err, out)
	}
	return v
}

// adopt runs muster adopt on a host.
func (j *job) adopt(host int) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	at := j.net.Command(host, muster, "adopt", j.app, "--state-dir", j.state(host))
	cmd := exec.CommandContext(ctx, at.Path, at.Args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.top}
	if out, err := cmd.CombinedOutput(); err != nil {
		j.t.Fatalf("muster adopt: %v: %s", err, out)
	}
}

// member is worker-i's record, as it is in Consul.
func (j *job) member(i int) (m registry.Member) {
	j.t.Helper()
	j.key(fmt.Sprint("members/worker/", i), &m)
	return m
}

func (j *job) directive() (d registry.Directive) {
	j.t.Helper()
	j.key("directive", &d)
	return d
}

func (j *job) key(name string, into any) {
	j.t.Helper()
	out, err := j.consul("kv", "get", "muster/"+j.app+"/"+name)
	if err := errors.Join(err, json.Unmarshal([]byte(out), into)); err != nil {
		j.t.Fatalf("read %s: %v: %s", name, err, out)
	}
}

// consul runs Consul's own command on its host.
func (j *job) consul(args ...string) (string, error) {
	j.t.Helper()
	binary, err := consulserver.Binary()
	j.must(err)
	cmd := j.net.Command(consulHost, binary, args...)
	cmd.Env = []string{"CONSUL_HTTP_ADDR=" + j.server.HTTPAddr}
	out, err := cmd.Output()
	return string(out), err
}

// served are the hosts that Consul's catalog has for worker-i.
func (j *job) served(i int) (hosts []string) {
	j.t.Helper()
	out, err := j.consul("watch", "-type=service", "-service="+registry.ServiceName(j.app, "worker"))
	var all []struct {
		Service struct {
			Address string
			Meta    map[string]string
		}
	}
	if err := errors.Join(err, json.Unmarshal([]byte(out), &all)); err != nil {
		j.t.Fatalf("read the catalog: %v: %s", err, out)
	}
	for _, one := range all {
		if one.Service.Meta["index"] == strconv.Itoa(i) {
			hosts = append(hosts, one.Service.Address)
		}
	}
	return hosts
}

// onlyAt waits until worker-i is in Consul's catalog on that host, and nowhere else.
func (j *job) onlyAt(i, host int) {
	j.t.Helper()
	j.await(fmt.Sprintf("worker-%d in the catalog on host %d alone", i, host), func() bool {
		at := j.served(i)
		return len(at) == 1 && at[0] == j.net.Addr(host)
	})
}
