package samples

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func TestRing(t *testing.T) {
	at := func(all []sample) (out []int64) {
		for _, s := range all {
			out = append(out, s.At)
		}
		return out
	}
	small := func() *ring { return newRing(level{keep: 4, merge: 3}, level{keep: 2, merge: 2}, level{keep: 2}) }
	for _, tt := range []struct {
		name  string
		count int64
		since int64
		want  []int64
	}{
		{"empty", 0, 0, nil},
		{"all", 6, 0, []int64{1, 2, 3, 4, 5, 6}},
		{"the oldest three become one", 7, 0, []int64{3, 4, 5, 6, 7}},
		{"since", 7, 5, []int64{6, 7}},
		{"since the newest", 7, 7, nil},
		{"averages become averages", 16, 0, []int64{6, 9, 12, 13, 14, 15, 16}},
		{"the oldest averages are dropped", 40, 0, []int64{24, 30, 33, 36, 37, 38, 39, 40}},
	} {
		r := small()
		for i := range tt.count {
			r.add(sample{At: i + 1})
		}
		if got := at(r.after(tt.since)); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRingIsBounded(t *testing.T) {
	r := usualRing()
	const days = 30 * 24 * 3600
	for at := int64(0); at < days; at += 5 {
		r.add(sample{At: at})
		n := 0
		for _, l := range r.levels {
			n += len(l.all)
		}
		if n > mostPoints {
			t.Fatalf("after %d s: %d points", at, n)
		}
	}
	all := r.after(-1)
	for i := range all[1:] {
		if all[i+1].At <= all[i].At {
			t.Fatalf("point %d is at %d, after one at %d", i+1, all[i+1].At, all[i].At)
		}
	}
	hour := int64(0)
	for _, s := range all {
		if s.At > days-3600 {
			hour++
		}
	}
	if hour < 719 || all[0].At > days-4*24*3600 {
		t.Errorf("the last hour has %d points, the oldest is %d s old", hour, days-all[0].At)
	}
}

func TestAverage(t *testing.T) {
	a, b := GPU{"a", 10, 100, 1000}, GPU{"b", 50, 500, 2000}
	for _, tt := range []struct {
		name string
		all  []sample
		want sample
	}{
		{"one", []sample{{At: 5, Memory: 7, Cores: 0.5}}, sample{At: 5, Memory: 7, Cores: 0.5}},
		{
			"known values alone",
			[]sample{{At: 1, Memory: unknown, Cores: 1}, {At: 2, Memory: 4, Cores: 3}, {At: 3, Memory: 8, Cores: unknown}},
			sample{At: 3, Memory: 6, Cores: 2},
		},
		{"none known", []sample{{Memory: unknown, Cores: unknown}}, sample{Memory: unknown, Cores: unknown}},
		{
			"GPUs",
			[]sample{{GPUs: []GPU{a}}, {GPUs: []GPU{{"a", 30, unknown, 1000}, b}}},
			sample{GPUs: []GPU{{"a", 20, 100, 1000}, b}},
		},
	} {
		if got := average(tt.all); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestTable(t *testing.T) {
	for _, tt := range []struct {
		name string
		all  []sample
		want string
	}{
		{"empty", nil, `{"version":1,"instance":"","limits":{"memory":0,"cores":0},"at":[],"memory":[],"cores":[],"gpus":[]}`},
		{
			"a GPU that comes and goes",
			[]sample{
				{At: 5, Memory: 100, Cores: 1.23456},
				{At: 10, Memory: unknown, Cores: unknown, GPUs: []GPU{{"G", 12.34, 5, 9}}},
				{At: 15, Memory: 0, Cores: 0, GPUs: []GPU{{"G", unknown, unknown, unknown}}},
				{At: 20},
			},
			`{"version":1,"instance":"","limits":{"memory":0,"cores":0},"at":[5,10,15,20],"memory":[100,null,0,0],` +
				`"cores":[1.235,null,0,0],"gpus":[{"id":"G","use":[null,12.3,null,null],"memory":[null,5,null,null],"memory_total":9}]}`,
		},
	} {
		text, err := json.Marshal(tableOf(tt.all))
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, text, tt.want)
		}
	}
}

func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		script := []struct {
			r  Reading
			ok bool
		}{
			{Reading{}, false}, // nothing runs
			{Reading{Memory: 1, CPU: 100 * time.Second}, true},                     // from here on is counted
			{Reading{Memory: 2, CPU: 110 * time.Second}, true},                     // 10 s of 5 s
			{Reading{Memory: 3, CPU: unknown}, true},                               //
			{Reading{Memory: 4, CPU: 120 * time.Second}, true},                     // not known since when
			{Reading{Memory: 5, CPU: 5 * time.Second}, true},                       // another start
			{Reading{Memory: 6, CPU: 7500 * time.Millisecond}, true},               // 2.5 s of 5 s
			{Reading{Memory: 7}, false},                                            //
			{Reading{Memory: 8, CPU: 1}, true}, {Reading{Memory: 9, CPU: 1}, true}, // idle
		}
		n := 0
		k := New(func(context.Context) (Reading, bool) { s := script[n]; n++; return s.r, s.ok }, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		k.Watch(ctx)
		time.Sleep(every*time.Duration(len(script)-1) + every/2) // the bubble's time
		cancel()
		k.Close()
		var at, memory []int64
		var cores []float64
		for _, s := range k.ring.after(0) {
			at, memory, cores = append(at, s.At-begun.Unix()), append(memory, s.Memory), append(cores, s.Cores)
		}
		if want := []int64{10, 15, 20, 25, 30, 45}; !reflect.DeepEqual(at, want) {
			t.Errorf("at %v, want %v", at, want)
		}
		if want := []int64{2, 3, 4, 5, 6, 9}; !reflect.DeepEqual(memory, want) {
			t.Errorf("memory %v, want %v", memory, want)
		}
		if want := []float64{2, unknown, unknown, unknown, 0.5, 0}; !reflect.DeepEqual(cores, want) {
			t.Errorf("cores %v, want %v", cores, want)
		}
		if got := k.Table(begun.Unix() + 25); len(got.At) != 2 {
			t.Errorf("since: %v", got.At)
		}
		if got := k.Table(-18); len(got.At) != 2 { // 47 s have passed
			t.Errorf("of the last 18 s: %v", got.At)
		}
	})
}

// Of many samples some are left, evenly spread, with the newest; columns stay beside each other.
func TestThin(t *testing.T) {
	var all []sample
	for at := range int64(7) {
		all = append(all, sample{At: at, Memory: at, Cores: float64(at), GPUs: []GPU{{"G", float64(at), at, 9}}})
	}
	for most, want := range map[int][]int64{7: {0, 1, 2, 3, 4, 5, 6}, 6: {0, 2, 4, 6}, 3: {0, 3, 6}, 2: {2, 6}, 1: {6}} {
		got := tableOf(all).Thin(most)
		if !reflect.DeepEqual(got.At, want) || len(got.Memory) != len(want) || len(got.Cores) != len(want) {
			t.Errorf("%d at most: got %+v, want %v", most, got, want)
			continue
		}
		for i, at := range want {
			if g := got.GPUs[0]; *got.Memory[i] != at || *got.Cores[i] != float64(at) || *g.Use[i] != float64(at) || *g.Memory[i] != at {
				t.Errorf("%d at most: the columns of %d: %+v", most, at, got)
			}
		}
	}
	short := tableOf(all)
	short.Memory = short.Memory[:1] // a file of somebody else's
	if got := short.Thin(3); len(got.At) != 3 || len(got.Memory) != 1 {
		t.Errorf("a column that is too short: got %+v", got)
	}
}

func TestAfter(t *testing.T) {
	all := tableOf([]sample{
		{At: 5, Memory: 1, Cores: 1}, {At: 10, Memory: 2, Cores: 2, GPUs: []GPU{{"G", 50, 5, 9}}}, {At: 15, Memory: 3, Cores: 3},
	})
	short := all
	short.Memory = short.Memory[:1] // a file of somebody else's
	for _, tt := range []struct {
		name  string
		table Table
		since int64
		want  []int64
	}{
		{"all", all, 0, []int64{5, 10, 15}},
		{"some", all, 5, []int64{10, 15}},
		{"none", all, 15, []int64{}},
		{"the last seconds that there are", all, -6, []int64{10, 15}},
		{"a column that is too short", short, 5, []int64{10, 15}},
		{"nothing", Table{}, -6, nil},
	} {
		got := tt.table.After(tt.since)
		if !reflect.DeepEqual(got.At, tt.want) || len(got.GPUs) > 0 && len(got.GPUs[0].Use) != len(tt.want) {
			t.Errorf("%s: got %+v", tt.name, got)
		}
	}
	if len(all.GPUs[0].Use) != 3 {
		t.Errorf("the table itself was cut: %+v", all)
	}
}

func TestUse(t *testing.T) {
	readings := []Reading{
		{Memory: 1 << 30, CPU: 0},
		{Memory: 3 << 30, CPU: 5 * time.Second, GPUs: []GPU{{ID: "G", Use: 100}}},
		{Memory: unknown, CPU: unknown},
		{Memory: 2 << 30, CPU: 30 * time.Second, GPUs: []GPU{{ID: "G", Use: 50}}},
		{Memory: 2 << 30, CPU: 45 * time.Second},
	}
	now, next := time.Unix(1000, 0), 0
	k := New(func(context.Context) (Reading, bool) { return readings[next], true }, func() time.Time { return now })
	if u := k.Use(); u != nil {
		t.Errorf("without a sample: %+v", u)
	}
	for next = range readings {
		k.look(t.Context())
		now = now.Add(5 * time.Second)
	}
	u := k.Use()
	if u == nil || u.PeakMemory != 3<<30 || *u.Cores != 2 || *u.GPUs != 75 {
		t.Fatalf("got %+v", u)
	}
	for _, tt := range []struct {
		limits Limits
		use    Use
		want   string
	}{
		{Limits{Memory: 4 << 30}, *u, "peak 3.0 of 4.0 GiB, mean 2.0 cores, GPU 75%"},
		{Limits{}, Use{PeakMemory: 200 << 20}, "peak 200.0 MiB"},
		{Limits{Memory: 512 << 20}, Use{PeakMemory: 200 << 20}, "peak 200.0 of 512.0 MiB"},
		{Limits{Memory: 512 << 20}, Use{PeakMemory: unknown, Cores: u.Cores}, "mean 2.0 cores"},
	} {
		tt.use.Limits = tt.limits
		if got := tt.use.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
