package mpi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/netns"
)

// Two hosts, each with a network and a state folder of its own: the second one's processes are started by TCP, with the
// run's token, and who has none gets nothing there.
func TestTwoHosts(t *testing.T) {
	need.Root(t)
	hosts := netns.New(t, 2)
	other := newJob(t, 1, "", settings{"muster.framework": "none", "muster.command": "exec sleep 1000"}) // whose registry is used
	keeper := other.command("run", other.dir, "--app-id", other.app, "--work-dir", other.work, "--state-dir", other.state, "--engine", "process")
	asked := filepath.Join(folder.Temp(t, "ma-"), "asked") // the gang lives until then
	j := newJob(t, 2, "ring.py", settings{"muster.restart": "never", "muster.env.UNTIL": asked})
	j.must(keeper.Start())
	defer func() {
		_ = keeper.Process.Signal(syscall.SIGTERM)
		_ = keeper.Wait() // it was interrupted
	}()
	registry := filepath.Join(other.state, "apps", other.app, "registry.sock")
	j.await("a registry", func() bool { return strings.Contains(other.log("worker-0"), "process started") })

	var agents []*exec.Cmd
	for i := range 2 {
		cmd := j.command()
		cmd.Args = hosts.Command(i, muster, "agent", "--app", j.dir, "--app-id", j.app, "--component", "worker", "--index", strconv.Itoa(i),
			"--host", hosts.Addr(i), "--work-dir", j.work, "--state-dir", filepath.Join(j.state, strconv.Itoa(i)), "--registry", "unix:"+registry, "--engine", "process").Args
		path, err := exec.LookPath(cmd.Args[0])
		j.must(err)
		cmd.Path = path
		j.must(cmd.Start())
		agents = append(agents, cmd)
	}
	var address string
	j.await("the port of the second host's agent", func() bool {
		_, after, ok := strings.Cut(j.log("worker-1"), `msg="API for peer agents" address=`)
		address, _, _ = strings.Cut(after, " key=")
		return ok && address != ""
	})
	out, err := hosts.Exec(0, "python3", "-c", "import ssl, urllib.request\n"+
		"urllib.request.urlopen('https://"+address+"/v1/state', timeout=20, context=ssl._create_unverified_context())")
	if err == nil || !strings.Contains(out, "401") {
		t.Errorf("without the token: %v, %s", err, out)
	}
	j.must(os.WriteFile(asked, nil, 0o600))
	for i, a := range agents {
		if err := a.Wait(); err != nil {
			t.Errorf("agent of worker-%d: %v", i, err)
		}
	}
	if !strings.HasPrefix(address, hosts.Addr(1)+":") {
		t.Errorf("the second host is answered at %s", address)
	}
	want := []string{
		"worker-0: rank 0 of 2 sum 3 INSTANCE=worker-0 ATTEMPT=1 GENERATION=1 WORLD_SIZE=2",
		"worker-1: rank 1 of 2 sum 3 INSTANCE=worker-1 ATTEMPT=1 GENERATION=1 WORLD_SIZE=2",
	}
	if diff := cmp.Diff(j.seats("worker-0", "worker-1"), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(j.relayed(), []string{"worker-1"}); diff != "" {
		t.Errorf("remote starts (-got +want):\n%s", diff)
	}
}
