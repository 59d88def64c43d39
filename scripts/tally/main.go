// Command tally reads the events of `go test -json` and prints what a person wants to see of them:
// one line per package, the whole output of what failed, the reason of each skip and at the end
// `N passed, N failed, N skipped`.
//
//	go test -json ./... | tally [-no-skips] [-add FILE] [-again 'FLAGS' | -alone COMMAND] [-summary FILE]
//	tally [-no-skips] -sum FILE
//
// -add appends the counts to FILE, one line `passed failed skipped` per run; -sum adds up such lines and prints the
// closing line only. With -again each failed test is run again alone, with these flags of go test, at most twice; with
// -alone by COMMAND PACKAGE [TEST], which prints such events. Where more than ten failed, none is. A test that then
// passes counts as passed and is printed as flaky; one in which the race detector has seen a race is not run again. A
// package that hung, panicked or exited is run again whole: the tests after the broken one did not run. -summary appends
// a line for each flaky and each failed test: its first complaint, and the command that runs it alone in the same
// environment. The exit status is 1 when something failed, when nothing ran, and with -no-skips when something was
// skipped.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	noSkips := flag.Bool("no-skips", false, "a skipped test is a failure")
	add := flag.String("add", "", "append the counts to `FILE`")
	sum := flag.String("sum", "", "add up the counts in `FILE` instead of reading events")
	again := flag.String("again", "", "run failed tests again alone, with these `FLAGS` of go test")
	command := flag.String("alone", "", "run failed tests again alone, by `COMMAND` PACKAGE [TEST]")
	summary := flag.String("summary", "", "append a line for each flaky and failed test to `FILE`")
	flag.Parse()

	counts, failures, err := count(*sum)
	how := goTest(strings.Fields(*again))
	if *command != "" {
		how = strings.Fields(*command)
	}
	if err == nil && (*again != "" || *command != "") {
		counts, err = retry(counts, failures, how, os.Environ(), alone, *summary)
	}
	if err == nil && *add != "" {
		err = appendTo(*add, counts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	if complaint := counts.complaint(*noSkips); complaint != "" {
		fmt.Println("tally:", complaint)
		fmt.Println(counts)
		os.Exit(1)
	}
	fmt.Println(counts)
}

func count(sum string) (Counts, []*Failure, error) {
	if sum == "" {
		return Read(os.Stdin, os.Stdout)
	}
	f, err := os.Open(sum)
	if err != nil {
		return Counts{}, nil, err
	}
	defer f.Close()
	counts, err := Sum(f)
	return counts, nil, err
}

func appendTo(path string, c Counts) error {
	return appendLine(path, fmt.Sprint(c.Passed, " ", c.Failed, " ", c.Skipped))
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// Sum adds up lines `passed failed skipped`.
func Sum(r io.Reader) (Counts, error) {
	var total Counts
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var c Counts
		if _, err := fmt.Sscan(lines.Text(), &c.Passed, &c.Failed, &c.Skipped); err != nil {
			return total, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		total.Passed += c.Passed
		total.Failed += c.Failed
		total.Skipped += c.Skipped
	}
	return total, lines.Err()
}
