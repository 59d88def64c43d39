package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestUnmatchedIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		others []string // at 0 s, 30 s, 60 s and 90 s; "": nothing
		want   []bool
	}{
		{"from the first minute on", []string{"a", "a", "a", "b"}, []bool{false, false, true, true}},
		{"gone meanwhile", []string{"a", "a", "", "a"}, []bool{false, false, false, false}},
		{"nothing", []string{"", "", "", ""}, []bool{false, false, false, false}},
	} {
		var u unmatched
		for i, name := range c.others {
			var others []string
			if name != "" {
				others = []string{name}
			}
			if got := u.see(others, time.Unix(int64(30*i), 0)); got != c.want[i] {
				t.Errorf("%s, after %d s: got %t", c.name, 30*i, got)
			}
		}
	}
}

func TestSuggestedPattern(t *testing.T) {
	for want, others := range map[string][]string{
		"step-*": {"model.pt"}, "model_*.pt": {"log", "model_12.pt"}, "epoch=3-step=*.ckpt": {"epoch=3-step=400.ckpt"},
		"save-*": {"save-7/"},
	} {
		if got := suggested(others); got != want {
			t.Errorf("%q: got %q, want %q", others, got, want)
		}
	}
}

func TestInstancesHaveFolders(t *testing.T) {
	for name, want := range map[string]bool{"worker-0/": true, "3/": true, "worker-0": false, "saves/": false, "": false} {
		if got := isInstance(name); got != want {
			t.Errorf("%q: got %t", name, got)
		}
	}
}

// A folder whose files no pattern matches is warned of once it has had them for a minute, until one matches.
func TestUnmatchedWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		var mu sync.Mutex
		var warned, mended []string
		s.told = Notices{
			Warn: func(_, text string) {
				mu.Lock()
				defer mu.Unlock()
				warned = append(warned, text)
			},
			Mended: func(_, text string) {
				mu.Lock()
				defer mu.Unlock()
				mended = append(mended, text)
			},
		}
		_, end := s.agent(0, s.state)
		defer end()
		must(t, os.WriteFile(filepath.Join(s.top, "model_7.pt"), []byte("x"), 0o600))
		time.Sleep(3 * unmatchedPatience)
		synctest.Wait()
		mu.Lock()
		text := strings.Join(warned, "\n")
		mu.Unlock()
		for _, want := range []string{`by muster.checkpoint.pattern "step-*": model_7.pt;`, `such as "model_*.pt"`} {
			if !strings.Contains(text, want) {
				t.Errorf("got %q, want %q in it", text, want)
			}
		}
		s.save("step-8")
		time.Sleep(unmatchedPatience)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(mended) == 0 {
			t.Error("the warning stands although a checkpoint is there")
		}
	})
}
