package proc

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestInnermost(t *testing.T) {
	for _, tt := range []struct {
		status string
		want   int
	}{
		{"Name:\tx\nNSpid:\t4711\t7\nNSpgid:\t1\n", 7}, {"NSpid:\t4711\n", 4711}, {"NSpid:\n", 0}, {"Name:\tx\n", 0}, {"NSpid:\tx\n", 0}, {"", 0},
	} {
		if got := innermost(tt.status); got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.status, got, tt.want)
		}
	}
}

func TestNumbersOfDescendants(t *testing.T) {
	// The parent has one thread, as a guard has one that forks.
	cmd := exec.Command("sh", "-c", "cat <&3 >/dev/null & echo $!; wait")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd.ExtraFiles = []*os.File{read}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		write.Close()
		_ = cmd.Wait() // its end is all that matters
	}()
	parent, child, self := cmd.Process.Pid, 0, os.Getpid()
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	if !(Host{}).Descends(child, self) || (Host{}).Descends(self, child) {
		t.Errorf("%d is a descendant of %d, and not the other way round", child, self)
	}
	if got := (Host{}).OuterPID(parent, child); got != child {
		t.Errorf("outside: got %d, want %d: both are in one namespace", got, child)
	}
	if got := (Host{}).OuterPID(child, parent); got != 0 {
		t.Errorf("outside: got %d, want none", got)
	}
	if got := (Host{}).grandchildren([]int{self}); !slices.Contains(got, parent) {
		t.Errorf("grandchildren: got %d, want %d among them", got, parent)
	}
}
