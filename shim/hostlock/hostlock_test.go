package hostlock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestOneHolder(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, name := range []string{"test/", "test/" + long} {
		name += fmt.Sprint(os.Getpid())
		first, err := Take(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Take(name); !errors.Is(err, ErrHeld) {
			t.Fatalf("second: got %v, want %v", err, ErrHeld)
		}
		other, err := Take(name + "y")
		if err != nil {
			t.Fatalf("another name: %v", err)
		}
		for range 2 {
			if err := errors.Join(first.Release(), other.Release()); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Take(name)
		if err != nil {
			t.Fatalf("after the release: %v", err)
		}
		if err := again.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// A program that was started with a lock has it, as long as it lives, and those that it starts do not.
func TestStart(t *testing.T) {
	const role = "MUSTER_TEST_HEIR"
	if name := os.Getenv(role); name != "" {
		heir(name)
		return
	}
	name := "test/heir" + fmt.Sprint(os.Getpid())
	lock, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestStart$")
	cmd.Env = append(os.Environ(), role+"="+name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	given, giver, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{given}
	_, err = giver.WriteString("given")
	if err := errors.Join(err, giver.Close(), lock.Start(cmd), given.Close(), lock.Release()); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(name); !errors.Is(err, ErrHeld) { // whatever the program has done so far
		t.Errorf("started: got %v, want %v", err, ErrHeld)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "taken\n" {
		t.Errorf("got %q, %v", line, err)
	}
	if _, err := Take(name); !errors.Is(err, ErrHeld) {
		t.Errorf("taken: got %v, want %v", err, ErrHeld)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	again, err := Take(name)
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
}

// heir is the program: its own child, which lives on for a moment, has no copy of the lock.
func heir(name string) {
	_ = exec.Command("sleep", "1").Start()
	if _, err := Take(name); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := Take(name); !errors.Is(err, ErrHeld) {
		fmt.Println("taken twice:", err)
		return
	}
	if text, err := io.ReadAll(os.NewFile(4, "given")); string(text) != "given" {
		fmt.Printf("descriptor 4: got %q, %v\n", text, err)
		return
	}
	fmt.Println("taken")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
