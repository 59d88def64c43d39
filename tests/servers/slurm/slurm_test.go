package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/slurm"
	"github.com/muster-agent/muster/tests/servers/tinygang"
)

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

const batch = `#!/bin/sh
#SBATCH --nodes=2
#SBATCH --ntasks=3
export CONSUL_HTTP_ADDR=%s MUSTER_AGENT_STATE_DIR=%s MUSTER_AGENT_WORK_DIR=%s
srun --kill-on-bad-exit=0 %s agent --app %s --engine process
`

func TestAGangUnderSlurm(t *testing.T) {
	c := slurm.Start(t, slurm.Options{})
	consul := consulserver.Start(t, consulserver.Options{})
	dir := folder.Temp(t, "sg-")
	gang := tinygang.Write(t, dir, 2, nil)
	gang.Go(t, 0)
	id := c.Submit(fmt.Sprintf(batch, consul.HTTPAddr, filepath.Join(c.Dir, "s"), filepath.Join(dir, "w"), muster, gang.App))
	if job := c.AwaitState(id, "COMPLETED"); job.Exit != 0 || job.Restarts != 0 {
		t.Errorf("got %+v, want exit 0 and no restart\n%s", job, c.Output(id))
	}
	var started []string
	for _, s := range gang.Starts(t) {
		started = append(started, fmt.Sprintf("%s %d %d", s.Instance, s.Generation, s.Attempt))
	}
	slices.Sort(started)
	if want := []string{"ps-0 1 1", "worker-0 1 1", "worker-1 1 1"}; !slices.Equal(started, want) {
		t.Errorf("got starts %v, want %v\n%s", started, want, c.Output(id))
	}
}

func TestJobsAreRequeuedAndCancelled(t *testing.T) {
	c := slurm.Start(t, slurm.Options{Nodes: 1, Config: "RequeueExit=75\nKillWait=2"})
	id := c.Submit("#!/bin/sh\necho start $SLURM_RESTART_COUNT\n[ \"$SLURM_RESTART_COUNT\" = 1 ] || exit 75\nsleep 1000 & wait\n", "--requeue")
	c.Await(id, "its place in the queue again", func(j slurm.Job) bool { return j.State == "PENDING" && j.Exit == 75 })
	c.StartNow(id)
	job := c.Await(id, "a second start", func(j slurm.Job) bool { return j.State == "RUNNING" && strings.Count(c.Output(id), "start") == 2 })
	if job.Nodes != "node0" || job.Restarts != 1 || len(c.JobProcesses(id)) == 0 {
		t.Errorf("got %+v with processes %v, want it on node0 after one restart", job, c.JobProcesses(id))
	}
	c.Cancel(id)
	c.Await(id, "its end without a process", func(j slurm.Job) bool { return j.State == "CANCELLED" && len(c.JobProcesses(id)) == 0 })
}
