package paireport

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got\n%s", path, diff)
	}
}

// TestTables: all rows, each code once, and every column filled in.
func TestTables(t *testing.T) {
	var out strings.Builder
	for version, n := range map[string]int{"0.14": 53, "1": 62} {
		if got := len(tableOf(version)); got != n {
			t.Errorf("%s: %d rows, want %d", version, got, n)
		}
	}
	for _, version := range []string{"0.14", "1"} {
		fmt.Fprintf(&out, "# %s\n", version)
		seen := map[int]bool{}
		for _, e := range tableOf(version) {
			if seen[e.Code] {
				t.Errorf("%s: code %d stands twice", version, e.Code)
			}
			seen[e.Code] = true
			fmt.Fprintf(&out, "%d %s %s %s %s\n", e.Code, e.Phrase, e.Type, e.Behavior, e.Reaction)
			if retried := strings.HasPrefix(e.Behavior, "TRANSIENT"); retried != strings.HasPrefix(e.Reaction, "ALWAYS") {
				t.Errorf("%s: %d: %s, but %s", version, e.Code, e.Behavior, e.Reaction)
			}
		}
	}
	golden(t, "testdata/codes.txt", out.String())
	if tableOf("0.5")[1] != tableOf("0.14")[1] {
		t.Error("0.5 is judged by another table than 0.14")
	}
}

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		version    string
		code, want int
	}{{"0.14", 137, 137}, {"0.14", 77, 256}, {"0.14", -9, -8000}, {"1", 131, 131}, {"1", 3, 256}, {"1", -9, -8000}} {
		if got := entryOf(tc.version, tc.code); got.Code != tc.want || got.Phrase == "" {
			t.Errorf("%s, %d: got %+v, want the row of %d", tc.version, tc.code, got, tc.want)
		}
	}
}

func TestClassify(t *testing.T) {
	code := func(n int) Facts { return Facts{Code: &n} }
	never := func(c registry.Class) Facts { return Facts{Class: c} }
	for _, tc := range []struct {
		name    string
		f       Facts
		old, v1 int // 0.5 and 0.14; 1
	}{
		{"success", code(0), 0, 0},
		{"user's code", code(1), 255, 255},
		{"user's 125", code(125), 255, 255},
		{"user's 127", code(127), 255, 255},
		{"user's 255", code(255), 255, 255},
		{"user's 128, no device", code(128), 255, 255},
		{"INT", Facts{Signal: 2}, 130, 130},
		{"QUIT", Facts{Signal: 3}, 255, 131},
		{"ILL", Facts{Signal: 4}, 132, 132},
		{"ABRT by a shell", code(134), 134, 134},
		{"BUS", Facts{Signal: 7}, 135, 135},
		{"FPE", Facts{Signal: 8}, 136, 136},
		{"KILL", Facts{Signal: 9}, 137, 137},
		{"SEGV", Facts{Signal: 11}, 139, 139},
		{"PIPE by a shell", code(141), 141, 141},
		{"TERM", Facts{Signal: 15}, 143, 143},
		{"USR1", Facts{Signal: 10}, 255, 255},
		{"out of memory", Facts{Signal: 9, OOM: true, Class: registry.ClassOOM}, 196, -1200},
		{"a child out of memory", Facts{Code: new(1), OOM: true, Class: registry.ClassOOM}, 255, 255},
		{"a device", Facts{Code: new(1), Class: registry.ClassGPU, Message: "Xid 48 (double bit ECC error)"}, 255, 128},
		{"another fault of a device", Facts{Code: new(1), Class: registry.ClassGPU, Message: "Xid 79"}, 255, 255},
		{"muster.duration", Facts{Signal: 15, Class: registry.ClassTimeout}, 143, -1004},
		{"host lost", never(registry.ClassHost), -7111, -1001},
		{"preempted", never(registry.ClassPreempted), -7120, -1003},
		{"barrier", never(registry.ClassTimeout), -7252, 251},
		{"no port", never(registry.ClassNetwork), -7103, 253},
		{"no image", never(registry.ClassImage), 193, 254},
		{"no device", never(registry.ClassGPU), 193, -1205},
		{"no input", never(registry.ClassData), 193, -1204},
		{"definition", never(registry.ClassDefinition), -7251, -1100},
		{"not permitted", never(registry.ClassNotPermitted), 193, -1005},
		{"ours", never(registry.ClassMuster), 256, 256},
		{"flex", never(registry.ClassFlex), -7123, -230},
		{"muster stop", Facts{Signal: 15, End: ByUser}, -7351, -210},
		{"another's end", Facts{Signal: 15, End: WithApp}, -7400, -220},
	} {
		for version, want := range map[string]int{"0.5": tc.old, "0.14": tc.old, "1": tc.v1} {
			if got := Classify(version, tc.f); got.Code != want || got.Phrase == "" {
				t.Errorf("%s, %s: got %d %s, want %d", tc.name, version, got.Code, got.Phrase, want)
			}
		}
	}
}

func TestUserCodeStandsBeside(t *testing.T) {
	if c := (Facts{Code: new(1)}).UserCode(); c == nil || *c != 1 {
		t.Errorf("got %v, want 1", c)
	}
	if c := (Facts{Signal: 9}).UserCode(); c == nil || *c != 137 {
		t.Errorf("got %v, want 137", c)
	}
	if c := (Facts{Class: registry.ClassImage}).UserCode(); c != nil {
		t.Errorf("got %d, want none", *c)
	}
}

func TestExitReport(t *testing.T) {
	f := Facts{
		Code: new(1), Reason: `worker-1 exited with 1: "no such file"`, Solution: "see, on its host, muster logs d1/worker-1 --stderr --tail 20",
		User: "step 1\nTraceback:\n\tFileNotFoundError: 'däta'\n", Runtime: "level=INFO msg=started\nlevel=INFO msg=gone\n",
	}
	for _, version := range []string{"0.14", "1"} {
		golden(t, "testdata/report-"+version+".txt", ExitReport(version, f))
	}
	if ExitReport("0.5", f) != ExitReport("0.14", f) {
		t.Error("0.5 has another report than 0.14")
	}
	killed := ExitReport("1", Facts{Signal: 9, OOM: true, Message: "killed at the limit of 64 MB"})
	for _, want := range []string{"exitCode: -1200\n", `trigger: "out of memory"`, "originUserExitCode: 137\n", `matchedPlatformLogString: "killed at the limit of 64 MB"`} {
		if !strings.Contains(killed, want) {
			t.Errorf("got\n%s\nwant %s in it", killed, want)
		}
	}
}

// TestExitReportIsBounded: whatever the logs hold, the parts keep their sizes, and nothing in them ends the block.
func TestExitReportIsBounded(t *testing.T) {
	long := map[string]string{
		"text": strings.Repeat("0123456789\n", 10_000), "one line": strings.Repeat("x", 100_000), "controls": strings.Repeat("\x00\x1b", 50_000),
		"two bytes each": strings.Repeat("ä", 50_000), "not UTF-8": strings.Repeat("\xff", 100_000), "quotes": strings.Repeat(`"\`, 50_000),
		"markers": strings.Repeat(end+"\n"+begin+"\n", 1000),
	}
	for name, text := range long {
		for _, version := range []string{"0.5", "1"} {
			f := Facts{Code: new(7), Message: text, Reason: text, Solution: text, User: text, Runtime: text}
			got := ExitReport(version, f)
			inner, ok := strings.CutPrefix(got, begin+"\n")
			inner, ok2 := strings.CutSuffix(inner, end+"\n")
			if !ok || !ok2 || strings.Contains(inner, "[PAI_") {
				t.Fatalf("%s, %s: the markers are not the only ones", version, name)
			}
			parts := values(t, inner)
			if version == "1" {
				if len(got) > blockBytes || len(got) < blockBytes/2 && name != "not UTF-8" { // that becomes one rune
					t.Errorf("%s: %d bytes, want at most %d and use of them", name, len(got), blockBytes)
				}
				if n := strings.Count(parts["user"], "\n") + 1; n > userLines {
					t.Errorf("%s: %d lines of the user's log, want at most %d", name, n, userLines)
				}
				if n := strings.Count(parts["platform"], "\n") + 1; n > platformLines {
					t.Errorf("%s: %d lines of the agent's log, want at most %d", name, n, platformLines)
				}
				continue
			}
			for key, most := range map[string]int{"reason": reasonBytes, "solution": solutionBytes, "user": userBytes, "runtime": 2 * runtimeBytes} {
				if n := len(parts[key]); n > most {
					t.Errorf("%s: %d bytes of %s, want at most %d", name, n, key, most)
				}
			}
		}
	}
}

// values reads the lines of a report again: every one is a key with a JSON value, or begins a section.
func values(t *testing.T, text string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			t.Fatalf("no key: %q", line)
		}
		if value = strings.TrimSpace(value); value == "" || value == "null" {
			continue
		}
		if _, err := strconv.Atoi(value); err == nil {
			continue
		}
		var s string
		if err := json.Unmarshal([]byte(value), &s); err != nil {
			t.Fatalf("%s: %v: %q", key, err, value)
		}
		all[key] = s
	}
	return all
}
