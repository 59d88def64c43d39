package launcher

import "strings"

// devices are the GPUs that the launcher granted, by number or UUID. NVIDIA_VISIBLE_DEVICES is what
// device plugins set, CUDA_VISIBLE_DEVICES what Slurm sets.
func (f *finder) devices() {
	for _, name := range []string{"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"} {
		switch f.env[name] {
		case "", "all", "none", "void", "-1", "NoDevFiles":
			continue
		}
		for d := range strings.SplitSeq(f.env[name], ",") {
			if d = strings.TrimSpace(d); d != "" {
				f.found.Allocation.Devices = append(f.found.Allocation.Devices, d)
			}
		}
		f.found.Origins["devices"] = name
		return
	}
}

// envelope takes the tighter of the launcher's word and the agent's own cgroup.
func (f *finder) envelope() {
	e := &f.found.Allocation.Envelope
	f.tighter(&e.MemoryMB, f.facts.Envelope.MemoryMB, "envelope.memory_mb")
	f.tighter(&e.VCores, f.facts.Envelope.VCores, "envelope.vcores")
}

func (f *finder) tighter(to *int, own int, what string) {
	if own > 0 && (*to == 0 || own < *to) {
		*to = own
		f.found.Origins[what] = "own cgroup"
	}
	if *to == 0 {
		delete(f.found.Origins, what)
	}
}
