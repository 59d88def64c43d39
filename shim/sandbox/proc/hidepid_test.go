package proc

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

const hiddenVariable = "MUSTER_TEST_HIDDEN" // the facts of a process that this one cannot see

// A living process of another user is not taken for dead where /proc hides it (hidepid=2).
func TestHidePID(t *testing.T) {
	if text := os.Getenv(hiddenVariable); text != "" {
		var f Facts
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		if _, err := (Host{}).Stat(f.PID); !isNoProcess(err) {
			t.Fatalf("process %d can be seen: %v", f.PID, err)
		}
		if got, err := (Host{}).AliveHere(f); got != Unknown || err != nil {
			t.Errorf("got %v, %v; want %v", got, err, Unknown)
		}
		f.PID = 1 << 22 // above every pid (proc(5), pid_max)
		if got, err := (Host{}).AliveHere(f); got != Dead || err != nil {
			t.Errorf("nobody's pid: got %v, %v; want %v", got, err, Dead)
		}
		return
	}
	need.Root(t) // to mount /proc
	self, err := SelfFacts()
	if err != nil {
		t.Fatal(err)
	}
	facts, err := json.Marshal(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c",
		`mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" -test.v -test.run '^TestHidePID$'`,
		"/proc/self/fd/3")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), hiddenVariable+"="+string(facts))
	binary, err := os.Open("/proc/self/exe") // its folder may be closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	cmd.ExtraFiles = []*os.File{binary}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	t.Logf("%s", out)
}
