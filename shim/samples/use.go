package samples

import "fmt"

// Use is what an instance used while its agent took samples.
type Use struct {
	PeakMemory int64    `json:"peak_memory"` // bytes, the highest sample; -1: not known
	Cores      *float64 `json:"cores"`       // the mean; null: not known
	GPUs       *float64 `json:"gpus"`        // percent, the mean of all of them; null: not known
	Limits     Limits   `json:"limits"`
}

// total adds up what is not kept in a ring: there old samples are averages, in which a peak is gone.
type total struct {
	peak       int64
	cores, gpu mean
}

func (t *total) add(r Reading, cores float64) {
	t.peak = max(t.peak, r.Memory)
	t.cores.add(cores)
	for _, g := range r.GPUs {
		t.gpu.add(g.Use)
	}
}

// Use is what was used until now; nil: there is no sample. Its limits are not known here.
func (k *Keeper) Use() *Use {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.total
	if len(k.ring.levels[0].all) == 0 { // never empty again, once there was one
		return nil
	}
	return &Use{PeakMemory: t.peak, Cores: known(t.cores.value()), GPUs: known(t.gpu.value())}
}

// String is it in words: peak 3.1 of 4.0 GiB, mean 1.8 cores, GPU 74%.
func (u Use) String() string {
	text := ""
	add := func(format string, args ...any) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf(format, args...)
	}
	if unit, name := memoryUnit(max(u.PeakMemory, u.Limits.Memory)); u.PeakMemory >= 0 {
		of := ""
		if u.Limits.Memory > 0 {
			of = fmt.Sprintf(" of %.1f", float64(u.Limits.Memory)/unit)
		}
		add("peak %.1f%s %s", float64(u.PeakMemory)/unit, of, name)
	}
	if u.Cores != nil {
		add("mean %.1f cores", *u.Cores)
	}
	if u.GPUs != nil {
		add("GPU %.0f%%", *u.GPUs)
	}
	return text
}

func memoryUnit(bytes int64) (float64, string) {
	if bytes < 1<<30 {
		return 1 << 20, "MiB"
	}
	return 1 << 30, "GiB"
}
