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

func (c Counts) plus(o Counts) Counts {
	return Counts{c.Passed + o.Passed, c.Failed + o.Failed, c.Skipped + o.Skipped}
}

func (c Counts) minus(o Counts) Counts {
	return Counts{c.Passed - o.Passed, c.Failed - o.Failed, c.Skipped - o.Skipped}
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

// Failure is a failed test with its subtests, or a whole package: Test is empty where a package failed outside of a test,
// or was broken off, so that the tests after the broken one did not run.
type Failure struct {
	Package, Test string
	Before        Counts // what the run counted of it
	First         string // what it said first
	Race          bool   // the race detector has seen one in it
}

// report gathers events and prints what matters of them.
type report struct {
	w        io.Writer
	counted  map[key]Counts           // by top-level test; of a package that failed outside of a test: by no test
	output   map[key]*strings.Builder // of tests and packages that have not ended
	failures []*Failure
	skipped  []string
	raced    map[string]bool // packages in which the race detector has seen one, in whichever test's output it stands
}

type key struct{ pkg, test string }

// Read takes all events from r and reports on w. Lines that are no events go to w as they are.
func Read(r io.Reader, w io.Writer) (Counts, []*Failure, error) {
	rep := &report{w: w, counted: map[key]Counts{}, output: map[key]*strings.Builder{}, raced: map[string]bool{}}
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
			return rep.total(), rep.failures, nil
		}
		if err != nil {
			return rep.total(), rep.failures, err
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
		r.raced[e.Package] = r.raced[e.Package] || strings.Contains(e.Output, "WARNING: DATA RACE")
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
		r.count(e.Package, e.Test, Counts{Passed: 1})
	case "fail":
		r.count(e.Package, e.Test, Counts{Failed: 1})
		r.note(e.Package, e.Test, r.text(e))
		fmt.Fprint(r.w, r.text(e))
	case "skip":
		r.count(e.Package, e.Test, Counts{Skipped: 1})
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
		} else if r.of(e.Package).Failed == 0 {
			r.count(e.Package, "", Counts{Failed: 1})
			r.note(e.Package, "", text)
			fmt.Fprint(r.w, text)
		}
		fmt.Fprintf(r.w, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	}
}

// brokenOff makes one failure of a package: of its failed tests, and of those that have not ended, whose output it prints.
// text is the output of the package itself. Paused tests have not ended either: the one that panicked is named.
func (r *report) brokenOff(pkg, text string) {
	f := &Failure{Package: pkg, First: firstLine(reason(text)), Race: r.raced[pkg]}
	r.failures = slices.DeleteFunc(r.failures, func(other *Failure) bool {
		if other.Package != pkg {
			return false
		}
		f.First = other.First
		return true
	})
	panicked := false
	for _, k := range r.running(pkg) {
		said := r.output[k].String()
		fmt.Fprintf(r.w, "FAIL  %s %s: never ended\n%s", k.pkg, k.test, mostLines(said))
		r.count(pkg, k.test, Counts{Failed: 1})
		delete(r.output, k)
		at := strings.Index(said, "panic: ")
		switch {
		case at >= 0:
			line, _, _ := strings.Cut(said[at:], "\n")
			f.First, panicked = k.test+" never ended: "+firstLine(line), true
		case !panicked:
			f.First = k.test + " never ended"
		}
	}
	fmt.Fprint(r.w, text)
	if r.of(pkg).Failed == 0 {
		r.count(pkg, "", Counts{Failed: 1})
	}
	r.failures = append(r.failures, f)
}

// count adds to what is counted of a top-level test.
func (r *report) count(pkg, test string, c Counts) {
	top, _, _ := strings.Cut(test, "/")
	k := key{pkg, top}
	r.counted[k] = r.counted[k].plus(c)
}

// of is what is counted of a package.
func (r *report) of(pkg string) (sum Counts) {
	for k, c := range r.counted {
		if k.pkg == pkg {
			sum = sum.plus(c)
		}
	}
	return sum
}

func (r *report) total() (sum Counts) {
	for _, c := range r.counted {
		sum = sum.plus(c)
	}
	return sum
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

// close reports packages that never ended and all skips, and completes the failures.
func (r *report) close() {
	pkgs := map[string]bool{}
	for k := range r.output {
		pkgs[k.pkg] = true
	}
	for _, pkg := range slices.Sorted(maps.Keys(pkgs)) {
		r.brokenOff(pkg, r.text(event{Package: pkg}))
	}
	for _, f := range r.failures {
		if f.Before = r.counted[key{f.Package, f.Test}]; f.Test == "" {
			f.Before = r.of(f.Package)
		}
	}
	for _, s := range r.skipped {
		fmt.Fprintln(r.w, "SKIP ", s)
	}
}

// note adds a failed test to the failure of its top-level test.
func (r *report) note(pkg, test, output string) {
	top, _, _ := strings.Cut(test, "/")
	race := r.raced[pkg]
	for _, f := range r.failures {
		if f.Package == pkg && f.Test == top {
			f.Race = f.Race || race
			if f.First == "" {
				f.First = firstLine(reason(output))
			}
			return
		}
	}
	r.failures = append(r.failures, &Failure{Package: pkg, Test: top, First: firstLine(reason(output)), Race: race})
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
