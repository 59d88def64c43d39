package mpi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

var three = []string{"worker-0", "worker-1", "worker-2"}

// ringOf is what ring.py leaves in each of three instances.
func ringOf(attempt, generation int) []string {
	var all []string
	for rank, in := range three {
		all = append(all, fmt.Sprintf("%s: rank %d of 3 sum 6 INSTANCE=%s ATTEMPT=%d GENERATION=%d WORLD_SIZE=3", in, rank, in, attempt, generation))
	}
	return all
}

// relayed are the peers that the first instance's agent was asked for, in the order of their names.
func (j *job) relayed() []string {
	var all []string
	for line := range strings.Lines(j.log("worker-0")) {
		if _, peer, ok := strings.Cut(line, `msg="peer asked to run a program" peer=`); ok {
			all = append(all, strings.Fields(peer)[0])
		}
	}
	slices.Sort(all)
	return all
}

// Each engine and registry: one mpirun, three instances, each process with the variables and in the folder of its own. The
// token that agents show each other lies in the registry alone.
func TestThreeRanks(t *testing.T) {
	for _, where := range []struct {
		name, engine string
		consul       bool
	}{
		{name: "process", engine: "process"}, {name: "container", engine: "container"}, {name: "process, Consul", engine: "process", consul: true},
	} {
		t.Run(where.name, func(t *testing.T) {
			args := []string{"--engine", where.engine}
			if where.engine == "container" {
				need.Root(t)
			}
			j := newJob(t, 3, "ring.py", nil)
			var consul *consulserver.Server
			if where.consul {
				consul = consulserver.Start(t, consulserver.Options{})
				args = append(args, "--registry", consul.URL(), "--host", "127.0.0.1")
			}
			j.succeeds(j.run(args...))
			if consul != nil {
				j.keeps(tokenOf(t, consul.HTTPAddr, j.app), consul.URL())
			}
			if diff := cmp.Diff(j.seats(three...), ringOf(1, 1)); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(j.relayed(), []string{"worker-1", "worker-2"}); diff != "" {
				t.Errorf("remote starts (-got +want):\n%s", diff)
			}
			for _, in := range three[1:] {
				if said := j.log(in); strings.Count(said, "msg=exec ") != 1 || !strings.Contains(said, "orted") {
					t.Errorf("%s ran no daemon of mpirun", in)
				}
			}
		})
	}
}

// A command that calls mpirun itself finds the same hosts, and may name some of them; its exit code is the job's.
func TestOwnMPIRun(t *testing.T) {
	// The end of rank 1 ends rank 0, which has to have written by then.
	const says = `sh -c 'echo $OMPI_COMM_WORLD_RANK $MUSTER_INSTANCE >"$MUSTER_WORK_DIR/rank-$OMPI_COMM_WORLD_RANK"; ` +
		`cd "$MUSTER_WORK_DIR/.."; until [ -e worker-0/rank-0 ] || [ -e worker-2/rank-0 ]; do :; done; exit $((OMPI_COMM_WORLD_RANK * 7))'`
	for hosts, want := range map[string][]string{
		"--map-by node":        {"worker-0: 0 worker-0", "worker-1: 1 worker-1"},
		"-H worker-2,worker-1": {"worker-1: 1 worker-1", "worker-2: 0 worker-2"},
	} {
		t.Run(hosts, func(t *testing.T) {
			j := newJob(t, 3, "", settings{
				"muster.command": "mpirun -wdir / " + hosts + " -np 2 " + says, "muster.restart": "never",
			})
			r := j.run("--engine", "process")
			if r.Outcome != "failed" || !strings.Contains(r.Cause, "worker-0 exited with 7") {
				t.Errorf("%+v", r)
			}
			if diff := cmp.Diff(j.seats(three...), want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// A process is killed in an instance that only hosts it: the job ends as a whole, and is there again as a whole.
func TestAKilledRankRestartsTheGang(t *testing.T) {
	j := newJob(t, 3, "ring.py", settings{"muster.env.LINGER": "1"})
	ended := make(chan result, 1)
	go func() { ended <- j.run("--engine", "process") }()
	var pids []int
	for rank, in := range three {
		path := filepath.Join(j.work, in, "pid-"+strconv.Itoa(rank))
		j.await(in+"'s process", func() bool { _, err := os.Stat(path); return err == nil })
		pid, err := strconv.Atoi(j.read(path))
		j.must(err)
		pids = append(pids, pid)
	}
	j.must(syscall.Kill(pids[1], syscall.SIGKILL))
	r := <-ended
	j.succeeds(r)
	if r.Generations != 2 {
		t.Errorf("%d generations, want 2", r.Generations)
	}
	if diff := cmp.Diff(j.seats(three...), ringOf(2, 2)); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d of the first life is still there", pid)
		}
	}
}

// What Horovod's processes are promised, asked by a program in its place: Horovod itself is not built here.
func TestHorovodsVariables(t *testing.T) {
	j := newJob(t, 2, "hvd.py", settings{"muster.framework": "horovod", "muster.nproc": "2", "muster.env.HOROVOD_FUSION_THRESHOLD": "33554432"})
	j.succeeds(j.run("--engine", "process"))
	want := []string{
		"worker-0: rank 0 of 4 local 0 of 2 average 1.5", "worker-0: rank 1 of 4 local 1 of 2 average 1.5",
		"worker-1: rank 2 of 4 local 0 of 2 average 1.5", "worker-1: rank 3 of 4 local 1 of 2 average 1.5",
	}
	if diff := cmp.Diff(j.seats("worker-0", "worker-1"), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// The file by which HBox's MPI programs say how it went decides, as its first line; one of an earlier life does not.
func TestExitFile(t *testing.T) {
	for _, c := range []struct{ name, command, want string }{
		{"it says 5, mpirun 0", `[ $OMPI_COMM_WORLD_RANK != 0 ] || echo 5 >exit.code`, "worker-0 exited with 5"},
		// The other rank waits: mpirun ends all at the first that fails.
		{"it says 0, mpirun 3", `[ $OMPI_COMM_WORLD_RANK = 0 ] || exec sleep 1000; echo 0 >exit.code; exit 3`, ""},
		{"it says nothing", `exit 3`, "worker-0 exited with 3"},
		{"its name is another", `[ $OMPI_COMM_WORLD_RANK != 0 ] || echo 5 >"$HBOX_CUSTOM_EXIT"`, "worker-0 exited with 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			more := settings{"muster.command": c.command, "muster.hbox.type": "MPI", "muster.restart": "never"}
			if strings.Contains(c.command, "CUSTOM") {
				more["muster.env.HBOX_CUSTOM_EXIT"] = "how it went"
			}
			j := newJob(t, 2, "", more)
			r := j.run("--engine", "process")
			if c.want == "" {
				j.succeeds(r)
			} else if r.Outcome != "failed" || !strings.Contains(r.Cause, c.want) {
				t.Errorf("%+v, want %s", r, c.want)
			}
		})
	}
}

// A job that is no MPI job starts nothing in other instances.
func TestOthersAreRefused(t *testing.T) {
	j := newJob(t, 2, "", settings{"muster.framework": "none", "muster.command": `"` + muster + `" rsh worker-1 true 2>said; echo $? >>said`})
	j.succeeds(j.run("--engine", "process"))
	said := j.read(filepath.Join(j.work, "worker-0", "said"))
	if !strings.Contains(said, "this app's framework starts nothing in other instances") || strings.HasSuffix(said, "\n0\n") {
		t.Errorf("said %q", said)
	}
}
