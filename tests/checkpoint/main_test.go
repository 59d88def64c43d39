// Package checkpoint_test loses training hosts: network namespaces are hosts, whose links are cut, and each has folders of its
// own. What is asserted is where the processes go on from, and what lies in the store. Every wait is for a line or a file, and
// a watchdog ends only a test that has gone wrong.
package checkpoint_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/netns"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// watchdog bounds one wait.
const watchdog = 60 * time.Second

// muster is the program under test; TestMain builds it.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return hadoop.Main(m)
	}))
}

// lab is one app whose agents are on several hosts. The last host has the registry.
type lab struct {
	t      *testing.T
	hosts  *netns.Net
	consul *consulserver.Server
	app    string
	top    string
	store  string // URL of muster.checkpoint.sync
	shared string // a folder beside top that all hosts see
	env    []string
	ttl    time.Duration // of sessions
}

const workerHosts, registryHost = 3, 3

type settings = map[string]string

func newLab(t *testing.T, store string, more settings) *lab {
	t.Helper()
	l := &lab{t: t, hosts: netns.New(t, workerHosts+1), consul: consulserver.Start(t, consulserver.Options{}), app: "c" + strings.ToLower(rand.Text()[:8]), ttl: 10 * time.Second}
	l.relay(registryHost, l.hosts.Addr(registryHost)+":8500", l.consul.HTTPAddr)
	l.top = folder.Temp(t, "mc-")
	if l.store = store; store == "" {
		l.store = folder.OfAll(t, filepath.Join(l.top, "store"))
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(l.top, "*", "log", "*", "*.log"))
			for _, path := range logs {
				text := l.read(path)
				t.Logf("%s:\n%s", path, text[max(0, len(text)-8000):])
			}
		}
	})
	global := settings{
		"muster.framework": "none", "muster.restart": "gang", "muster.restart.backoff": "0.05s", "muster.checkpoint.pattern": "ckpt-*",
		"muster.checkpoint.dir": "${AGENT_WORK_ROOT}/saves", "muster.checkpoint.sync": l.store,
		"muster.command": "exec bash app/definition/package/files/worker.sh", "muster.env.CONTROL": l.control(""),
	}
	maps.Copy(global, more)
	maps.DeleteFunc(global, func(_, value string) bool { return value == "" })
	l.takesOrders()
	l.layOut(global)
	return l
}

// takesOrders makes the folder of what workers are told: they take it away, whosever it is.
func (l *lab) takesOrders() {
	l.must(os.MkdirAll(l.control(""), 0o755))
	l.must(os.Chmod(l.control(""), 0o777)) //nolint:gosec // see above
}

// operator names the policy of the lab's hosts: agents that are root keep checkpoints in the lab's own folder.
func (l *lab) operator() string {
	l.t.Helper()
	path := filepath.Join(l.top, "policy.json")
	roots := []settings{{"path": l.top}}
	if l.shared != "" {
		roots = append(roots, settings{"path": l.shared})
	}
	text, err := json.Marshal(map[string]any{"version": 1, "roots": roots})
	l.must(err)
	l.must(os.WriteFile(path, text, 0o600))
	return "MUSTER_AGENT_POLICY=" + path
}

// layOut lays the app out: two workers.
func (l *lab) layOut(global settings) {
	type object = map[string]any
	const schema = "http://example.org/specification/v2.0.0"
	for name, value := range map[string]any{
		"metainfo.json": object{"schemaVersion": "2.1", "application": object{
			"name": "saver", "version": "1", "components": []any{object{"name": "worker", "category": "SLAVE"}},
		}},
		"appConfig.default.json": object{"schema": schema, "global": global, "components": object{"worker": object{}}},
		"resources.default.json": object{"schema": schema, "global": object{}, "components": object{"worker": settings{
			"yarn.role.priority": "1", "yarn.component.instances": "2", "yarn.memory": "64", "yarn.vcores": "1",
		}}},
	} {
		text, err := json.Marshal(value)
		l.must(err)
		l.must(os.MkdirAll(filepath.Join(l.top, "app", "package"), 0o755))
		l.must(os.WriteFile(filepath.Join(l.top, "app", name), text, 0o600))
	}
	l.must(os.CopyFS(filepath.Join(l.top, "app", "package", "files"), os.DirFS("testdata")))
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) read(path string) string {
	text, _ := os.ReadFile(path) // not there yet is empty
	return string(text)
}

func (l *lab) control(name string) string { return filepath.Join(l.top, "control", name) }

// work is a host's work folder.
func (l *lab) work(host int) string { return filepath.Join(l.top, "h"+strconv.Itoa(host)) }

func (l *lab) log(host, worker int, name string) string {
	return filepath.Join(l.work(host), "log", fmt.Sprintf("worker-%d", worker), name)
}

// relay has what connects to an address on a host reach a server of this machine.
func (l *lab) relay(host int, at, server string) {
	l.t.Helper()
	var listener net.Listener
	l.must(l.hosts.Do(host, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(context.Background(), "tcp", at)
		return err
	}))
	l.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := new(net.Dialer).DialContext(context.Background(), "tcp", server)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in); _ = out.(*net.TCPConn).CloseWrite() }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
}

// agent launches worker-N on a host.
func (l *lab) agent(host, worker int) *exec.Cmd {
	l.t.Helper()
	cmd := l.hosts.Command(host, muster, "agent", "--app", filepath.Join(l.top, "app"), "--app-id", l.app, "--run", "1", "--component", "worker",
		"--index", strconv.Itoa(worker), "--host", l.hosts.Addr(host), "--work-dir", l.work(host), "--state-dir", filepath.Join(l.top, "s"+strconv.Itoa(host)),
		"--registry", "consul://"+l.hosts.Addr(registryHost)+":8500", "--engine", "process", "--env", fmt.Sprintf("HOST=h%d", host),
		"--session-ttl", l.ttl.String(), "--lost-grace", (6 * l.ttl).String())
	path, err := exec.LookPath(cmd.Args[0])
	l.must(err)
	cmd.Path = path
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.work(host), "LANG=C", l.operator()}, l.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	l.must(cmd.Start())
	l.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// ends waits for an agent's end and gives its code.
func (l *lab) ends(cmd *exec.Cmd) int {
	l.t.Helper()
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	select {
	case err := <-over:
		exit, _ := errors.AsType[*exec.ExitError](err)
		if exit != nil {
			return exit.ExitCode()
		}
		l.must(err)
	case <-time.After(watchdog):
		l.t.Fatal("an agent does not end")
	}
	return 0
}

// await looks again and again until see says yes.
func (l *lab) await(what string, see func() bool) {
	l.t.Helper()
	poll := time.NewTicker(30 * time.Millisecond)
	defer poll.Stop()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for !see() {
		select {
		case <-poll.C:
		case <-dog.C:
			l.t.Fatalf("not seen within %s: %s", watchdog, what)
		}
	}
}

// says waits for a line in what a worker printed, or its agent logged.
func (l *lab) says(host, worker int, name, text string) {
	l.t.Helper()
	l.await(fmt.Sprintf("%q of worker-%d on host %d", text, worker, host), func() bool { return strings.Contains(l.read(l.log(host, worker, name)), text) })
}

// save has the worker on a host save a step, and waits until its agent has it in the store and the registry.
func (l *lab) save(host, worker, step int) {
	l.t.Helper()
	l.order(host, step)
	l.says(host, worker, "agent.log", fmt.Sprintf(`msg="checkpoint uploaded" step=%d `, step))
	l.await(fmt.Sprintf("step %d of worker-%d in the registry", step, worker), func() bool {
		return strings.Contains(l.kv(fmt.Sprintf("checkpoint/worker/%d", worker)), fmt.Sprintf(`{"step":%d,`, step))
	})
}

func (l *lab) order(host, step int) {
	l.must(os.WriteFile(l.control(fmt.Sprintf(".h%d", host)), []byte(strconv.Itoa(step)), 0o644))
	l.must(os.Rename(l.control(fmt.Sprintf(".h%d", host)), l.control(fmt.Sprintf("h%d.save", host))))
}

// kv is the value of a key of the app; empty: there is none.
func (l *lab) kv(key string) string { return l.get(key + "?raw") }

func (l *lab) get(key string) string {
	l.t.Helper()
	resp, err := http.Get("http://" + l.consul.HTTPAddr + "/v1/kv/muster/" + l.app + "/" + key) //nolint:noctx // a test's own server
	l.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	l.must(err)
	if resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// gone is the operator's word that a worker's process is no more, true or not: its session is ended, and nothing is waited for.
func (l *lab) gone(worker int) {
	l.t.Helper()
	var live []struct{ Session string }
	l.must(json.Unmarshal([]byte(l.get(fmt.Sprintf("live/worker/%d", worker))), &live))
	var member struct{ Inc string }
	l.must(json.Unmarshal([]byte(l.kv(fmt.Sprintf("members/worker/%d", worker))), &member))
	ask, err := json.Marshal(map[string]any{
		"version": 1, "kind": "gone", "id": "1", "by": "operator", "args": settings{"instance": fmt.Sprintf("worker-%d", worker), "inc": member.Inc},
	})
	l.must(err)
	l.put("kv/muster/"+l.app+"/ask/gone/1", ask)
	l.put("session/destroy/"+live[0].Session, nil)
	l.await("the loss", func() bool {
		return strings.Contains(l.read(l.log(0, 0, "agent.log")), fmt.Sprintf(`msg="member lost" instance=worker-%d `, worker))
	})
}

func (l *lab) put(path string, text []byte) {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodPut, "http://"+l.consul.HTTPAddr+"/v1/"+path, bytes.NewReader(text))
	l.must(err)
	resp, err := http.DefaultClient.Do(req)
	l.must(err)
	l.must(resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		l.t.Fatalf("%s: %s", path, resp.Status)
	}
}

// tree are the files below a folder with their content.
func (l *lab) tree(dir string) map[string]string {
	all := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what is removed meanwhile is not there
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			all[name] = l.read(path)
		}
		return nil
	})
	return all
}
