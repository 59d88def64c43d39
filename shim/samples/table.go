package samples

import (
	"math"
	"slices"
)

// Table is the samples of an instance in columns; null is a value that could not be read.
type Table struct {
	Version  int        `json:"version"`
	Instance string     `json:"instance"`
	Limits   Limits     `json:"limits"`
	At       []int64    `json:"at"` // seconds of Unix time, rising
	Memory   []*int64   `json:"memory"`
	Cores    []*float64 `json:"cores"`
	GPUs     []device   `json:"gpus"`
}

// Limits are those that the values stand against; 0: none.
type Limits struct {
	Memory int64 `json:"memory"` // bytes
	Cores  int   `json:"cores"`
}

// device is the columns of one GPU.
type device struct {
	ID          string     `json:"id"`
	Use         []*float64 `json:"use"` // percent
	Memory      []*int64   `json:"memory"`
	MemoryTotal int64      `json:"memory_total"` // 0: not known
}

// tableOf lays samples out in columns.
func tableOf(all []sample) Table {
	t := Table{
		Version: 1, At: []int64{}, Memory: []*int64{}, Cores: []*float64{}, GPUs: []device{},
	}
	for n, s := range all {
		t.At = append(t.At, s.At)
		t.Memory = append(t.Memory, known(s.Memory))
		t.Cores = append(t.Cores, known(math.Round(s.Cores*1000)/1000))
		for _, g := range s.GPUs {
			d := t.device(g.ID, n)
			d.Use = append(d.Use, known(math.Round(g.Use*10)/10))
			d.Memory = append(d.Memory, known(g.Memory))
			d.MemoryTotal = max(d.MemoryTotal, g.Total, 0)
		}
		for i := range t.GPUs {
			t.GPUs[i].pad(n + 1)
		}
	}
	return t
}

// After is the samples after a second of Unix time, or, below 0, those of the last so many seconds that there are.
func (t Table) After(since int64) Table {
	if since < 0 && len(t.At) > 0 {
		since += t.At[len(t.At)-1]
	}
	n := slices.IndexFunc(t.At, func(at int64) bool { return at > since })
	if n < 0 {
		n = len(t.At)
	}
	t.At, t.Memory, t.Cores, t.GPUs = tail(t.At, n), tail(t.Memory, n), tail(t.Cores, n), slices.Clone(t.GPUs)
	for i, g := range t.GPUs {
		t.GPUs[i].Use, t.GPUs[i].Memory = tail(g.Use, n), tail(g.Memory, n)
	}
	return t
}

// Thin is so many samples at most, evenly spread up to the newest.
func (t Table) Thin(most int) Table {
	step := (len(t.At) + most - 1) / most
	if step <= 1 {
		return t
	}
	first := (len(t.At) - 1) % step
	t.At, t.Memory, t.Cores = spread(t.At, first, step), spread(t.Memory, first, step), spread(t.Cores, first, step)
	t.GPUs = slices.Clone(t.GPUs)
	for i, g := range t.GPUs {
		t.GPUs[i].Use, t.GPUs[i].Memory = spread(g.Use, first, step), spread(g.Memory, first, step)
	}
	return t
}

func spread[T any](column []T, first, step int) []T {
	some := []T{}
	for i := first; i < len(column); i += step {
		some = append(some, column[i])
	}
	return some
}

// tail is a column without its first values.
func tail[T any](column []T, n int) []T { return column[min(n, len(column)):] }

// device is the columns of a GPU; one that was not there before has gaps until then.
func (t *Table) device(id string, before int) *device {
	i := slices.IndexFunc(t.GPUs, func(d device) bool { return d.ID == id })
	if i < 0 {
		i = len(t.GPUs)
		t.GPUs = append(t.GPUs, device{ID: id, Use: []*float64{}, Memory: []*int64{}})
		t.GPUs[i].pad(before)
	}
	return &t.GPUs[i]
}

func (d *device) pad(n int) {
	for len(d.Use) < n {
		d.Use, d.Memory = append(d.Use, nil), append(d.Memory, nil)
	}
}

func known[T int64 | float64](v T) *T {
	if v < 0 {
		return nil
	}
	return &v
}
