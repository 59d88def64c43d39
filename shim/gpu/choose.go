package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Errors of Choose and Claim.
var (
	// ErrTooFew says that the host has not enough free and healthy devices of the kind.
	ErrTooFew = errors.New("not enough GPUs")
	// errNotThere says that the launcher granted what the host does not have.
	errNotThere = errors.New("no such GPU")
)

// Want is what is asked for.
type Want struct {
	Count int    // 0 with Granted: all of these
	Type  string // the model; see Matches; empty: any
	// Granted are the launcher's devices: indices, UUIDs (or their beginnings), device nodes, MIG instances by UUID or
	// GPU:INSTANCE. Nothing else is taken then.
	Granted []string
	// Busy are the IDs of devices that others hold.
	Busy map[string]bool
}

// Choose picks devices, in the order of their indices: those that NVLink joins, on one NUMA node, with the least memory
// in use, in this order, and among equals those that leave the other NVLink groups whole. A grant for as many as
// asked is taken as it is, busy or not: the launcher has decided. It is pure.
func Choose(devices []Device, w Want) ([]Device, error) {
	pool, whole, err := w.pool(devices)
	switch {
	case err != nil:
		return nil, err
	case whole:
		return pool, mismatch(pool, w.Type)
	}
	if w.Count <= 0 {
		return nil, nil
	}
	free := slices.DeleteFunc(slices.Clone(pool), func(d Device) bool { return w.rejects(d) != "" })
	if len(free) < w.Count {
		return nil, fmt.Errorf("%w: want %s, free %d: %s", ErrTooFew, w, len(free), w.census(pool))
	}
	best := chooseBest(free, w.Count)
	slices.SortFunc(best, func(a, b Device) int { return cmp.Or(a.Index-b.Index, a.Minor-b.Minor) })
	return best, nil
}

// pool is what may be taken. whole: all of it, for the launcher granted as many as are asked for.
func (w Want) pool(devices []Device) (pool []Device, whole bool, err error) {
	if len(w.Granted) == 0 {
		return devices, false, nil
	}
	granted, err := resolve(devices, w.Granted)
	return granted, err == nil && (w.Count == 0 || w.Count == len(granted)), err
}

// String is the request as errors say it: 4 of type A100 out of the launcher's 0,1,2,3.
func (w Want) String() string {
	s := strconv.Itoa(w.Count)
	if w.Type != "" {
		s += " of type " + w.Type
	}
	if len(w.Granted) > 0 {
		s += " out of the launcher's " + strings.Join(w.Granted, ",")
	}
	return s
}

// rejects is why the device does not come into question; empty: it does.
func (w Want) rejects(d Device) string {
	if !matches(w.Type, d.Name) {
		return "another type"
	}
	if d.Closed {
		return "closed to this agent by its launcher's cgroup"
	}
	if w.Busy[d.ID()] {
		return "held by another agent"
	}
	if f, bad := d.unusable(); bad {
		return f.What
	}
	if d.MIGMode && d.Instance == nil {
		return "cut into MIG instances, which only a launcher can grant"
	}
	return ""
}

// census says what there is: 8 × NVIDIA A100 (GPU 0, 1 held by another agent; GPU 5 row remapping pending).
func (w Want) census(pool []Device) string {
	if len(pool) == 0 {
		return "this host has none"
	}
	var models []string
	of := map[string][]Device{}
	for _, d := range pool {
		model := cmp.Or(d.Name, "of unknown model")
		if of[model] == nil {
			models = append(models, model)
		}
		of[model] = append(of[model], d)
	}
	var out []string
	for _, model := range models {
		text := fmt.Sprintf("%d × %s", len(of[model]), model)
		if why := w.rejections(of[model]); why != "" {
			text += " (" + why + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (w Want) rejections(devices []Device) string {
	var reasons []string
	which := map[string][]string{}
	for _, d := range devices {
		why := w.rejects(d)
		if why == "" || why == "another type" { // the model's name says it
			continue
		}
		if which[why] == nil {
			reasons = append(reasons, why)
		}
		which[why] = append(which[why], strconv.Itoa(d.Index))
	}
	for i, why := range reasons {
		reasons[i] = "GPU " + strings.Join(which[why], ", ") + " " + why
	}
	return strings.Join(reasons, "; ")
}

func mismatch(granted []Device, model string) error {
	for _, d := range granted {
		// Of a MIG instance that no inventory lists, the model is not known.
		if d.Name != "" && !matches(model, d.Name) {
			return fmt.Errorf("%w: want type %s, and the launcher granted %s", ErrTooFew, model, d)
		}
	}
	return nil
}

// matches tells whether a model is of the type asked for: its name contains it. Letter case, blanks, dashes and the
// words NVIDIA, Tesla and GeForce count in neither.
func matches(want, model string) bool { return strings.Contains(bare(model), bare(want)) }

func bare(name string) string {
	name = strings.ToLower(name)
	for _, word := range []string{"nvidia", "tesla", "geforce"} {
		name = strings.ReplaceAll(name, word, "")
	}
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, name)
}

// resolve finds the granted devices, each once, in the order of the grant.
func resolve(devices []Device, granted []string) ([]Device, error) {
	var out []Device
	for _, name := range granted {
		d, ok := find(devices, strings.TrimPrefix(strings.TrimSpace(name), "nvidia.com/gpu="))
		if !ok {
			return nil, fmt.Errorf("%w: the launcher granted %s: %s", errNotThere, name, roll(devices))
		}
		if d.Closed {
			return nil, fmt.Errorf("%w: the launcher granted %s, and its cgroup keeps this agent off it", errNotThere,
				name)
		}
		if !slices.ContainsFunc(out, func(o Device) bool { return o.ID() == d.ID() }) {
			out = append(out, d)
		}
	}
	return out, nil
}

func find(devices []Device, name string) (Device, bool) {
	if minor, ok := strings.CutPrefix(name, "/dev/nvidia"); ok {
		i := slices.IndexFunc(devices, func(d Device) bool { return strconv.Itoa(d.Minor) == minor })
		if i < 0 {
			return Device{}, false
		}
		return devices[i], true
	}
	if n, err := strconv.Atoi(name); err == nil {
		i := slices.IndexFunc(devices, func(d Device) bool { return d.Index == n })
		if i < 0 {
			return Device{}, false
		}
		return devices[i], true
	}
	for _, d := range devices {
		for _, m := range d.MIG {
			if m.UUID == name || fmt.Sprintf("%d:%d", d.Index, m.Index) == name {
				return d.instance(m), true
			}
		}
	}
	if strings.HasPrefix(name, "MIG-") {
		// Not in the inventory, as when a container sees its own instance only: it goes to the app by its name.
		return Device{Index: -1, Minor: -1, NUMA: -1, UUID: name}, true
	}
	var found []Device
	for _, d := range devices {
		if len(name) > len("GPU-") && strings.HasPrefix(d.UUID, name) {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return Device{}, false
	}
	return found[0], true
}

// instance is the device reduced to one of its MIG instances.
func (d Device) instance(m MIG) Device {
	d.Instance, d.MemoryMB = &m, m.MemoryMB
	d.Processes = d.Users(d.Processes)
	return d
}

func roll(devices []Device) string {
	if len(devices) == 0 {
		return "this host has none"
	}
	var names []string
	for _, d := range devices {
		names = append(names, d.String())
	}
	return "this host has " + strings.Join(names, ", ")
}
