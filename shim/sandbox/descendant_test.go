package sandbox

import (
	"os"
	"os/exec"
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
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat")
	cmd.Stdin = read
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		write.Close()
		_ = cmd.Wait() // its end is all that matters
	}()
	child, self := cmd.Process.Pid, os.Getpid()
	if !(Host{}).descends(child, self) || (Host{}).descends(self, child) {
		t.Errorf("%d is a child of %d, and not the other way round", child, self)
	}
	if got := (Host{}).outside(self, child); got != child {
		t.Errorf("outside: got %d, want %d: both are in one namespace", got, child)
	}
	if got := (Host{}).outside(child, self); got != 0 {
		t.Errorf("outside: got %d, want none", got)
	}
}
