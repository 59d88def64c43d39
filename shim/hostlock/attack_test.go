package hostlock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// stranger is the uid of another user of the host.
const stranger = 54321

const roleVariable = "MUSTER_TEST_OTHER_USER"

// TestMain plays another user's process where a test asks for it: it does what its role says, prints a line, and holds
// what it has until its input ends.
func TestMain(m *testing.M) {
	role, name, is := strings.Cut(os.Getenv(roleVariable), " ")
	if !is {
		os.Exit(m.Run())
	}
	switch role {
	case "attack":
		fmt.Println(attack(name))
	case "take":
		_, err := Take(name)
		fmt.Println(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// attack tries what keeps root from a lock of that name, and tells what another user managed to do with root's files.
func attack(name string) string {
	var did []string
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@muster/" + name})
	}
	if err == nil {
		err = unix.Listen(fd, 1)
	}
	if err != nil {
		did = append(did, "did not bind: "+err.Error())
	}
	folder := "/run/muster/lock"
	file := filepath.Join(folder, strings.ReplaceAll(name, "/", "%2F"))
	if _, err := os.ReadDir(folder); err == nil {
		did = append(did, "listed the folder")
	}
	for _, flags := range []int{unix.O_RDONLY, unix.O_RDWR, unix.O_RDWR | unix.O_CREAT, unix.O_PATH} {
		fd, err := unix.Open(file, flags, 0o600)
		if err == nil && unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == nil {
			did = append(did, fmt.Sprintf("locked root's file, opened with flags %#x", flags))
		}
	}
	if os.Symlink("/etc/passwd", file) == nil || os.Remove(file) == nil || os.Link("/etc/passwd", file) == nil ||
		os.Rename(folder, folder+"-away") == nil || os.Mkdir(folder+"/x", 0o700) == nil {
		did = append(did, "changed the folder")
	}
	return "attacked " + strings.Join(did, "; ")
}

// other starts another user's process and returns its line. It ends with the test, or by the function.
func other(t *testing.T, uid uint32, role, name string) (line string, end func()) {
	t.Helper()
	dir := t.TempDir()
	for path := dir; path != "/tmp" && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "other")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = "/"
	cmd.Env = []string{roleVariable + "=" + role + " " + name}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), end
}

// Another user binds the names of all announcements and tries root's files, before root takes the locks and after.
func TestAttackAnotherUserTakesRootsLocks(t *testing.T) {
	need.Root(t)
	for _, name := range []string{"port/", "gpu/GPU-", "gpu/choice", "cgroup/app/worker-", "work"} {
		if name != "gpu/choice" {
			name += fmt.Sprint(os.Getpid())
		}
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			if got, _ := other(t, stranger, "attack", name); got != "attacked" {
				t.Errorf("before: %s", got)
			}
			lock, err := Take(name)
			if err != nil {
				t.Fatalf("root is kept from its lock: %v", err)
			}
			got, _ := other(t, stranger, "attack", name)
			if strings.Contains(got, "locked") || strings.Contains(got, "folder") {
				t.Errorf("after: %s", got)
			}
			if _, err := Take(name); !errors.Is(err, ErrHeld) {
				t.Errorf("a second agent of root: got %v, want %v", err, ErrHeld)
			}
			if err := lock.Release(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
