package launcher

import "strings"

// devices are the GPUs that the launcher granted, by number or UUID. NVIDIA_VISIBLE_DEVICES is what
// device plugins set, CUDA_VISIBLE_DEVICES what Slurm sets.
func (f *Finder) devices() {
	for _, name := range []string{"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"} {
		switch f.Env[name] {
		case "", "all", "none", "void", "-1", "NoDevFiles":
			continue
		}
		for d := range strings.SplitSeq(f.Env[name], ",") {
			if d = strings.TrimSpace(d); d != "" {
				f.Found.Allocation.Devices = append(f.Found.Allocation.Devices, d)
			}
		}
		f.Found.Origins["devices"] = name
		return
	}
}

// envelope takes the tighter of the launcher's word and the agent's own cgroup.
func (f *Finder) envelope() {
	e := &f.Found.Allocation.Envelope
	f.tighter(&e.MemoryMB, f.Facts.Envelope.MemoryMB, "envelope.memory_mb")
	f.tighter(&e.VCores, f.Facts.Envelope.VCores, "envelope.vcores")
}

func (f *Finder) tighter(to *int, own int, what string) {
	if own > 0 && (*to == 0 || own < *to) {
		*to = own
		f.Found.Origins[what] = "own cgroup"
	}
	if *to == 0 {
		delete(f.Found.Origins, what)
	}
}
