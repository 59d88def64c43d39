package proc

import (
	"os"
	"testing"
)

func TestStuck(t *testing.T) {
	if got := topOfStack("[<0>] do_wait+0x160/0x2f0\n[<0>] kernel_wait4+0x1/0x2\n"); got != "do_wait" {
		t.Errorf("top of stack %q", got)
	}
	e := &StuckError{[]StuckProcess{{7, "cat", 'D', "nfs_wait", nil}, {8, "x", 'R', "", os.ErrPermission}}}
	if got, want := e.Error(), "still alive after SIGKILL: 7 cat (state D in nfs_wait), 8 x (state R): permission denied"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p := Describe(os.Getpid()); p.State == '?' || p.Name == "unknown" {
		t.Errorf("this process is %v", p)
	}
}
