package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/render"
)

const (
	mostTries    = 2  // how often a failed test is run again
	mostFailures = 10 // above, something is missing that all of them need, and none is run again
)

// retry runs each failed test again alone, by run, and each failed package whole. What passes then is flaky: it is named,
// and the counts of that run take the place of the first ones. how is the command for one, less its name; environ is the
// environment of the tests.
func retry(
	c Counts, failures []*Failure, how, environ []string, run func(args []string) (Counts, error), summary string,
) (Counts, error) {
	tries := mostTries
	if len(failures) > mostFailures {
		tries = 0
		fmt.Printf("%d tests failed, which is more than %d: none is run again\n", len(failures), mostFailures)
	}
	for _, f := range failures {
		args, tries := f.command(how), tries
		if f.Race { // it is one, whatever a second run does
			tries = 0
		}
		line := fmt.Sprintf("FAIL  %s: %s\n      %s", f.name(), f.First, shell(environ, args))
		for try := 1; try <= tries; try++ {
			fmt.Printf("again %s, alone, try %d of %d\n", f.name(), try, mostTries)
			got, err := run(args)
			if err != nil || got.Failed > 0 || got.Passed == 0 {
				continue
			}
			c = c.minus(f.Before).plus(got)
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

// goTest is go's command for a test.
func goTest(flags []string) []string { return slices.Concat([]string{"go", "test", "-count=1"}, flags) }

// command is what runs the test alone.
func (f *Failure) command(how []string) []string {
	args := slices.Clone(how)
	switch {
	case f.Test == "":
		return append(args, f.Package)
	case args[0] == "go":
		return append(args, "-run", "^"+f.Test+"$", f.Package)
	}
	return append(args, f.Package, f.Test)
}

// shell is a command as a shell takes it, with the variables that tests and their build look at.
func shell(environ, args []string) string {
	var words []string
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "MUSTER_") || strings.HasPrefix(name, "CGO_") || name == "GOFLAGS" {
			words = append(words, name+"="+render.ShellWord(value))
		}
	}
	for _, a := range args {
		words = append(words, render.ShellWord(a))
	}
	return strings.Join(words, " ")
}

// alone runs a command, go test with -json; what it says of failures goes to the terminal.
func alone(args []string) (Counts, error) {
	if args[0] == "go" {
		args = slices.Insert(slices.Clone(args), 2, "-json")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return Counts{}, err
	}
	if err := cmd.Start(); err != nil {
		return Counts{}, err
	}
	counts, _, err := Read(events, os.Stdout)
	return counts, errors.Join(err, cmd.Wait())
}
