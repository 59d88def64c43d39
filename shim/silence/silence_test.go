package silence

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestLook(t *testing.T) {
	const limit = 10 * time.Minute
	first := Signs{Attempt: 1, Stdout: 5, Progress: -1}
	type look struct {
		at   time.Duration
		s    Signs
		want Finding
	}
	with := func(change func(*Signs)) Signs { s := first; change(&s); return s }
	for name, looks := range map[string][]look{
		"no process runs": {{0, Signs{}, Finding{}}, {time.Hour, Signs{}, Finding{}}},
		"silent from its start on": {
			{0, Signs{}, Finding{}},
			{time.Hour, Signs{Attempt: 1}, Finding{}},
			{time.Hour + limit - 1, Signs{Attempt: 1}, Finding{}},
			{time.Hour + limit, Signs{Attempt: 1}, Finding{Silent, limit}},
		},
		"told again when it has doubled": {
			{0, first, Finding{}},
			{limit, first, Finding{Silent, limit}},
			{2*limit - 1, first, Finding{}},
			{2 * limit, first, Finding{Silent, 2 * limit}},
			{3 * limit, first, Finding{}},
			{9 * limit, first, Finding{Silent, 9 * limit}}, // the agent was stopped: once for 4 and 8
			{10 * limit, first, Finding{}},
			{16 * limit, first, Finding{Silent, 16 * limit}},
		},
		"stdout":     {{0, first, Finding{}}, {limit, with(func(s *Signs) { s.Stdout++ }), Finding{}}},
		"stderr":     {{0, first, Finding{}}, {limit, with(func(s *Signs) { s.Stderr++ }), Finding{}}},
		"checkpoint": {{0, first, Finding{}}, {limit, with(func(s *Signs) { s.Step++ }), Finding{}}},
		"progress":   {{0, first, Finding{}}, {limit, with(func(s *Signs) { s.Progress = 0 }), Finding{}}},
		"a rotated log": {
			{0, first, Finding{}},
			{limit - 1, with(func(s *Signs) { s.Stdout = 0 }), Finding{}},
			{limit, with(func(s *Signs) { s.Stdout = 0 }), Finding{}},
		},
		"heard, and silent once more": {
			{0, first, Finding{}},
			{limit, first, Finding{Silent, limit}},
			{limit + time.Minute, with(func(s *Signs) { s.Stdout++ }), Finding{Heard, limit + time.Minute}},
			{2 * limit, with(func(s *Signs) { s.Stdout++ }), Finding{}},
			{2*limit + time.Minute, with(func(s *Signs) { s.Stdout++ }), Finding{Silent, limit}},
		},
		"ended while silent": {
			{0, first, Finding{}},
			{limit, first, Finding{Silent, limit}},
			{limit + 1, with(func(s *Signs) { s.Attempt = 0 }), Finding{Ended, limit + 1}},
			{time.Hour, with(func(s *Signs) { s.Attempt = 0 }), Finding{}},
		},
		"started again while silent": {
			{0, first, Finding{}},
			{limit, first, Finding{Silent, limit}},
			{limit + 1, with(func(s *Signs) { s.Attempt = 2 }), Finding{Ended, limit + 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, start := newWatch(limit), time.Unix(0, 0)
			for i, l := range looks {
				if got := w.look(start.Add(l.at), l.s); got != l.want {
					t.Fatalf("look %d at %v: got %+v, want %+v", i, l.at, got, l.want)
				}
			}
		})
	}
}

// TestFollow watches an hour of a program that writes once, in the 25th minute.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start, wrote := time.Now(), 25*time.Minute
		var kinds []kind
		var at []time.Duration
		Follow(ctx, 10*time.Minute, func() Signs {
			if time.Since(start) < wrote {
				return Signs{Attempt: 1}
			}
			return Signs{Attempt: 1, Stdout: 1}
		}, func(f Finding) { kinds, at = append(kinds, f.Kind), append(at, time.Since(start)) })
		wantAt := []time.Duration{10 * time.Minute, 20 * time.Minute, wrote, wrote + 10*time.Minute, wrote + 20*time.Minute}
		if !slices.Equal(kinds, []kind{Silent, Silent, Heard, Silent, Silent}) || !slices.Equal(at, wantAt) {
			t.Errorf("got %v at %v, want silence at %v", kinds, at, wantAt)
		}
	})
}
