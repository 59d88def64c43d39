package top

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
)

// all is the answer of top --json.
type all struct {
	Version int      `json:"version"`
	Apps    []appRow `json:"apps"` // those whose run goes on

	none string // what is said where there is none
}

// appRow is the sum of an app's instances.
type appRow struct {
	App   string `json:"app"`
	Phase string `json:"phase"`
	Live  int    `json:"live"` // instances with a living agent
	use
}

// one is the answer of top APP --json.
type one struct {
	Version   int           `json:"version"`
	App       string        `json:"app"`
	Phase     string        `json:"phase"`
	Instances []instanceRow `json:"instances"`
}

type instanceRow struct {
	Instance string `json:"instance"`
	Phase    string `json:"phase"`
	Host     string `json:"host"`
	use
}

// use is what is used now, and of how much; null: nobody knows.
type use struct {
	Memory      *int64   `json:"memory"`       // bytes
	MemoryLimit int64    `json:"memory_limit"` // bytes; 0: none
	Cores       *float64 `json:"cores"`
	CoresLimit  int      `json:"cores_limit"` // 0: none
	GPUs        int      `json:"gpus"`
	GPUUse      *float64 `json:"gpu_use"`    // percent, on the average of the GPUs that say
	GPUMemory   *int64   `json:"gpu_memory"` // bytes
}

// recent is how old a sample may be: -15 asks for those of the last 15 seconds.
const recent = -15

// newest is the last sample of an instance.
func newest(t samples.Table) use {
	u := use{MemoryLimit: t.Limits.Memory, CoresLimit: t.Limits.Cores, GPUs: len(t.GPUs)}
	n := len(t.At) - 1
	if n < 0 {
		return u
	}
	u.Memory, u.Cores = t.Memory[n], t.Cores[n]
	busy := 0
	for _, g := range t.GPUs {
		if g.Use[n] != nil {
			busy++
			u.GPUUse = plus(u.GPUUse, g.Use[n])
		}
		u.GPUMemory = plus(u.GPUMemory, g.Memory[n])
	}
	if busy > 0 {
		*u.GPUUse /= float64(busy)
	}
	return u
}

// sum is what several instances use together. Without a limit for one of them there is none for all.
func sum(uses []use) use {
	var s use
	busy, limited, counted := 0, true, true
	for _, u := range uses {
		s.Memory, s.Cores = plus(s.Memory, u.Memory), plus(s.Cores, u.Cores)
		s.GPUMemory = plus(s.GPUMemory, u.GPUMemory)
		s.MemoryLimit += u.MemoryLimit
		s.CoresLimit += u.CoresLimit
		limited, counted = limited && u.MemoryLimit > 0, counted && u.CoresLimit > 0
		s.GPUs += u.GPUs
		if u.GPUUse != nil {
			busy += u.GPUs
			s.GPUUse = plus(s.GPUUse, new(*u.GPUUse*float64(u.GPUs)))
		}
	}
	if busy > 0 {
		*s.GPUUse /= float64(busy)
	}
	if !limited {
		s.MemoryLimit = 0
	}
	if !counted {
		s.CoresLimit = 0
	}
	return s
}

func plus[T int64 | float64](a, b *T) *T {
	switch {
	case b == nil:
		return a
	case a == nil:
		return new(*b)
	}
	return new(*a + *b)
}

// lookAt finds out what the instances of an app use.
func lookAt(ctx context.Context, k apps.Lookup, app string) (one, error) {
	facts, err := k.App(ctx, app)
	if err != nil {
		return one{}, err
	}
	tables := apps.EachAgent(ctx, k, &facts, func(ctx context.Context, c *status.Client) (samples.Table, error) {
		return c.Samples(ctx, recent)
	})
	v := view.Of(facts)
	o := one{Version: 1, App: app, Phase: v.Phase, Instances: []instanceRow{}}
	for _, i := range v.Instances {
		row := instanceRow{Instance: i.Instance, Phase: i.Phase, Host: i.Host}
		if t, ok := tables[i.Instance]; ok {
			row.use = newest(t)
		}
		o.Instances = append(o.Instances, row)
	}
	return o, nil
}

// atOnce bounds how many apps are looked at in one moment.
const atOnce = 16

// lookAtAll finds out what the apps use whose run goes on.
func lookAtAll(ctx context.Context, k apps.Lookup) (all, error) {
	rows, err := k.List(ctx)
	if err != nil {
		return all{}, err
	}
	k.Warn = io.Discard // who does not answer is seen in the table
	out := all{Version: 1, Apps: []appRow{}, none: k.NoApps(true)}
	var mu sync.Mutex
	var wg sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for _, r := range rows {
		if !r.Running() {
			continue
		}
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			row := appRow{App: r.App, Phase: r.Phase, Live: r.Live}
			if o, err := lookAt(ctx, k, r.App); err == nil {
				var uses []use
				for _, i := range o.Instances {
					if i.Memory != nil || i.MemoryLimit > 0 || i.CoresLimit > 0 {
						uses = append(uses, i.use)
					}
				}
				row.use = sum(uses)
			}
			mu.Lock()
			defer mu.Unlock()
			out.Apps = append(out.Apps, row)
		})
	}
	wg.Wait()
	slices.SortFunc(out.Apps, func(a, b appRow) int { return cmp.Compare(a.App, b.App) })
	return out, nil
}
