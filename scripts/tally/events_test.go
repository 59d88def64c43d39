package main

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	const passing = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":1.5}
`
	for _, tt := range []struct {
		name, events string
		want         Counts
		shows, hides []string
	}{
		{"pass", passing, Counts{Passed: 1}, []string{"ok    p  1.5s"}, []string{"quiet"}},
		{"fail", `{"Action":"output","Package":"p","Test":"TestA","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}
`, Counts{Failed: 1}, []string{"got 1, want 2", "FAIL  p"}, nil},
		{"skip with its reason", `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}
`, Counts{Skipped: 1}, []string{"SKIP  p TestA: a_test.go:7: needs root"}, nil},
		{"a package without tests is no skip", `{"Action":"output","Package":"p","Output":"?   p [no test files]\n"}
{"Action":"skip","Package":"p"}
`, Counts{}, nil, []string{"SKIP"}},
		{"a package that does not build", `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p/a.go:3:1: syntax error\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL p [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
`, Counts{Failed: 1}, []string{"syntax error", "build failed"}, nil},
		{"a test that never ends", passing + `{"Action":"output","Package":"q","Test":"TestB","Output":"=== RUN TestB\n"}
`, Counts{Passed: 1, Failed: 1}, []string{"q TestB: never ended"}, nil},
		{"a test that hangs shows where", passing + `{"Action":"output","Package":"q","Test":"TestB","Output":"=== RUN TestB\n"}
{"Action":"output","Package":"q","Test":"TestB/s","Output":"panic: test timed out after 20m0s\n"}
{"Action":"output","Package":"q","Test":"TestB/s","Output":"q.wait(...)\n"}
{"Action":"output","Package":"q","Output":"FAIL\tq\t1200s\n"}
{"Action":"fail","Package":"q"}
`, Counts{Passed: 1, Failed: 2}, []string{"q TestB/s: never ended", "timed out after 20m0s", "q.wait(...)", "FAIL  q"}, nil},
		{"other lines pass through", "go: warning\n" + passing, Counts{Passed: 1}, []string{"go: warning"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			got, _, err := Read(strings.NewReader(tt.events), &out)
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
			for _, s := range tt.shows {
				if !strings.Contains(out.String(), s) {
					t.Errorf("output lacks %q:\n%s", s, out.String())
				}
			}
			for _, s := range tt.hides {
				if strings.Contains(out.String(), s) {
					t.Errorf("output has %q:\n%s", s, out.String())
				}
			}
		})
	}
}

func TestComplaint(t *testing.T) {
	for _, tt := range []struct {
		name    string
		counts  Counts
		noSkips bool
		want    string
	}{
		{"good", Counts{Passed: 1}, true, ""},
		{"a skip where it may be", Counts{Passed: 1, Skipped: 1}, false, ""},
		{"a skip where it may not", Counts{Passed: 1, Skipped: 1}, true, "tests were skipped, which is forbidden here"},
		{"a failure", Counts{Passed: 1, Failed: 1, Skipped: 1}, true, "tests failed"},
		{"nothing", Counts{}, false, "no test ran"},
		{"skips only", Counts{Skipped: 3}, false, "no test ran"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.counts.complaint(tt.noSkips); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSum(t *testing.T) {
	got, err := Sum(strings.NewReader("3 1 0\n\n2 0 4\n"))
	if want := (Counts{5, 1, 4}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := Sum(strings.NewReader("3 one 0\n")); err == nil {
		t.Error("a malformed line was taken")
	}
}
