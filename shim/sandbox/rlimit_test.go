package sandbox

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatTheProcessEngineCannotHold(t *testing.T) {
	want := []string{"cpu_hard", "gpus", "high_mb", "pids", "shm_mb", "swap_mb", "vcores"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(Process{}.Cannot()))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseRlimits(t *testing.T) {
	got, err := ParseRlimits(map[string]string{"nofile": "65536", "memlock": "unlimited", "core": "0:unlimited", "stack": "8192:16384"})
	want := map[string]Rlimit{"nofile": {65536, 65536}, "memlock": {Unlimited, Unlimited}, "core": {0, Unlimited}, "stack": {8192, 16384}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	_, err = ParseRlimits(map[string]string{"files": "1", "as": "2G", "core": "0", "cpu": "1:", "nofile": "2:1", "rss": "1:2:3"})
	const wrong = `limit as "2G": want a number or unlimited, or soft:hard; limit cpu "1:": want a number or unlimited, or soft:hard; limit "files": want one of cpu fsize data stack core rss nproc nofile memlock as locks sigpending msgqueue nice rtprio rttime; ` +
		`limit nofile "2:1": want a soft limit no greater than the hard one; limit rss "1:2:3": want a number or unlimited, or soft:hard`
	if err == nil || err.Error() != wrong {
		t.Errorf("got  %v\nwant %s", err, wrong)
	}
}
