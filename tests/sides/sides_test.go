package sides_test

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/need"
)

const files = "${AGENT_WORK_ROOT}/app/definition/package/files/"

// board answers at its port with its pid until it is asked to end.
const board = `import http.server, os, signal, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.getpid()).encode())
    def log_message(self, *args):
        pass
def end(*args):
    print("asked to end", flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
server = http.server.HTTPServer(("", int(os.environ["MUSTER_PORT_SIDE_BOARD"])), Answer)
print("serves at", server.server_port, "for", os.environ["MUSTER_INSTANCE"], flush=True)
print("on stderr", file=sys.stderr, flush=True)
server.serve_forever()
`

// reader finds the board of worker-0 in the roster and says whenever it has another pid. All end when they are told.
const reader = `import http.client, json, os, time, urllib.request
roster = json.load(open(os.environ["MUSTER_ROSTER_FILE"]))
row = [r for r in roster["rows"] if (r["c"], r["i"]) == ("worker", 0)][0]
port, host = row["ports"]["side.board"], os.environ["MUSTER_HOST"]
print("told", os.environ.get("MUSTER_PORT_SIDE_BOARD"), os.environ.get("MUSTER_PORT"), "roster", port, flush=True)
seen = []
while not os.path.exists(os.path.join(os.environ["MUSTER_CHECKPOINT_DIR"], "end")):
    try:
        pid = urllib.request.urlopen("http://%s:%d/" % (host, port), timeout=5).read().decode()
        if pid and pid not in seen: # one that is killed while it answers says nothing
            seen.append(pid)
            print("board", len(seen), flush=True)
    except (OSError, http.client.HTTPException):
        pass
    time.sleep(0.05)
`

// A board beside one worker is found by the other, comes back where it was when it dies, and is asked to end with its
// instance. One that ends at once is started again ever later. Nobody fails for either.
func TestBoard(t *testing.T) {
	for _, engine := range []string{"container", "cgroup", "process"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			need.Root(t)
			j := newJob(t, object{
				"muster.framework": "none", "muster.command": "exec python3 " + files + "reader.py",
				"muster.side.board": "exec python3 " + files + "board.py", "muster.side.board.index": "0", "muster.side.board.port": "true",
				"muster.side.board.http": "true", "muster.side.flash": "echo here; exit 3", "muster.side.flash.index": "1",
				"muster.side.once": "echo once", "muster.side.once.restart": "false",
			}, map[string]string{"board.py": board, "reader.py": reader}, component{name: "worker", instances: 2})
			began := time.Now()
			j.begin(engine)
			j.says("worker-0", "stdout.log", "board 1")
			j.says("worker-1", "stdout.log", "board 1")
			pids := j.processes("board")
			if len(pids) != 1 {
				t.Fatalf("boards %v, want one", pids)
			}
			j.must(syscall.Kill(pids[0], syscall.SIGKILL))
			warned := func() bool {
				return slices.ContainsFunc(j.instance("worker-0").Warnings, func(w status.Warning) bool {
					return w.Kind == "side-board" && strings.Contains(w.Text, "ended by signal 9, and is started again")
				})
			}
			j.await("a warning that the board has ended", warned)
			j.says("worker-0", "stdout.log", "board 2")
			j.await("the warning taken back", func() bool { return !warned() })
			j.says("worker-1", "stdout.log", "board 2")
			j.says("worker-1", "agent.log", "pause=2s")
			text := "flash ended with exit code 3, and is started again (3 times in a row); see muster logs " + j.app +
				"/worker-1 --side flash"
			j.await("a warning of one that ends again and again", func() bool {
				shown, err := j.command("status", j.app).Output()
				j.must(err)
				return strings.Contains(string(shown), text)
			})
			first := j.instance("worker-0")
			port := first.Ports["side.board"]
			at := slices.IndexFunc(first.Sides, func(s status.Side) bool { return s.Name == "board" })
			if port == 0 || at < 0 || first.Sides[at].Restarts != 1 || first.Sides[at].Pid == 0 {
				t.Errorf("status: port %d, sides %+v, want a port and a board that was started again", port, first.Sides)
			}
			if own := j.instance("worker-1").Ports; len(own) != 0 {
				t.Errorf("worker-1 has ports %v, want none", own)
			}
			j.write("w/checkpoint/end", nil)
			j.ends("succeeded")
			for name, want := range map[string]string{
				"worker-0 stdout.log":            fmt.Sprintf("told %d None roster %d\nboard 1\nboard 2\n", port, port),
				"worker-1 stdout.log":            fmt.Sprintf("told None None roster %d\nboard 1\nboard 2\n", port),
				"worker-0 side-board.stdout.log": strings.Repeat(fmt.Sprintf("serves at %d for worker-0\n", port), 2) + "asked to end\n",
				"worker-0 side-board.stderr.log": "on stderr\non stderr\n",
				"worker-0 side-once.stdout.log":  "once\n",
				"worker-1 side-once.stdout.log":  "once\n",
				"worker-0 side-flash.stdout.log": "",
			} {
				instance, file, _ := strings.Cut(name, " ")
				if diff := cmp.Diff(j.log(instance, file), want); diff != "" {
					t.Errorf("%s (-got +want):\n%s", name, diff)
				}
			}
			// pauses of 1, 2, 4, … s
			took := time.Since(began)
			if n, most := strings.Count(j.log("worker-1", "side-flash.stdout.log"), "here\n"), bits.Len(uint(took.Seconds())+2); n < 2 || n > most {
				t.Errorf("flash was started %d times in %s, want 2 to %d", n, took, most)
			}
		})
	}
}

// A side process ends with each attempt, by force if need be, and begins with the next, on the same port.
func TestAttempts(t *testing.T) {
	t.Parallel()
	j := newJob(t, object{
		"muster.framework": "none", "muster.restart": "instance", "muster.restart.backoff": "100ms",
		"muster.command":        `test $MUSTER_ATTEMPT = 2 && exec sleep 1000; until test -s "$MUSTER_LOG_DIR/side-deaf.stdout.log"; do sleep 0.1; done; exit 1`,
		"muster.side.deaf":      `trap "" TERM; echo attempt $MUSTER_ATTEMPT at {{port.side.deaf}}; sleep 1000 & sleep 1000; sleep 1000`,
		"muster.side.deaf.port": "true",
	}, nil, component{name: "worker", instances: 1})
	j.begin("process")
	j.says("worker-0", "side-deaf.stdout.log", "attempt 2")
	port := j.instance("worker-0").Ports["side.deaf"]
	if got, want := j.log("worker-0", "side-deaf.stdout.log"), fmt.Sprintf("attempt 1 at %d\nattempt 2 at %d\n", port, port); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	j.must(j.command("stop", j.app).Run())
	j.ends("stopped")
}

// node is a program that stands for ps-lite's. In the role scheduler it ends when all others have said goodbye to it.
const node = `import os, socket, sys, time
role = os.environ["DMLC_ROLE"]
folder = os.environ["MUSTER_CHECKPOINT_DIR"]
print("role", role, flush=True)
address = (os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"]))
if role == "scheduler":
    listener = socket.create_server(("", address[1]))
    for i in range(int(os.environ["DMLC_NUM_WORKER"]) + int(os.environ["DMLC_NUM_SERVER"])):
        connection, _ = listener.accept()
        print("goodbye", connection.recv(100).decode(), flush=True)
        connection.sendall(b"x")
    sys.exit(0)
if os.environ["MUSTER_INSTANCE"] == "worker-1": # the last one: the process beside the scheduler is over
    while not os.path.exists(os.path.join(folder, "over")):
        time.sleep(0.05)
while True:
    try:
        connection = socket.create_connection(address, 5)
        break
    except OSError:
        time.sleep(0.05)
connection.sendall(os.environ["MUSTER_INSTANCE"].encode())
connection.recv(1)
`

// MXNet's scheduler runs the command in its own role, and is there for the other workers when the one beside it has ended.
func TestScheduler(t *testing.T) {
	t.Parallel()
	j := newJob(t, object{"muster.framework": "mxnet", "muster.command": "exec python3 " + files + "node.py"},
		map[string]string{"node.py": node}, component{name: "ps", instances: 1}, component{name: "worker", instances: 2})
	j.begin("process")
	j.says("worker-0", "side-scheduler.stdout.log", "goodbye worker-0")
	j.await("the end of worker-0's own process", func() bool { return len(j.processes("")) == len(j.processes("scheduler"))+1 })
	j.write("w/checkpoint/over", nil)
	j.ends("succeeded")
	log := j.log("worker-0", "side-scheduler.stdout.log")
	for _, words := range []string{"role scheduler\n", "goodbye ps-0\n", "goodbye worker-0\n", "goodbye worker-1\n"} {
		if strings.Count(log, words) != 1 {
			t.Errorf("the scheduler's log is\n%s\nwant %q once", log, words)
		}
	}
	for instance, want := range map[string]string{"ps-0": "role server\n", "worker-0": "role worker\n", "worker-1": "role worker\n"} {
		if got := j.log(instance, "stdout.log"); got != want {
			t.Errorf("%s says %q, want %q", instance, got, want)
		}
	}
}
