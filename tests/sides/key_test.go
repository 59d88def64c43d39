package sides_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// A board behind a key: the agent asks for it at the port that others know, before and after the board has died, and in the next
// attempt. The board is watched where it listens, and neither it nor the process is told the key.
func TestKey(t *testing.T) {
	for _, engine := range []string{"container", "process"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			need.Root(t)
			j := newJob(t, object{
				"muster.framework": "none", "muster.restart": "instance", "muster.restart.backoff": "100ms",
				"muster.command":    `echo inner $MUSTER_PORT_SIDE_BOARD_INNER; env | grep -c TOKEN; exec sleep 1000`,
				"muster.side.board": "exec python3 " + files + "board.py", "muster.side.board.port": "true", "muster.side.board.http": "true",
				"muster.side.board.key": "true",
			}, map[string]string{
				"board.py": strings.Replace(board, `("", int(os.environ["MUSTER_PORT_SIDE_BOARD"]))`, `("127.0.0.1", int(os.environ["MUSTER_PORT_SIDE_BOARD_INNER"]))`, 1),
			}, component{name: "worker", instances: 1})
			j.lay("metainfo.json", object{"schemaVersion": "2.1", "application": object{
				"name": "sides", "version": "1", "components": []object{{"name": "worker", "category": "MASTER", "compExports": "worker-board"}},
				"exportGroups": []object{{"name": "worker", "exports": []object{{"name": "board", "value": "http://${worker_HOST}:${site.side.board}/"}}}},
			}})
			j.begin(engine)
			opens := func() {
				t.Helper()
				jar, err := cookiejar.New(nil)
				j.must(err)
				answer, err := (&http.Client{Jar: jar}).Get(j.instance("worker-0").Exports["worker.board"])
				j.must(err)
				text, err := io.ReadAll(answer.Body)
				j.must(err)
				j.must(answer.Body.Close())
				if pid, err := strconv.Atoi(string(text)); err != nil || pid == 0 || answer.Request.URL.RawQuery != "" {
					t.Errorf("the link that status has leads to %s: %s, %s, want the board's pid", answer.Request.URL, answer.Status, text)
				}
			}
			refuses := func() {
				t.Helper()
				port := j.instance("worker-0").Ports["side.board"]
				for path, key := range map[string]string{"/": "", "/?token=": "", "/x": "Bearer 1"} {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
					j.must(err)
					if key != "" {
						r.Header.Set("Authorization", key)
					}
					answer, err := http.DefaultClient.Do(r)
					j.must(err)
					text, err := io.ReadAll(answer.Body)
					j.must(err)
					j.must(answer.Body.Close())
					if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), "board asks for its key") {
						t.Errorf("%s with %q: got %s, %s", path, key, answer.Status, text)
					}
				}
			}
			inner := j.awaitBoard(1)
			if got, want := j.log("worker-0", "stdout.log"), fmt.Sprintf("inner %d\n0\n", inner); got != want {
				t.Errorf("the process was told %q, want %q", got, want)
			}
			refuses()
			opens()
			j.must(syscall.Kill(j.processes("board")[0], syscall.SIGKILL))
			j.awaitBoard(2)
			refuses()
			j.must(j.command("signal", j.app+"/worker-0", "KILL").Run())
			if again := j.awaitBoard(3); again != inner {
				t.Errorf("the next attempt's board listens at %d, want %d", again, inner)
			}
			refuses()
			opens()
			j.must(j.command("stop", j.app).Run())
			j.ends("stopped")
		})
	}
}

// awaitBoard waits until the board has begun so often, and gives its port at the loopback.
func (j *job) awaitBoard(times int) (port int) {
	j.t.Helper()
	j.await(fmt.Sprint("board ", times), func() bool {
		return strings.Count(j.log("worker-0", "side-board.stdout.log"), "serves at") == times
	})
	return j.instance("worker-0").Ports["side.board.inner"]
}
