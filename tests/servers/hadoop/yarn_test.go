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
	command := fmt.Sprintf("export CONSUL_HTTP_ADDR=%s MUSTER_AGENT_STATE_DIR=%s/s\nexec %s agent --app %s --engine process", consul.HTTPAddr, y.Dir, muster, gang.App)

	t.Run("distributed shell", func(t *testing.T) {
		gang.Go(t, 0)
		id := y.DistributedShell(command, 3)
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
	})
}
