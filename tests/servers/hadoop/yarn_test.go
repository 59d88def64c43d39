package hadoop_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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
	command := func(g tinygang.Gang) string {
		return fmt.Sprintf("CONSUL_HTTP_ADDR=%s MUSTER_AGENT_STATE_DIR=%s/s exec %s agent --app %s --engine process", consul.HTTPAddr, y.Dir, muster, g.App)
	}
	shell := tinygang.Write(t, filepath.Join(y.Dir, "shell"), 2, nil) // where the ordinary user may look
	service := tinygang.Write(t, filepath.Join(y.Dir, "service"), 2, nil)
	shell.Go(t, 0)
	service.Go(t, 0)
	byShell := y.DistributedShell("export "+strings.Replace(command(shell), " exec ", "\nexec ", 1), 3)
	byService := y.SubmitService(fmt.Sprintf(`{"name": "tiny", "version": "1", "components": [{
		"name": "agent", "number_of_containers": 3, "restart_policy": "NEVER", "launch_command": %q,
		"resource": {"cpus": 1, "memory": "128"}
	}]}`, command(service)))
	for _, tt := range []struct {
		name, id string
		gang     tinygang.Gang
	}{{"distributed shell", byShell, shell}, {"service", byService, service}} {
		app := y.AwaitEnd(tt.id)
		if app.FinalStatus != "SUCCEEDED" || y.Attempts(tt.id) != 1 {
			t.Errorf("%s: got %+v after %d attempts, want SUCCEEDED after 1\n%s", tt.name, app, y.Attempts(tt.id), y.Logs(tt.id))
		}
		var started []string
		for _, s := range tt.gang.Starts(t) {
			started = append(started, fmt.Sprintf("%s %d %d", s.Instance, s.Generation, s.Attempt))
		}
		slices.Sort(started)
		if want := []string{"ps-0 1 1", "worker-0 1 1", "worker-1 1 1"}; !slices.Equal(started, want) {
			t.Errorf("%s: got starts %v, want %v\n%s", tt.name, started, want, y.Logs(tt.id))
		}
		if folders := y.LogFolders(tt.id); len(folders) != 4 {
			t.Errorf("%s: got log folders %v, want those of 3 containers and their master", tt.name, folders)
		}
	}
	y.DestroyService("tiny")

	y.KillNode(0)
	if left := y.NodeProcesses(0); len(left) != 0 {
		t.Errorf("processes %v of a host that was killed are left", left)
	}
	y.AwaitNodes(1)
	id := y.DistributedShell("sleep 1000", 1)
	y.Await(id, "a container on the other host", func(a hadoop.Application) bool { return a.RunningContainers == 2 })
	y.Kill(id)
	if app := y.AwaitEnd(id); app.FinalStatus != "KILLED" {
		t.Errorf("got %+v, want KILLED", app)
	}
	y.AwaitNoContainer(id)
}
