package scripts_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// kvstore is a run of the package in testdata: two stores, whose scripts leave daemons behind, and a gateway before them,
// whose script stays.
type kvstore struct {
	*job
	run *process
}

// members of a kvstore.
var members = []string{"STORE-0", "STORE-1", "GATEWAY-0"}

// plainUser is nobody of this host's accounts, so what it may do it may as everybody.
func plainUser() *syscall.Credential {
	return &syscall.Credential{Uid: 54321, Gid: 54321, Groups: []uint32{}}
}

// newKVStore starts one and waits until its gateway answers. STATUS is asked more often than by default.
func newKVStore(t testing.TB, as *syscall.Credential, args ...string) *kvstore {
	t.Helper()
	j := newJob(t, as)
	if as == nil {
		path := filepath.Join(filepath.Dir(j.work), "policy.json")
		j.must(os.WriteFile(path, []byte(`{"version": 1, "users": {"names": ["nobody"]}}`), 0o644)) //nolint:gosec // no secret
		j.env = append(j.env, "MUSTER_AGENT_POLICY="+path)
	}
	j.must(os.CopyFS(j.dir, os.DirFS(filepath.Join("testdata", "kvstore"))))
	k := &kvstore{job: j}
	k.run = j.begin(append([]string{"--set", "muster.status.interval=0.5", "--set", "muster.restart.backoff=0.05"}, args...)...)
	j.sees("GATEWAY-0", "running", 1)
	k.answers("GATEWAY-0", "global.gateway_port", "PING", "PONG 2")
	return k
}

// A package in the shape of Slider's installs, starts in order, is killed, is noticed, comes back and stops, in whatever
// engine and as whatever user.
func TestKVStore(t *testing.T) {
	need.Root(t)
	t.Run("consul", func(t *testing.T) {
		t.Parallel()
		k := newKVStore(t, nil, "--registry", consulserver.Start(t, consulserver.Options{}).URL(), "--host", "127.0.0.1", "--engine", "container")
		k.life()
	})
	for name, c := range map[string]struct {
		as   *syscall.Credential
		args []string
	}{
		"cgroup":                   {nil, []string{"--engine", "cgroup"}},
		"process":                  {nil, []string{"--engine", "process"}},
		"plain user":               {plainUser(), nil},
		"plain user's container":   {plainUser(), []string{"--engine", "container"}},
		"as nobody in a container": {nil, []string{"--engine", "container", "--set", "muster.user=nobody"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newKVStore(t, c.as, c.args...).life()
		})
	}
	t.Run("image", func(t *testing.T) {
		t.Parallel()
		s := registryserver.Start(t, registryserver.Options{})
		newKVStore(t, nil, "--engine", "container", "--set", "muster.image="+s.PushPython("python", "glibc")).life()
	})
}

// life is the whole of it.
func (k *kvstore) life() {
	was := k.remains(members...)
	k.installed()
	k.ordered()
	k.rendered()
	k.published()
	k.commanded()
	k.put("colour", "blue")
	k.put("taste", "sour")
	k.killed("STORE-0")
	k.sick("STORE-1")
	k.has("colour", "blue")
	k.has("taste", "sour")
	k.stop(k.run)
	for _, store := range members[:2] {
		if out := read(k.log(store, "store.out")); strings.Count(out, "stopping\n") != 1 || !strings.HasSuffix(out, "stopping\n") {
			k.t.Errorf("STOP of %s has not run once, at the end:\n%s", store, out)
		}
	}
	k.nothingLeft(was...)
}

// installed: install_packages has put the package's files where they belong and said so.
func (k *kvstore) installed() {
	k.t.Helper()
	for _, name := range members {
		if out := read(k.log(name, "output-1.txt")); !strings.Contains(out, "/app/definition/package/files to ") {
			k.t.Errorf("INSTALL of %s said\n%s", name, out)
		}
		for _, file := range []string{"client.py", "gateway.py", "server.py"} {
			got, want := read(k.own(name, "app/install/store/"+file)), read(filepath.Join(k.dir, "package", "files", "store", file))
			if got == "" || got != want {
				k.t.Errorf("%s of %s is not the package's: %d bytes, want %d", file, name, len(got), len(want))
			}
		}
	}
}

// ordered: the gateway has come up after both stores, and is of their generation.
func (k *kvstore) ordered() {
	k.t.Helper()
	gateway := k.notes("GATEWAY-0", `"process started"`)
	for _, store := range members[:2] {
		started := k.notes(store, `"process started"`)
		written, err := os.Stat(k.own(store, "app/run/component.pid"))
		k.must(err)
		if !started.Before(gateway) || !written.ModTime().Before(gateway) {
			k.t.Errorf("%s started at %s, had its pid file at %s; want both before the gateway's start at %s", store, started, written.ModTime(), gateway)
		}
		if cause := k.sees("GATEWAY-0", "waiting", 0).Cause; strings.Contains(cause, "all are ready") {
			k.t.Errorf("the gateway waited because of %q", cause)
		}
	}
}

// rendered: templates, properties and XML hold what the definition says.
func (k *kvstore) rendered() {
	k.t.Helper()
	report := k.status()
	for _, store := range members[:2] {
		ports := report.instance(k.t, store).Ports
		data := k.inside(store) + "/app/data"
		want := fmt.Sprintf("# written for 127.0.0.1\nlisten=%d\nadmin=%d\ndata=%s\nverbose=yes\n", ports["global.listen_port"], ports["global.admin_port"], data) +
			fmt.Sprintf("site.store.data.dir=%s\nsite.store.log.level=INFO\nsite.store.max.keys=1000\nsite.store.verbose=True\n", data)
		k.same(store, "kvstore.conf", want)
		k.same(store, "kvstore.properties", "# Generated by muster.\n"+
			fmt.Sprintf("store.data.dir=%s\nstore.log.level=INFO\nstore.max.keys=1000\nstore.verbose=true\n", data))
		if xml := read(k.own(store, "app/conf/kvstore-site.xml")); !strings.Contains(xml, "<name>store.max.keys</name>\n    <value>1000</value>") {
			k.t.Errorf("kvstore-site.xml of %s:\n%s", store, xml)
		}
		if ports["global.listen_port"] == ports["global.admin_port"] {
			k.t.Errorf("both ports of %s are %d", store, ports["global.admin_port"])
		}
	}
}

// inside is an instance's folder as its processes see it.
func (k *kvstore) inside(instance string) string {
	k.t.Helper()
	return strings.TrimSpace(k.does("exec", k.app+"/"+instance, "--", "pwd"))
}

func (k *kvstore) same(store, name, want string) {
	k.t.Helper()
	if d := cmp.Diff(want, read(k.own(store, "app/conf/"+name))); d != "" {
		k.t.Errorf("%s of %s: -want +got\n%s", name, store, d)
	}
}

// published: the exports are at the URL that each container is told, in Slider's shape.
func (k *kvstore) published() {
	k.t.Helper()
	report := k.status()
	first, second, gateway := report.instance(k.t, "STORE-0").Ports, report.instance(k.t, "STORE-1").Ports, report.instance(k.t, "GATEWAY-0").Ports
	for _, member := range members {
		for _, group := range []string{"stores", "Stores"} {
			var got exportGroup
			k.ask(member, "publisher/exports/"+group, &got)
			want := map[string][]string{
				"host_port": {local(first["global.listen_port"]), local(second["global.listen_port"])},
				"admin":     {local(first["global.admin_port"]), local(second["global.admin_port"])},
			}
			if d := cmp.Diff(want, got.values(), cmpopts.SortSlices(strings.Compare)); d != "" {
				k.t.Errorf("exports of %s, asked by %s: -want +got\n%s", group, member, d)
			}
		}
		var all struct{ Exports map[string]exportGroup }
		k.ask(member, "publisher/exports", &all)
		want := map[string][]string{"gateway": {"http://" + local(gateway["global.gateway_port"]) + "/"}}
		if d := cmp.Diff(want, all.Exports["quicklinks"].values()); d != "" {
			k.t.Errorf("exports, asked by %s: -want +got\n%s", member, d)
		}
	}
	var site map[string]string
	k.ask("STORE-1", "publisher/slider/kvstore-site.json", &site)
	if site["store.max.keys"] != "1000" || site["store.log.level"] != "INFO" {
		k.t.Errorf("the published kvstore-site is %v", site)
	}
	var live map[string]any
	k.ask("STORE-0", "application/live/components", &live)
	if live["STORE"] == nil || live["GATEWAY"] == nil {
		k.t.Errorf("live components are %v", live)
	}
}

func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// exportGroup is one as Slider's publisher has it.
type exportGroup struct {
	Entries map[string][]struct{ Value string }
}

// values are the entries' alone.
func (g exportGroup) values() map[string][]string {
	out := map[string][]string{}
	for name, entries := range g.Entries {
		for _, e := range entries {
			out[name] = append(out[name], e.Value)
		}
	}
	return out
}

// ask asks the publisher of an instance, at the URL that its processes are told.
func (k *kvstore) ask(instance, path string, into any) {
	k.t.Helper()
	base := strings.TrimSpace(k.does("exec", k.app+"/"+instance, "--", "sh", "-c", "echo $MUSTER_SLIDER_URL"))
	answer, err := http.Get(base + "/ws/v1/slider/" + path) //nolint:gosec,noctx // the address is what is tested
	k.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	k.must(err)
	if answer.StatusCode != http.StatusOK {
		k.t.Fatalf("%s: %s: %s", path, answer.Status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		k.t.Fatalf("%s: %v: %s", path, err, text)
	}
}

// commanded: the script's own methods are commands, and GET_CONFIG gives what START was told.
func (k *kvstore) commanded() {
	k.t.Helper()
	if out := k.does("command", k.app+"/STORE-0", "COUNT"); !strings.HasSuffix(out, " 0\n") {
		k.t.Errorf("COUNT said %q, want 0 keys", out)
	}
	var config map[string]map[string]string
	k.must(json.Unmarshal([]byte(k.does("command", k.app+"/STORE-0", "GET_CONFIG")), &config))
	if got, want := config["global"]["greeting"], "hello from "+k.app; got != want {
		k.t.Errorf("greeting %q, want %q", got, want)
	}
	if config["kvstore-site"]["store.log.level"] != "INFO" {
		k.t.Errorf("GET_CONFIG: kvstore-site is %v", config["kvstore-site"])
	}
	if _, said, code := k.verb("command", k.app+"/STORE-0", "STOP"); code != 64 && !strings.Contains(said, "belongs to the instance's life") {
		k.t.Errorf("command STOP: %d: %s", code, said)
	}
}

// killed: the daemon that START has left behind is killed; it comes back by another START, on the same ports.
func (k *kvstore) killed(store string) {
	k.t.Helper()
	before := k.status().instance(k.t, store)
	pid := k.daemon(store, "server.py")
	k.must(syscall.Kill(pid, syscall.SIGKILL))
	if cause := k.sees(store, "backoff", 1).Cause; !strings.HasPrefix(cause, "killed by SIGKILL; restarting 1/") {
		k.t.Errorf("%s was started again because of %q, want the signal", store, cause)
	}
	k.returned(before)
}

// sick: a daemon lives whose STATUS says that it does not serve. After the second time it is ended and started again.
func (k *kvstore) sick(store string) {
	k.t.Helper()
	before := k.status().instance(k.t, store)
	pid := k.daemon(store, "server.py")
	k.must(os.WriteFile(k.own(store, "app/data/sick"), []byte("it counts backwards\n"), 0o644))
	k.sees(store, "backoff", 1)
	if _, ok := k.noted(store, `cause="STATUS failed 2 times: store.py: STATUS: the store is sick: it counts backwards (store.py, line 37)"`); !ok {
		k.t.Errorf("the words of STATUS are not in the log of %s", store)
	}
	gone(k.t, pid)
	k.returned(before)
}

// returned: the next attempt serves on the ports of the last one, and the others were left alone.
func (k *kvstore) returned(before status.Instance) {
	k.t.Helper()
	k.answers(before.Instance, "global.admin_port", "COUNT", "*")
	await(k.t, before.Instance+" running again", func() bool {
		now := k.status().instance(k.t, before.Instance)
		return now.Phase == "running" && now.Attempt == before.Attempt+1
	})
	report := k.status()
	if d := cmp.Diff(before.Ports, report.instance(k.t, before.Instance).Ports); d != "" {
		k.t.Errorf("ports of %s: -before +after\n%s", before.Instance, d)
	}
	if now := report.instance(k.t, "GATEWAY-0"); now.Attempt != 1 || now.Generation != 1 {
		k.t.Errorf("the gateway is in attempt %d of generation %d, want 1 of 1", now.Attempt, now.Generation)
	}
}

// answers waits until the port of an instance answers a line as wanted.
func (k *kvstore) answers(instance, port, line, want string) {
	k.t.Helper()
	n := k.status().instance(k.t, instance).Ports[port]
	await(k.t, fmt.Sprintf("%s of %s answers %s with %s", port, instance, line, want), func() bool {
		got, err := say(n, line)
		return err == nil && like(got, want)
	})
}

// say says a line to a port and gives the answer.
func say(port int, line string) (string, error) {
	c, err := net.DialTimeout("tcp", local(port), 5*time.Second) //nolint:noctx // bounded
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSuffix(answer, "\n"), err
}

func (k *kvstore) put(key, value string) {
	k.answers("GATEWAY-0", "global.gateway_port", "PUT "+key+" "+value, "OK")
}

func (k *kvstore) has(key, value string) {
	k.answers("GATEWAY-0", "global.gateway_port", "GET "+key, value)
}
