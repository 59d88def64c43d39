package image

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/packages/cachedir"
	"github.com/muster-agent/muster/tests/need"
)

// TestInUserNamespace asks in a real one, in which this test runs anew: its root must unpack as a plain user.
func TestInUserNamespace(t *testing.T) {
	const mark = "MUSTER_TEST_IN_USER_NAMESPACE"
	if os.Getenv(mark) != "" {
		f, err := formHere(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() != 0 || !cachedir.InUserNamespace() || !f.plain() {
			t.Errorf("uid %d, in a user namespace: got %v, plain: %v, want root of one and plain", os.Geteuid(), cachedir.InUserNamespace(), f.plain())
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInUserNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), mark+"=1", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		need.Skip(t, "user namespaces are forbidden here: "+err.Error())
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v: %s", err, out)
	}
}
