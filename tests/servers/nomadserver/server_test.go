package nomadserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/nomadserver"
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

// job is a batch job of one group for each component; %[1]s is its id, %[2]s the driver's line, %[3]s the environment.
const job = `
job %[1]q {
  type = "batch"
  group "ps" {
    count = 1
    %[2]s
  }
  group "worker" {
    count = 2
    %[2]s
  }
}`

const group = `
    network {
      port "main" {}
    }
    restart {
      attempts = 1
      delay    = "0s"
      mode     = "fail"
    }
    reschedule {
      attempts = 0
    }
    task "agent" {
      driver       = "raw_exec"
      kill_timeout = "10s"
      config {
        command = %q
        args    = ["agent", "--app", %q, "--app-id", %q, "--engine", "process"]
      }
      env {
        CONSUL_HTTP_ADDR       = %q
        MUSTER_AGENT_STATE_DIR = %q
      }
      resources {
        cpu    = 100
        memory = 128
      }
    }`

func TestAGangUnderNomad(t *testing.T) {
	nomad := nomadserver.Start(t, nomadserver.Options{})
	consul := consulserver.Start(t, consulserver.Options{})
	gang := tinygang.Write(t, folder.Temp(t, "ng-"), 2, nil)
	text := fmt.Sprintf(job, "tiny", fmt.Sprintf(group, muster, gang.App, "nomad-tiny", consul.HTTPAddr, filepath.Join(t.TempDir(), "s")))

	id := nomad.Submit(text)
	all := nomad.AwaitAllocations(id, "three that run", func(all []nomadserver.Allocation) bool { return count(all, "running") == 3 })
	if i := slices.IndexFunc(all, func(a nomadserver.Allocation) bool { return a.TaskGroup == "worker" && a.Index() == 1 }); i < 0 {
		t.Errorf("no worker[1] in %v", all)
	} else if len(nomad.TaskProcesses(all[i].ID)) == 0 {
		t.Error("worker[1] has no process")
	}
	gang.Go(t, 0)
	all = nomad.AwaitAllocations(id, "three that are complete", func(all []nomadserver.Allocation) bool { return count(all, "complete") == 3 })
	nomad.AwaitJob(id, "dead")
	for _, a := range all {
		if got := a.ExitCodes(); !slices.Equal(got, []int{0}) {
			t.Errorf("%s: got exit codes %v, want 0 and no restart\n%s", a.Name, got, nomad.Logs(a.ID, "agent", "stderr"))
		}
	}
	var started []string
	for _, s := range gang.Starts(t) {
		started = append(started, fmt.Sprintf("%s %d %d", s.Instance, s.Generation, s.Attempt))
	}
	slices.Sort(started)
	if want := []string{"ps-0 1 1", "worker-0 1 1", "worker-1 1 1"}; !slices.Equal(started, want) {
		t.Errorf("got starts %v, want %v", started, want)
	}
	nomad.Purge(id)
}

func TestWhatIsKilledComesBackAndWhatIsPurgedIsGone(t *testing.T) {
	nomad := nomadserver.Start(t, nomadserver.Options{})
	id := nomad.Submit(`
job "sleeper" {
  group "g" {
    restart {
      delay = "0s"
    }
    task "t" {
      driver = "exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "trap 'exit 7' USR1; echo begun; while :; do sleep 0.1; done"]
      }
      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}`)
	running := func(all []nomadserver.Allocation) bool { return count(all, "running") == 1 }
	first := nomad.AwaitAllocations(id, "one that runs", running)[0]
	nomad.AwaitLog(first.ID, "t", "stdout", "begun")

	nomad.Signal(first.ID, "SIGUSR1")
	all := nomad.AwaitAllocations(id, "a restart in place", func(all []nomadserver.Allocation) bool {
		return running(all) && all[0].TaskStates["t"].Restarts == 1
	})
	if got := all[0].ExitCodes(); !slices.Equal(got, []int{7}) || all[0].ID != first.ID {
		t.Errorf("after a signal: got exit codes %v of %s, want 7 of %s", got, all[0].ID, first.ID)
	}
	nomad.StopAllocation(first.ID)
	all = nomad.AwaitAllocations(id, "another allocation", func(all []nomadserver.Allocation) bool {
		return running(all) && count(all, "complete") == 1
	})
	second := all[slices.IndexFunc(all, func(a nomadserver.Allocation) bool { return a.ID != first.ID })]
	if second.PreviousAllocation != first.ID && !slices.ContainsFunc(all, func(a nomadserver.Allocation) bool { return a.NextAllocation == second.ID }) {
		t.Errorf("got %v, want one that replaces %s", all, first.ID)
	}
	pids := nomad.TaskProcesses(second.ID)
	if len(pids) == 0 {
		t.Error("the second allocation has no process")
	}
	nomad.Purge(id)
	nomad.AwaitAllocations(id, "no process", func([]nomadserver.Allocation) bool { return len(nomad.TaskProcesses(second.ID)) == 0 })
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("pid %d runs after the job was purged", pid)
		}
	}
}

func count(all []nomadserver.Allocation, status string) int {
	n := 0
	for _, a := range all {
		if a.ClientStatus == status {
			n++
		}
	}
	return n
}
