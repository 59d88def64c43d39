package secret

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

const roleVariable = "MUSTER_TEST_SECRETS"

// TestMain plays an agent that makes a folder and is killed, where a test asks for it.
func TestMain(m *testing.M) {
	name := os.Getenv(roleVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	f, err := MakeFolder(name, nil)
	if err == nil {
		err = f.Write(map[string]string{"TOKEN": "s3cret"})
	}
	fmt.Println(f.Path, err)
	select {}
}

func folderOf(t *testing.T, owner *Owner) *Folder {
	t.Helper()
	f, err := MakeFolder(fmt.Sprintf("test-%d.%s", os.Getpid(), t.Name()), owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Remove(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestFolder(t *testing.T) {
	f := folderOf(t, nil)
	for _, value := range []string{"first", "second"} {
		if err := f.Write(map[string]string{"TOKEN": value}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(f.Path, "TOKEN")
		text, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err := errors.Join(err, statErr); err != nil || string(text) != value || info.Mode() != 0o400 {
			t.Errorf("got %q of mode %v, %v", text, info.Mode(), err)
		}
	}
	var in unix.Statfs_t
	if err := unix.Statfs(f.Path, &in); err != nil || in.Type != unix.TMPFS_MAGIC {
		t.Errorf("not in memory: %x, %v", in.Type, err)
	}
	if swept, err := Sweep(); err != nil || slices.Contains(swept, f.Path) {
		t.Errorf("a living agent's was swept: %v, %v", swept, err)
	}
	again, err := MakeFolder(filepath.Base(f.Path), nil)
	if err != nil || again.Path == f.Path {
		t.Errorf("the same name: got %v, %v", again, err)
	}
	path := f.Path
	if err := errors.Join(again.Remove(), f.Remove(), f.Remove()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it stayed: %v", err)
	}
}

// What a killed agent leaves is removed by the next one.
func TestSweepAfterKill(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=killed-%d", roleVariable, os.Getpid()))
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	path, isNil := strings.CutSuffix(line, " <nil>\n")
	if err != nil || !isNil {
		t.Fatal(line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := os.Lstat(filepath.Join(path, "TOKEN")); err != nil {
		t.Fatal(err)
	}
	if swept, err := Sweep(); err != nil || !slices.Contains(swept, path) {
		t.Errorf("swept %v, %v", swept, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it stayed: %v", err)
	}
}

// A link in the folder is not followed; no user but the process's own reads the files, and it cannot fill the host's
// memory there.
func TestAttackFolderOfSecrets(t *testing.T) {
	need.Root(t)
	const owner, stranger = 54321, 54322
	f := folderOf(t, &Owner{owner, owner})
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, filepath.Join(f.Path, ".TOKEN")),
		os.Symlink(victim, filepath.Join(f.Path, "TOKEN"))); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(map[string]string{"TOKEN": "s3cret"}); err != nil {
		t.Fatal(err)
	}
	var is unix.Stat_t
	text, err := os.ReadFile(victim)
	if err := errors.Join(err, unix.Stat(victim, &is)); err != nil || string(text) != "precious" || is.Uid != 0 {
		t.Errorf("the victim has %q and belongs to %d, %v", text, is.Uid, err)
	}
	reads := func(uid uint32, path string) bool {
		cmd := exec.CommandContext(t.Context(), "cat", path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.Output()
		return err == nil && string(out) == "s3cret"
	}
	if path := filepath.Join(f.Path, "TOKEN"); !reads(owner, path) || reads(stranger, path) {
		t.Errorf("the owner reads it: %t; another user: %t", reads(owner, path), reads(stranger, path))
	}
	fill := exec.CommandContext(t.Context(), "touch", filepath.Join(f.Path, "more"))
	fill.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner, Gid: owner}}
	if out, err := fill.CombinedOutput(); !strings.Contains(string(out), "Permission denied") {
		t.Errorf("the process writes to the folder: got %q, %v", out, err)
	}
	for _, dir := range []string{f.Path, filepath.Dir(f.Path)} {
		cmd := exec.CommandContext(t.Context(), "ls", dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		if out, err := cmd.Output(); err == nil {
			t.Errorf("another user lists %s: %s", dir, out)
		}
	}
}
