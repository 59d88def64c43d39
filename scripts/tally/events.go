package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Counts are numbers of tests, subtests and examples; a package that failed without a failed test, as one that did not
// build, counts as one failed test.
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

// Failure is a test that failed, with all of its subtests. Test is empty where a package failed outside of one, or was
// broken off: then the tests after that did not run.
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
		// A test binary says FAIL when it has run all tests; one that hung, panicked or exited does not.
		if text := r.text(e); !strings.HasPrefix(text, "FAIL\n") && !strings.Contains(text, "\nFAIL\n") {
			r.brokenOff(e.Package, text)
		} else if r.failed[e.Package] == 0 {
			r.counts.Failed++
			r.note(e.Package, "", text)
			fmt.Fprint(r.w, text)
		}
		fmt.Fprintf(r.w, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	}
}

// brokenOff makes one failure of all failures of a package and the tests of it that have not ended, and prints what
// those said. text is what the package said.
func (r *report) brokenOff(pkg, text string) {
	f := &Failure{Package: pkg, Tests: r.failed[pkg], First: firstLine(reason(text))}
	r.failures = slices.DeleteFunc(r.failures, func(other *Failure) bool {
		if other.Package != pkg {
			return false
		}
		f.First = other.First
		return true
	})
	for _, k := range r.running(pkg) {
		said := r.output[k].String()
		fmt.Fprintf(r.w, "FAIL  %s %s: never ended\n%s", k.pkg, k.test, mostLines(said))
		f.Tests++
		f.First = k.test + " never ended"
		if at := strings.Index(said, "panic: "); at >= 0 {
			line, _, _ := strings.Cut(said[at:], "\n")
			f.First += ": " + firstLine(line)
		}
		delete(r.output, k)
	}
	fmt.Fprint(r.w, text)
	f.Tests = max(f.Tests, 1)
	r.counts.Failed += f.Tests - r.failed[pkg]
	r.failed[pkg] = f.Tests
	r.failures = append(r.failures, f)
}

// running are the tests of a package that have begun and not ended, a test before its subtests.
func (r *report) running(pkg string) []key {
	var tests []key
	for k := range r.output {
		if k.test != "" && k.pkg == pkg {
			tests = append(tests, k)
		}
	}
	slices.SortFunc(tests, func(a, b key) int { return strings.Compare(a.test, b.test) })
	return tests
}

// mostLines is text without what comes after its first lines: all goroutines of a test that hung are thousands.
func mostLines(text string) string {
	const most = 400
	lines := strings.SplitAfterN(text, "\n", most+1)
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "") + "…\n"
}

// close reports packages that never ended, and all skips.
func (r *report) close() {
	pkgs := map[string]bool{}
	for k := range r.output {
		pkgs[k.pkg] = true
	}
	for _, pkg := range slices.Sorted(maps.Keys(pkgs)) {
		r.brokenOff(pkg, r.text(event{Package: pkg}))
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
