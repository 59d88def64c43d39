package sandbox

import (
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// watchedFor gives a watch whose readings are those of the list, one each second, the last again and again.
func watchedFor(limit int64, readings ...any) (w *memoryWatch, kills *atomic.Int32) {
	kills = new(atomic.Int32)
	next := 0
	w = &memoryWatch{
		limit: limit, period: time.Second, logger: slog.New(slog.DiscardHandler),
		end: func() error { kills.Add(1); return nil },
		read: func() (int64, error) {
			r := readings[min(next, len(readings)-1)]
			next++
			if err, ok := r.(error); ok {
				return 0, err
			}
			return int64(r.(int)), nil
		},
	}
	return w, kills
}

func TestWatchdog(t *testing.T) {
	for _, c := range []struct {
		name     string
		limit    int64
		readings []any
		seconds  int
		want     cgroup.Usage
		kills    int32
	}{
		{"below", 100, []any{40, 100, 30}, 10, cgroup.Usage{Peak: 100, Limit: 100, By: "watchdog"}, 0},
		{"above, once", 100, []any{40, 101, 500}, 10, cgroup.Usage{OOMKills: 1, Peak: 101, Limit: 100, By: "watchdog"}, 1},
		{"ended before it was above", 100, []any{40, 60, 500}, 2, cgroup.Usage{Peak: 60, Limit: 100, By: "watchdog"}, 0},
		{"ended before the first look", 100, []any{500}, 0, cgroup.Usage{Limit: 100, By: "watchdog"}, 0},
		{"a look that failed is none", 100, []any{errors.New("no"), 70, errors.New("no"), 200}, 10, cgroup.Usage{OOMKills: 1, Peak: 200, Limit: 100, By: "watchdog"}, 1},
		{"no limit", 0, []any{500}, 10, cgroup.Usage{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, kills := watchedFor(c.limit, c.readings...)
				w.begin()
				time.Sleep(time.Duration(c.seconds)*time.Second + time.Millisecond)
				synctest.Wait()
				got, err := w.usage()
				if got != c.want || err != nil || kills.Load() != c.kills {
					t.Errorf("%+v, %v, %d kills; want %+v, %d", got, err, kills.Load(), c.want, c.kills)
				}
				time.Sleep(time.Minute) // it has ended: synctest would find what is left of it
			})
		})
	}
}

func TestWatchdogCountsEachStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, kills := watchedFor(100, 200, 50)
		w.begin()
		time.Sleep(5500 * time.Millisecond)
		if u, _ := w.usage(); u.OOMKills != 1 {
			t.Errorf("first start %+v", u)
		}
		w.begin()
		if err := w.grow(40); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5500 * time.Millisecond)
		if u, _ := w.usage(); u.OOMKills != 1 || u.Peak != 50 || u.Limit != 40 || kills.Load() != 2 {
			t.Errorf("second start, with another limit: %+v, %d kills in all", u, kills.Load())
		}
		w.begin()
		if err := w.remove(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestProcessEngineHoldsMemory(t *testing.T) {
	const limit = 100 * mebibyte
	g := processGuard(t, Options{Confine: Confinement{Limits: cgroup.Limits{Memory: limit}}})
	// Who holds it is a grandchild in a session of its own.
	start(t, g, Spec{Attempt: 1, Argv: []string{"sh", "-c", "setsid " + self(t) + " as-holder 200 & wait"}})
	x := await[Exited](t, g).Exit
	await[Empty](t, g)
	if u := x.Usage; x.Signal != 9 || u.OOMKills != 1 || u.Limit != limit || u.Peak <= limit || u.By != "watchdog" {
		t.Errorf("above: signal %d, %+v", x.Signal, u)
	}
	if err := g.Grow(1024 * mebibyte); err != nil {
		t.Fatal(err)
	}
	if l, err := g.Load(); err != nil || l.Memory > 50*mebibyte || l.CPU <= 0 {
		t.Errorf("after the end: %+v, %v; want the time of what has ended", l, err)
	}
	start(t, g, Spec{Attempt: 2, Argv: []string{self(t), "as-hog", strconv.Itoa(200)}})
	if x := await[Exited](t, g).Exit; deref(x.Code) != 0 || x.Usage.OOMKills != 0 {
		t.Errorf("below: code %v, %+v", deref(x.Code), x.Usage)
	}
}
