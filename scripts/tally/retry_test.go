package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A failed test that passes alone is flaky and counts as passed; one that does not stays failed, with how to run it.
func TestRetry(t *testing.T) {
	events := `{"Action":"output","Package":"m/a","Test":"TestX/one","Output":"    x_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"m/a","Test":"TestX/one"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a","Test":"TestOther"}
{"Action":"output","Package":"m/a","Test":"TestY","Output":"    y_test.go:3: broken\n"}
{"Action":"fail","Package":"m/a","Test":"TestY"}
{"Action":"output","Package":"m/a","Test":"TestZ","Output":"WARNING: DATA RACE\n"}
{"Action":"fail","Package":"m/a","Test":"TestZ"}
{"Action":"output","Package":"m/a","Output":"FAIL\n"}
{"Action":"fail","Package":"m/a"}
{"Action":"output","Package":"m/b","Output":"panic: in TestMain\n"}
{"Action":"fail","Package":"m/b"}
{"Action":"output","Package":"m/c","Test":"TestBefore","Output":"    c_test.go:3: broken\n"}
{"Action":"fail","Package":"m/c","Test":"TestBefore"}
{"Action":"output","Package":"m/c","Test":"TestHangs","Output":"=== RUN TestHangs\npanic: test timed out after 20m0s\n"}
{"Action":"output","Package":"m/c","Test":"TestWaits","Output":"=== RUN TestWaits\n=== PAUSE TestWaits\n"}
{"Action":"skip","Package":"m/c","Test":"TestSkipped"}
{"Action":"output","Package":"m/c","Output":"FAIL\tm/c\t1200s\n"}
{"Action":"fail","Package":"m/c"}
`
	var shown strings.Builder
	counts, failures, err := Read(strings.NewReader(events), &shown)
	if err != nil || counts != (Counts{Passed: 1, Failed: 8, Skipped: 1}) {
		t.Fatalf("got %v, %v", counts, err)
	}
	var runs []string
	run := func(args []string) (Counts, error) {
		runs = append(runs, strings.Join(args, " "))
		switch len(runs) {
		case 2: // TestX and its subtest, at its second try
			return Counts{Passed: 2}, nil
		case 7: // m/c, with two tests that had not run at first
			return Counts{Passed: 4, Skipped: 1}, nil
		}
		return Counts{}, errors.New("exit status 1")
	}
	summary := filepath.Join(t.TempDir(), "summary")
	counts, err = retry(counts, failures, goTest([]string{"-race"}), []string{
		"HOME=/root", "MUSTER_BINARY=/src/bin/muster", "CGO_CFLAGS=-O2 -g",
	}, run, summary)
	if err != nil || counts != (Counts{Passed: 7, Failed: 3, Skipped: 1}) {
		t.Errorf("got %v, %v; want 7 passed, 3 failed, 1 skipped", counts, err)
	}
	want := []string{
		"go test -count=1 -race -run ^TestX$ m/a", "go test -count=1 -race -run ^TestX$ m/a",
		"go test -count=1 -race -run ^TestY$ m/a", "go test -count=1 -race -run ^TestY$ m/a",
		"go test -count=1 -race m/b", "go test -count=1 -race m/b", "go test -count=1 -race m/c",
	}
	if strings.Join(runs, "\n") != strings.Join(want, "\n") {
		t.Errorf("ran\n%s\nwant\n%s", strings.Join(runs, "\n"), strings.Join(want, "\n"))
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"FLAKY m/a TestX: passed alone at try 2; at first: x_test.go:3: got 1, want 2",
		"FAIL  m/a TestY: y_test.go:3: broken", "      MUSTER_BINARY=/src/bin/muster CGO_CFLAGS='-O2 -g' go test -count=1 -race -run '^TestY$' m/a\n",
		"FAIL  m/b: panic: in TestMain", " go test -count=1 -race m/b\n",
		"FLAKY m/c: passed alone at try 1; at first: TestHangs never ended: panic: test timed out after 20m0s",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the summary lacks %q:\n%s", line, text)
		}
	}
}

// Tests that another command runs.
func TestRetryByCommand(t *testing.T) {
	for _, f := range []*Failure{
		{Package: "m/a(v2-user)", Test: "TestX", First: "broken", Before: Counts{Failed: 1}},
		{Package: "m/a(v2-user)", First: "broken", Before: Counts{Failed: 1}},
	} {
		summary := filepath.Join(t.TempDir(), "summary")
		how := []string{"testdata/alone"}
		counts, err := retry(Counts{Failed: 1}, []*Failure{f}, how, nil, alone, summary)
		want, line := Counts{Passed: 1}, "FLAKY m/a(v2-user) TestX: passed alone at try 1"
		if f.Test == "" {
			want, line = Counts{Failed: 1}, "testdata/alone 'm/a(v2-user)'\n"
		}
		if text, e := os.ReadFile(summary); err != nil || e != nil || counts != want || !strings.Contains(string(text), line) {
			t.Errorf("got %v, %v and %q, want %v and %q", counts, err, text, want, line)
		}
	}
}

// Where more than ten tests failed none is run again, and each is named.
func TestTooManyToRetry(t *testing.T) {
	for _, n := range []int{mostFailures, mostFailures + 1} {
		var failures []*Failure
		for i := range n {
			failures = append(failures, &Failure{Package: "m/a", Test: fmt.Sprintf("Test%d", i), Before: Counts{Failed: 1}, First: "broken"})
		}
		runs := 0
		run := func([]string) (Counts, error) {
			runs++
			return Counts{}, errors.New("exit status 1")
		}
		summary := filepath.Join(t.TempDir(), "summary")
		counts, err := retry(Counts{Failed: n}, failures, goTest(nil), nil, run, summary)
		if err != nil || counts.Failed != n {
			t.Errorf("got %v, %v", counts, err)
		}
		if n > mostFailures != (runs == 0) {
			t.Errorf("%d failed: %d were run again", n, runs)
		}
		if text, err := os.ReadFile(summary); strings.Count(string(text), "FAIL ") != n {
			t.Errorf("got %s, %v", text, err)
		}
	}
}
