package render

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/plan"
)

// agentMemoryMB is what the agent and its guard take beside the process: plan.Build leaves it to them within the launcher's
// limit, so the launcher is asked for it.
const agentMemoryMB = 32

// yarnAgentMemoryMB is the same as YARN's memory monitor sees it: it counts the resident pages of all processes of a
// container, those of the agent's binary too, and kills the container that has one more than was asked for.
const yarnAgentMemoryMB = 64

// group is one component as launchers see it: so many containers of one size.
type group struct {
	name  string
	count int
	size
	shm     int // MB
	pids    int
	ports   []port
	window  time.Duration
	grace   float64 // seconds
	image   string
	command []string // of each agent; the launcher adds the index where it knows it
}

// size is what one container is asked for. Groups of one size can be one job where a launcher knows no others.
type size struct {
	memory  int // MB with the agent's own; 0: as much as there is
	vcores  int // appdef.Max: as many as there are
	hard    bool
	gpus    int
	gpuType string
	spread  bool // each on a host of its own
	label   string
}

// port is one that the launcher is to grant; label is what shim/launcher finds it by.
type port struct {
	label string
	fixed int // 0: any
}

// gather reads the App: components with instances, in rank order, as agents claim them.
func (w *writer) gather() {
	for _, c := range plan.Order(w.app) {
		if c.Instances < 1 {
			continue
		}
		g := group{
			name: c.Name, count: c.Instances, pids: c.Limits.Pids, image: c.Limits.Image, shm: c.Limits.ShmMB,
			size: size{
				memory: c.Limits.MemoryMB + w.agentMemory(), vcores: c.Limits.VCores, hard: c.Limits.CPUHard,
				gpus: c.Limits.GPUs, gpuType: c.Limits.GPUType, spread: c.Limits.Placement&appdef.PlacedApart != 0,
				label: c.Limits.NodeLabel,
			},
			ports: w.portsOf(c), grace: float64(c.Settings.Stop.Grace),
		}
		if c.Limits.MemoryMB <= 0 {
			g.memory = 0
		}
		if c.Limits.MemoryMB == appdef.Max {
			w.lose("%s: memory max: the launcher grants what it is asked for, so write a number into the job, or yarn.memory", g.name)
		}
		g.window = w.window(g)
		w.groups = append(w.groups, g)
	}
	for i := range w.groups {
		w.groups[i].command = w.command(w.groups[i].name, w.groups[i].window)
	}
	w.unsayable()
	w.loseFlags()
}

// agentMemory is what the launcher is asked for beside the process's memory, in MB.
func (w *writer) agentMemory() int {
	if w.launcher == YARN {
		return yarnAgentMemoryMB
	}
	return agentMemoryMB
}

// portsOf are the ports of all instances of a component: side processes may run beside some of them only.
func (w *writer) portsOf(c *appdef.Component) []port {
	indexes := []int{0}
	for _, side := range c.Settings.Sides {
		if side.Index > 0 && side.Index < c.Instances {
			indexes = append(indexes, side.Index)
		}
	}
	fixed, names := map[string]int{}, map[string]string{}
	for _, index := range indexes {
		for _, p := range plan.NeedsOf(*w.app, c.Name, index).Ports {
			label := plan.Label(p.Name)
			if other, taken := names[label]; taken && other != p.Name {
				w.lose("%s: the ports %s and %s have one label, %s: one of them is taken from the agent's own range", c.Name, other, p.Name, label)
				continue
			}
			names[label], fixed[label] = p.Name, 0
			if p.Exact {
				fixed[label] = p.Want
			}
			if p.Allowed != "" && !p.Exact {
				w.lose("%s: port %s of %s: the launcher chooses, or the agent does", c.Name, p.Name, p.Allowed)
			}
		}
	}
	var out []port
	for _, label := range slices.Sorted(maps.Keys(names)) {
		out = append(out, port{label: label, fixed: fixed[label]})
	}
	return out
}

// How long a launcher waits after its stop signal: what it can be told, the usual where nobody says more, and the most. Of
// YARN and Slurm it is the cluster's own setting.
const (
	usualWindow = 35 * time.Second // muster's usual grace of 30 s, and leaving
	nomadWindow = 30 * time.Second // a client's max_kill_timeout
	slurmWindow = 30 * time.Second // KillWait
	yarnWindow  = 250 * time.Millisecond
	leaving     = 5 * time.Second // after the grace: kill, prove, leave
)

// window is the kill window of a group's agents.
func (w *writer) window(g group) time.Duration {
	wanted := time.Duration(g.grace*float64(time.Second)) + leaving
	if g.grace == 0 {
		wanted = 0
	}
	given := w.o.KillWindow
	switch w.launcher {
	case Slurm, YARN: // nobody asks the job
		given = cmp.Or(given, map[string]time.Duration{Slurm: slurmWindow, YARN: yarnWindow}[w.launcher])
		if wanted > given {
			w.lose("%s: muster.stop.grace %s: the cluster kills after %s; have it wait for %s", g.name, seconds(g.grace), spanText(given), spanText(wanted))
		}
		return given
	case Nomad:
		usual := nomadWindow
		if wanted > usual || given > usual {
			w.lose("%s: kill_timeout %s: Nomad's clients allow %s unless max_kill_timeout in their configuration says more", g.name, spanText(max(wanted, given)), spanText(usual))
		}
		return cmp.Or(given, max(wanted, usual))
	}
	return cmp.Or(given, max(wanted, usualWindow))
}

// spanText is a duration without parts that are zero: 10m.
func spanText(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if short, ok := strings.CutSuffix(text, zero); ok {
			text = short + zero[:1]
		}
	}
	return text
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) + "s" }

// unsayable lists what none of the launchers has a word for. The agent holds it by itself where its engine can.
func (w *writer) unsayable() {
	for i := range w.app.Components {
		c := &w.app.Components[i]
		if c.Instances < 1 {
			continue
		}
		if c.Limits.GPUMemory > 0 {
			w.lose("%s: muster.gpu.memory: the launcher grants whole GPUs; the agent holds it", c.Name)
		}
		if c.Limits.Pids > 0 && w.launcher != Systemd {
			w.lose("%s: muster.pids: the launcher counts no processes; the agent does, where its engine can", c.Name)
		}
		if w.launcher != Nomad {
			for _, p := range w.groupPorts(c.Name) {
				if p.fixed > 0 {
					w.lose("%s: port %d: the launcher keeps no ports free; two of them on one host are refused there", c.Name, p.fixed)
				}
			}
		}
	}
}

func (w *writer) groupPorts(name string) []port {
	for _, g := range w.groups {
		if g.name == name {
			return g.ports
		}
	}
	return nil
}

// oneSize tells that all containers are alike.
func (w *writer) oneSize() bool {
	return !slices.ContainsFunc(w.groups, func(g group) bool { return g.size != w.groups[0].size })
}

// instances counts all containers.
func (w *writer) instances() int {
	n := 0
	for _, g := range w.groups {
		n += g.count
	}
	return n
}
