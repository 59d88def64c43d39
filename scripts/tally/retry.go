package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// mostTries is how often a failed test is run again.
const mostTries = 2

// retry runs each failed test again alone, by run. One that passes is flaky: it counts as passed, and is named. A
// package that failed outside of a test stays failed.
func retry(
	c Counts, failures []*Failure, flags []string, run func(args []string) error, summary string,
) (Counts, error) {
	for _, f := range failures {
		args := f.command(flags)
		line := fmt.Sprintf("FAIL  %s: %s\n      go %s", f.name(), f.First, strings.Join(f.command(nil), " "))
		for try := 1; try <= mostTries && f.Test != ""; try++ {
			fmt.Printf("again %s, alone, try %d of %d\n", f.name(), try, mostTries)
			if run(args) != nil {
				continue
			}
			c.Failed, c.Passed = c.Failed-f.Tests, c.Passed+f.Tests
			line = fmt.Sprintf("FLAKY %s: passed alone at try %d; at first: %s", f.name(), try, f.First)
			break
		}
		fmt.Println(line)
		if summary == "" {
			continue
		}
		if err := appendLine(summary, line); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (f *Failure) name() string {
	if f.Test == "" {
		return f.Package
	}
	return f.Package + " " + f.Test
}

// command is what runs the test alone.
func (f *Failure) command(flags []string) []string {
	args := slices.Concat([]string{"test", "-count=1"}, flags)
	if f.Test != "" {
		args = append(args, "-run", "^"+f.Test+"$")
	}
	return append(args, f.Package)
}

// alone runs the go command; what it says goes to the terminal.
func alone(args []string) error {
	cmd := exec.Command("go", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
