package stream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/data/transfer"
)

const mib = 1 << 20

// The splits of files that are cut are those that TextInputFormat of Hadoop 3.4.2 said, of files with blocks of 128 MiB.
func TestSplits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sizes []int64
		want  int
		whole bool
		out   string // file:from+length
	}{
		{"small files are one each", []int64{3, 5, 7}, 1, false, "0:0+3 1:0+5 2:0+7"},
		{"an empty file is one too", []int64{0, 5}, 1, false, "0:0+0 1:0+5"},
		{"a block", []int64{128 * mib}, 1, false, "0:0+134217728"},
		{"a tenth more stays with it", []int64{128*mib + 13421772}, 1, false, "0:0+147639500"},
		{"more does not", []int64{128*mib + 13421773}, 1, false, "0:0+134217728 0:134217728+13421773"},
		{"three blocks", []int64{300 * mib}, 1, false, "0:0+134217728 0:134217728+134217728 0:268435456+46137344"},
		{"as many as are asked for", []int64{100}, 4, false, "0:0+25 0:25+25 0:50+25 0:75+25"},
		{"the goal is of all files", []int64{100, 10}, 2, false, "0:0+55 0:55+45 1:0+10"},
		{"more than there are bytes", []int64{3}, 100, false, "0:0+1 0:1+1 0:2+1"},
		{"none is asked for", []int64{3}, 0, false, "0:0+3"},
		{"several files", []int64{1000, 333, 0, 90}, 7, false, "0:0+203 0:203+203 0:406+203 0:609+203 0:812+188 1:0+203 1:203+130 2:0+0 3:0+90"},
		{"whole", []int64{300 * mib}, 4, true, "0:0+-1"},
		{"nobody knows the size", []int64{-1, 4}, 2, false, "0:0+-1 1:0+2 1:2+2"},
	} {
		var files []transfer.File
		for i, size := range tt.sizes {
			files = append(files, transfer.File{Path: fmt.Sprint(i), Size: size})
		}
		var out []string
		for _, s := range cutSplits(files, tt.want, func(transfer.File) bool { return !tt.whole }) {
			out = append(out, fmt.Sprintf("%s:%d+%d", s.File.Path, s.From, s.Length))
		}
		if got := strings.Join(out, " "); got != tt.out {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.out)
		}
	}
}

// Every byte of every file is in one split, whatever the sizes and however many are asked for.
func TestSplitsHaveEachByteOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var files []transfer.File
		for i := range random.IntN(8) {
			size := random.Int64N(int64(1) << random.IntN(34))
			files = append(files, transfer.File{Path: fmt.Sprint(i), Size: size})
		}
		want := random.IntN(50)
		at := map[string]int64{}
		last := -1
		for _, s := range cutSplits(files, want, func(transfer.File) bool { return true }) {
			i := slices.IndexFunc(files, func(f transfer.File) bool { return f.Path == s.File.Path })
			if i < last || s.From != at[s.File.Path] || s.Length < 0 || s.Length == 0 && s.File.Size > 0 || float64(s.Length) > slop*blockSize {
				t.Fatalf("%v, asked for %d: split %+v", files, want, s)
			}
			last, at[s.File.Path] = i, s.end()
		}
		for _, f := range files {
			if at[f.Path] != f.Size {
				t.Fatalf("%v, asked for %d: %s ends at %d", files, want, f.Path, at[f.Path])
			}
		}
	}
}

// Each split is one reader's. In turn, reader k has k, k+n, …; in blocks the readers follow each other, and the first have
// one more.
func TestAssign(t *testing.T) {
	for all := range 40 {
		for workers := 1; workers <= 7; workers++ {
			splits := make([]Split, all)
			for i := range splits {
				splits[i].From = int64(i)
			}
			for _, shuffle := range []bool{true, false} {
				var got []int
				before := all
				for worker := range workers {
					own := assign(Turn{workers, worker, shuffle}, splits)
					if len(own) > before || len(own) < all/workers {
						t.Errorf("%d among %d: reader %d has %d", all, workers, worker, len(own))
					}
					before = len(own)
					for k, s := range own {
						if shuffle && s.From != int64(worker+k*workers) {
							t.Errorf("%d among %d: reader %d has %d as number %d", all, workers, worker, s.From, k)
						}
						got = append(got, int(s.From))
					}
				}
				if shuffle {
					slices.Sort(got)
				}
				for i := range all {
					if len(got) != all || got[i] != i {
						t.Fatalf("%d among %d, shuffle %t: %v", all, workers, shuffle, got)
					}
				}
			}
		}
	}
}

func TestHidden(t *testing.T) {
	for name, want := range map[string]bool{"/a/part-0": false, "/a/_SUCCESS": true, "/a/.part-0.crc": true, "/_a/.b/c": false} {
		if got := Hidden(transfer.File{Path: name}); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
}
