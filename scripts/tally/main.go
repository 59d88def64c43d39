// Command tally reads the events of `go test -json` and prints what a person wants to see of them:
// one line per package, the whole output of what failed, the reason of each skip and at the end
// `N passed, N failed, N skipped`.
//
//	go test -json ./... | tally [-no-skips] [-add FILE]
//	tally [-no-skips] -sum FILE
//
// -add appends the counts to FILE, one line `passed failed skipped` per run; -sum adds up such lines
// and prints the closing line only. The exit status is 1 when something failed, when nothing ran, and with
// -no-skips when something was skipped.
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
	flag.Parse()

	counts, err := count(*sum)
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

func count(sum string) (Counts, error) {
	if sum == "" {
		return Read(os.Stdin, os.Stdout)
	}
	f, err := os.Open(sum)
	if err != nil {
		return Counts{}, err
	}
	defer f.Close()
	return Sum(f)
}

func appendTo(path string, c Counts) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, c.Passed, c.Failed, c.Skipped)
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
