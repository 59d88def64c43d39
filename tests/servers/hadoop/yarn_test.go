package hadoop_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/hadoop"
	"github.com/muster-agent/muster/tests/servers/tinygang"
)

func TestAGangUnderYARN(t *testing.T) {
	if _, err := binary.With(func(muster string) int { gangUnderYARN(t, muster); return 0 }); err != nil {
		t.Fatal(err)
	}
}

func gangUnderYARN(t *testing.T, muster string) {
	t.Helper()
	y := hadoop.Shared(t).StartYARN(t, hadoop.YARNOptions{Visible: []string{muster}})
	consul := consulserver.Start(t, consulserver.Options{})
	gang := tinygang.Write(t, y.Dir, 2, nil) // where the ordinary user may look
	gang.Go(t, 0)
	id := y.DistributedShell(fmt.Sprintf("export CONSUL_HTTP_ADDR=%s MUSTER_AGENT_STATE_DIR=%s/s\nexec %s agent --app %s --engine process",
		consul.HTTPAddr, y.Dir, muster, gang.App), 3)
	app := y.AwaitEnd(id)
	if app.FinalStatus != "SUCCEEDED" || y.Attempts(id) != 1 {
		t.Errorf("got %+v after %d attempts, want SUCCEEDED after 1\n%s", app, y.Attempts(id), y.Logs(id))
	}
	var started []string
	for _, s := range gang.Starts(t) {
		started = append(started, fmt.Sprintf("%s %d %d", s.Instance, s.Generation, s.Attempt))
	}
	slices.Sort(started)
	if want := []string{"ps-0 1 1", "worker-0 1 1", "worker-1 1 1"}; !slices.Equal(started, want) {
		t.Errorf("got starts %v, want %v\n%s", started, want, y.Logs(id))
	}
	if folders := y.LogFolders(id); len(folders) != 4 {
		t.Errorf("got log folders %v, want those of 3 containers and their master", folders)
	}

	y.KillNode(0)
	if left := y.NodeProcesses(0); len(left) != 0 {
		t.Errorf("processes %v of a host that was killed are left", left)
	}
	y.AwaitNodes(1)
	id = y.DistributedShell("sleep 1000", 1)
	y.Await(id, "a container on the other host", func(a hadoop.Application) bool { return a.RunningContainers == 2 })
	y.Kill(id)
	if app := y.AwaitEnd(id); app.FinalStatus != "KILLED" {
		t.Errorf("got %+v, want KILLED", app)
	}
	y.AwaitNoContainer(id)
}
