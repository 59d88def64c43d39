package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Counts are numbers of tests, subtests and examples; a package that failed without a failed test
// (it did not build, or panicked outside one) counts as one failed test.
type Counts struct{ Passed, Failed, Skipped int }

func (c Counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.Passed, c.Failed, c.Skipped)
}

// complaint says why a run with these counts is not a good one, or nothing.
func (c Counts) complaint(noSkips bool) string {
	switch {
	case c.Failed > 0:
		return "tests failed"
	case c.Passed == 0:
		return "no test ran"
	case noSkips && c.Skipped > 0:
		return "tests were skipped, which is forbidden here"
	}
	return ""
}

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// Failure is a test that failed, with all of its subtests; Test is empty where a package failed outside of one.
type Failure struct {
	Package, Test string
	Tests         int    // failed tests: the one, its subtests and their parents
	First         string // first line that says what was wrong
}

// report gathers events and prints what matters of them.
type report struct {
	w        io.Writer
	counts   Counts
	output   map[key]*strings.Builder // of tests and packages that have not ended
	failed   map[string]int           // failed tests by package
	failures []*Failure
	skipped  []string
}

type key struct{ pkg, test string }

// Read takes all events from r and reports on w. Lines that are no events go to w as they are.
func Read(r io.Reader, w io.Writer) (Counts, []*Failure, error) {
	rep := &report{w: w, output: map[key]*strings.Builder{}, failed: map[string]int{}}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
			fmt.Fprint(w, line)
		} else {
			rep.take(e)
		}
		if err == io.EOF {
			rep.close()
			return rep.counts, rep.failures, nil
		}
		if err != nil {
			return rep.counts, rep.failures, err
		}
	}
}

func (r *report) take(e event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.w, e.Output)
	case "output":
		if r.output[k] == nil {
			r.output[k] = &strings.Builder{}
		}
		r.output[k].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
		delete(r.output, k)
	}
}

func (r *report) endTest(e event) {
	switch e.Action {
	case "pass":
		r.counts.Passed++
	case "fail":
		r.counts.Failed++
		r.failed[e.Package]++
		r.note(e.Package, e.Test, r.text(e))
		fmt.Fprint(r.w, r.text(e))
	case "skip":
		r.counts.Skipped++
		r.skipped = append(r.skipped, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason(r.text(e))))
	}
}

func (r *report) endPackage(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(r.w, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		if r.failed[e.Package] == 0 {
			r.counts.Failed++
			r.note(e.Package, "", r.text(e))
			fmt.Fprint(r.w, r.text(e))
		}
		fmt.Fprintf(r.w, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	}
}

// close reports tests that never ended and all skips.
func (r *report) close() {
	for k := range r.output {
		if k.test != "" && r.failed[k.pkg] == 0 {
			r.counts.Failed++
			r.failed[k.pkg]++
			r.note(k.pkg, k.test, "never ended")
			fmt.Fprintf(r.w, "FAIL  %s %s: never ended\n", k.pkg, k.test)
		}
	}
	for _, s := range r.skipped {
		fmt.Fprintln(r.w, "SKIP ", s)
	}
}

// note adds a failed test to the failure of its top-level test.
func (r *report) note(pkg, test, output string) {
	top, _, _ := strings.Cut(test, "/")
	for _, f := range r.failures {
		if f.Package == pkg && f.Test == top {
			f.Tests++
			if f.First == "" {
				f.First = firstLine(reason(output))
			}
			return
		}
	}
	r.failures = append(r.failures, &Failure{Package: pkg, Test: top, Tests: 1, First: firstLine(reason(output))})
}

func firstLine(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func (r *report) text(e event) string {
	if b := r.output[key{e.Package, e.Test}]; b != nil {
		return b.String()
	}
	return ""
}

// reason is what a skipped test said, without the lines of the test runner.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
