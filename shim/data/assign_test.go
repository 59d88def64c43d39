package data

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/schemes"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// What a plan takes for a store is one here, and the other way round: else a run is refused for nothing, or begins for nothing.
func TestStoresOfPlans(t *testing.T) {
	if have, want := slices.Sorted(maps.Keys(schemes.All(hdfs.Config{}))), slices.Sorted(slices.Values(plan.Stores())); !slices.Equal(have, want) {
		t.Errorf("stores: got %v, plans know %v", have, want)
	}
}

func numbered(n int) []transfer.File {
	files := make([]transfer.File, n)
	for i := range files {
		files[i] = transfer.File{Path: fmt.Sprintf("/in/part-%02d", i), Size: int64(i)}
	}
	return files
}

func bases(files []transfer.File) string {
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimPrefix(f.Path, "/in/part-"))
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ",")
}

// The whole table of who gets what, for up to 13 files and 5 workers.
func TestAssignGolden(t *testing.T) {
	var b strings.Builder
	for n := range 14 {
		for workers := 1; workers <= 5; workers++ {
			fmt.Fprintf(&b, "%d files, %d workers:", n, workers)
			for worker := range workers {
				fmt.Fprintf(&b, " %s", bases(Assignment{Workers: workers}.Share(numbered(n), worker)))
			}
			fmt.Fprintf(&b, "  idle %v\n", Assignment{Workers: workers}.Idle(numbered(n)))
		}
	}
	path := filepath.Join("testdata", "assign.txt")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// Every file is somebody's, once; nobody has two more than another; those with none are the idle ones.
func TestAssignLaws(t *testing.T) {
	for n := range 40 {
		for workers := 1; workers <= 9; workers++ {
			files, idle := numbered(n), Assignment{Workers: workers}.Idle(numbered(n))
			var all []string
			least, most := n, 0
			for worker := range workers {
				own := Assignment{Workers: workers}.Share(files, worker)
				least, most = min(least, len(own)), max(most, len(own))
				if (len(own) == 0) != slices.Contains(idle, worker) {
					t.Errorf("%d files, worker %d of %d has %d, idle are %v", n, worker, workers, len(own), idle)
				}
				for _, f := range own {
					all = append(all, f.Path)
				}
			}
			slices.Sort(all)
			if len(all) != n || len(slices.Compact(all)) != n || most-least > 1 {
				t.Errorf("%d files, %d workers: %d dealt out, %d to %d each", n, workers, len(all), least, most)
			}
		}
	}
	for _, worker := range []int{-1, 3, 4} {
		if got := (Assignment{Workers: 3}).Share(numbered(5), worker); got != nil {
			t.Errorf("worker %d of 3: got %v, want nothing", worker, got)
		}
	}
}

// With a chief's own number each file is somebody's, once; the chief has so many with something in them and no more, unless
// it is alone; the others differ by one at most.
func TestDealLaws(t *testing.T) {
	for n := range 20 {
		for workers := 1; workers <= 6; workers++ {
			for chief := range 5 {
				files, d := numbered(n), Assignment{workers, chief}
				idle, seen := d.Idle(files), 0
				least, most := n, 0
				for worker := range workers {
					own := d.Share(files, worker)
					seen += len(own)
					if (len(own) == 0) != slices.Contains(idle, worker) {
						t.Errorf("%d files, %+v: worker %d has %d, idle are %v", n, d, worker, len(own), idle)
					}
					if worker > 0 || chief == 0 {
						least, most = min(least, len(own)), max(most, len(own))
						continue
					}
					own = slices.DeleteFunc(own, func(f transfer.File) bool { return f.Size == 0 })
					if workers > 1 && len(own) != min(chief, max(n-1, 0)) {
						t.Errorf("%d files, %+v: the chief has %d with something in them", n, d, len(own))
					}
				}
				if seen != n || workers > 1 && most-least > 1 {
					t.Errorf("%d files, %+v: %d dealt out, %d to %d each", n, d, seen, least, most)
				}
			}
		}
	}
	if got := (Assignment{0, 1}).Share(numbered(3), 0); got != nil {
		t.Errorf("of nobody: got %v", got)
	}
}

func TestNames(t *testing.T) {
	files := []transfer.File{{Path: "/a/x"}, {Path: "/a/y"}}
	got, err := transfer.Names("data", files)
	if err != nil || len(got) != 2 || got[0].To != "data/x" || got[1].To != "data/y" || got[1].From.Path != "/a/y" {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = transfer.Names("data", append(files, transfer.File{Path: "/b/x"}))
	twice, ok := errors.AsType[*transfer.NameError](err)
	if !ok || *twice != (transfer.NameError{Alias: "data", First: "/a/x", Second: "/b/x"}) || !strings.Contains(err.Error(), "muster.inputs.rename=true") {
		t.Errorf("two of one name: got %v", err)
	}
	_, err = transfer.Names("data", []transfer.File{{Path: "/x", URL: "hdfs://a/x"}, {Path: "/x", URL: "hdfs://b/x"}})
	if err == nil || !strings.Contains(err.Error(), "hdfs://a/x and hdfs://b/x") {
		t.Errorf("of two stores: got %v", err)
	}
	got = transfer.Numbered("data", append(files, transfer.File{Path: "/b/x"}), 1700000000123)
	if len(got) != 3 || got[0].To != "data/1700000000123_0" || got[2].To != "data/1700000000123_2" {
		t.Errorf("renamed: got %v", got)
	}
	for _, tt := range []struct{ dir, file, want string }{
		{"/a", "/a/b/c", "b/c"}, {"/a/", "/a/b", "b"}, {"/a/b", "/a/b", "b"}, {"/", "/x", "x"},
	} {
		if got := transfer.Below(tt.dir, []transfer.File{{Path: tt.file}}); got[0].To != tt.want {
			t.Errorf("%s below %s: got %s, want %s", tt.file, tt.dir, got[0].To, tt.want)
		}
	}
}

func TestPlaceholder(t *testing.T) {
	got := Placeholder(map[string][]transfer.File{"b": {{Path: "/x/2"}}, "a": {{Path: "/x/0"}, {Path: "/x/1"}}, "c": nil})
	if want := `{"a":["/x/0","/x/1"],"b":["/x/2"],"c":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// [A=…, BC=…] of just the length that HBox takes, and one more
	fits := map[string]string{"A": strings.Repeat("x", 120_000), "BC": strings.Repeat("y", mostEnvironment-120_000-len("[A=, BC=]"))}
	if TooLong(fits, 0) {
		t.Error("as long as it may be: too long")
	}
	fits["A"] += "x"
	if !TooLong(fits, 0) {
		t.Error("one byte more: not too long")
	}
	if length := mostEnvironment + 1; TooLong(fits, length) || !TooLong(fits, length-1) {
		t.Error("another length does not hold")
	}
	got = Placeholder(map[string][]transfer.File{"a": {{Path: "/x/0", URL: "hdfs://nn:9000/x/0"}, {Path: "/x/1"}}})
	if want := `{"a":["hdfs://nn:9000/x/0","/x/1"]}`; got != want {
		t.Errorf("of a store: got %s, want %s", got, want)
	}
}
