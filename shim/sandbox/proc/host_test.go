package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	const rest = " 4711 4711 4711 0 -1 4194560 135 0 0 0 0 1 0 0 20 0 3 0 25501 2707456 288 18446744073709551615 1 1 0 0"
	for _, c := range []struct {
		name, line string
		want       Stat
		alive      bool
	}{
		{"plain", "4712 (cat) S" + rest, Stat{4712, "cat", 'S', 4711, 4711, 4711, 3, 25501, 1}, true},
		{"parentheses and blanks", "4712 (a) S 1 (b)) R" + rest, Stat{4712, "a) S 1 (b)", 'R', 4711, 4711, 4711, 3, 25501, 1}, true},
		{"waits for a device", "4712 (dd) D" + rest, Stat{4712, "dd", 'D', 4711, 4711, 4711, 3, 25501, 1}, true},
		{"first thread ended", "4712 (java) Z" + rest, Stat{4712, "java", 'Z', 4711, 4711, 4711, 3, 25501, 1}, true},
		{"zombie", "9 (x) Z 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77", Stat{9, "x", 'Z', 1, 2, 3, 1, 77, 0}, false},
	} {
		got, err := parseStat([]byte(c.line))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if got.Alive() != c.alive {
			t.Errorf("%s: alive %v", c.name, got.Alive())
		}
	}
	for _, line := range []string{"", "1", "1 (x", "1 (x)", "1 (x) S 1 2", "y (x) S" + rest, "9 (x) Z 1 2 3 0 -1 0 0 0 0 0 0 x 0 0 20 0 1 0 77"} {
		if s, err := parseStat([]byte(line)); !errors.Is(err, errStat) {
			t.Errorf("%q = %+v, %v", line, s, err)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("4712 (cat) S 1 1 1 0 -1 4194560 135 0 0 0 0 1 0 0 20 0 3 0 25501"))
	f.Fuzz(func(_ *testing.T, line []byte) { _, _ = parseStat(line) })
}

// fixture makes a root folder with one machine and the given lines of stat.
func fixture(t *testing.T, stats ...string) Host {
	t.Helper()
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/sys/kernel/random/boot_id", "b1\n")
	write("sys/class/dmi/id/product_uuid", "ABCD\n")
	write("etc/machine-id", "m1\n")
	for _, line := range stats {
		s, err := parseStat([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		write("proc/"+strconv.Itoa(s.PID)+"/stat", line)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "proc/self/ns"), 0o755), os.Symlink("pid:[4026531836]", filepath.Join(root, "proc/self/ns/pid"))); err != nil {
		t.Fatal(err)
	}
	return Host{Root: root}
}

func stat(pid, ppid, session, start int, state string) string {
	n := strconv.Itoa
	return n(pid) + " (p" + n(pid) + ") " + state + " " + n(ppid) + " " + n(session) + " " + n(session) + " 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " + n(start)
}

func TestAlive(t *testing.T) {
	h := fixture(t, stat(7, 1, 7, 100, "S"), stat(8, 1, 8, 100, "Z"))
	self, err := h.Facts(7)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Facts{Machine: "abcd/m1", Boot: "b1", PidNS: "4026531836", PID: 7, Start: 100}); self != want {
		t.Errorf("facts %+v, want %+v", self, want)
	}
	with := func(change func(*Facts)) Facts { f := self; change(&f); return f }
	for _, c := range []struct {
		name  string
		facts Facts
		want  Liveness
	}{
		{"itself", self, Alive},
		{"another start: the number was given away", with(func(f *Facts) { f.Start = 99 }), Dead},
		{"no such process", with(func(f *Facts) { f.PID = 9 }), Dead},
		{"zombie", with(func(f *Facts) { f.PID = 8 }), Dead},
		{"another boot", with(func(f *Facts) { f.Boot = "b0" }), Dead},
		{"another boot id of a cloned machine", with(func(f *Facts) { f.Boot, f.Machine = "b0", "other/m1" }), Unknown},
		{"another machine", with(func(f *Facts) { f.Machine = "abcd/m2" }), Unknown},
		{"another pid namespace: every container's pid 1 is dead to the next", with(func(f *Facts) { f.PidNS, f.PID = "1", 9 }), Unknown},
		{"nothing recorded", Facts{}, Unknown},
	} {
		if got, err := h.Alive(c.facts); got != c.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// What /proc does not show may be hidden (hidepid=2), and an unknown machine is no proof of anything.
func TestNoProofOfDeath(t *testing.T) {
	h := fixture(t, stat(7, 1, 7, 100, "S"))
	hidden, err := h.Facts(7)
	if err != nil {
		t.Fatal(err)
	}
	hidden.PID = 9
	for _, c := range []struct {
		name string
		kill error
		want Liveness
	}{
		{"another user's", syscall.EPERM, Unknown},
		{"our own", nil, Unknown},
		{"nobody's", syscall.ESRCH, Dead},
	} {
		h.send = func(pid int, sig syscall.Signal) error {
			if pid != 9 || sig != 0 {
				t.Errorf("kill %d, %d", pid, sig)
			}
			return c.kill
		}
		if got, err := h.Alive(hidden); got != c.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
	for _, file := range []string{"sys/class/dmi/id/product_uuid", "etc/machine-id"} {
		if err := os.Remove(filepath.Join(h.Root, file)); err != nil {
			t.Fatal(err)
		}
	}
	here, err := h.Facts(7)
	if err != nil || here.Machine != "" {
		t.Errorf("machine %q, %v; want none", here.Machine, err)
	}
	here.PID = 9
	for _, machine := range []string{"", "/"} {
		here.Machine = machine
		if got, err := h.Alive(here); got != Unknown || err != nil {
			t.Errorf("on machine %q: %v, %v; want %v", machine, got, err, Unknown)
		}
	}
	if got, err := h.AliveHere(here); got != Dead || err != nil {
		t.Errorf("known to be here: %v, %v; want %v", got, err, Dead)
	}
}

func TestSelfIsAlive(t *testing.T) {
	f, err := SelfFacts()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (Host{}).Alive(f); got != Alive || err != nil {
		t.Errorf("%+v: %v, %v", f, got, err)
	}
}

func TestDescendants(t *testing.T) {
	// 2 is the root; 9 has a greater pid than its child 3; 5 left for init; 6 and 7 are a session of their own.
	h := fixture(t, stat(1, 0, 1, 1, "S"), stat(2, 1, 2, 1, "S"), stat(9, 2, 2, 1, "S"), stat(3, 9, 3, 1, "S"),
		stat(5, 1, 5, 1, "S"), stat(6, 3, 6, 1, "S"), stat(7, 6, 7, 1, "S"))
	all, err := h.Processes()
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, s := range WithDescendants(all, func(s Stat) bool { return s.PID == 2 }) {
		got = append(got, s.PID)
	}
	if diff := cmp.Diff([]int{2, 3, 6, 7, 9}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]int{7, 6, 3, 9, 2, 1}, ancestors(all, 7)); diff != "" {
		t.Errorf("ancestors -want +got:\n%s", diff)
	}
}
