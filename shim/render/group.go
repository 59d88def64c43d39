package render

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/plan"
)

// Group is one component as launchers see it: so many containers of one size.
type Group struct {
	Name  string
	Count int
	size
	ShmMB   int // MB
	Pids    int
	Ports   []port
	Window  time.Duration
	Grace   float64 // seconds
	Image   string
	Command []string // of each agent; the launcher adds the index where it knows it
}

// size is what one container is asked for. Groups of one size can be one job where a launcher knows no others.
type size struct {
	MemoryMB int // MB with the agent's own; 0: as much as there is
	VCores   int // appdef.Max: as many as there are
	Hard     bool
	GPUs     int
	GPUType  string
	Spread   bool // each on a host of its own
	Label    string
}

// port is one that the launcher is to grant; label is what shim/launcher finds it by.
type port struct {
	Label string
	Fixed int // 0: any
}

// gather reads the App: components with instances, in rank order, as agents claim them.
func (w *Writer) gather() {
	for _, c := range plan.Order(w.App) {
		if c.Instances < 1 {
			continue
		}
		g := Group{
			Name: c.Name, Count: c.Instances, Pids: c.Limits.Pids, Image: c.Limits.Image, ShmMB: c.Limits.ShmMB,
			size: size{
				MemoryMB: c.Limits.MemoryMB + w.agentMemory(), VCores: c.Limits.VCores, Hard: c.Limits.CPUHard,
				GPUs: c.Limits.GPUs, GPUType: c.Limits.GPUType, Spread: c.Limits.Placement&appdef.PlacedApart != 0,
				Label: c.Limits.NodeLabel,
			},
			Ports: w.portsOf(c), Grace: float64(c.Settings.Stop.Grace),
		}
		if c.Limits.MemoryMB <= 0 {
			g.MemoryMB = 0
		}
		if c.Limits.MemoryMB == appdef.Max {
			w.Cannot("%s: memory max: the launcher grants what it is asked for, so write a number into the job, or "+
				"yarn.memory", g.Name)
		}
		g.Window = w.window(g)
		w.Groups = append(w.Groups, g)
	}
	for i := range w.Groups {
		w.Groups[i].Command = w.Command(w.Groups[i].Name, w.Groups[i].Window)
	}
	w.unsayable()
}

// agentMemory is what the launcher is asked for beside the process's memory, in MB.
func (w *Writer) agentMemory() int { return cmp.Or(w.launcher.AgentMemoryMB, plan.AgentMemoryMB) }

// portsOf are the ports of all instances of a component: side processes may run beside some of them only.
func (w *Writer) portsOf(c *appdef.Component) []port {
	indexes := []int{0}
	for _, side := range c.Settings.Sides {
		if side.Index > 0 && side.Index < c.Instances {
			indexes = append(indexes, side.Index)
		}
	}
	fixed, names := map[string]int{}, map[string]string{}
	for _, index := range indexes {
		for _, p := range plan.NeedsOf(*w.App, c.Name, index).Ports {
			label := plan.Label(p.Name)
			if other, taken := names[label]; taken && other != p.Name {
				w.Cannot("%s: the ports %s and %s have one label, %s: one of them is taken from the agent's own range",
					c.Name, other, p.Name, label)
				continue
			}
			names[label], fixed[label] = p.Name, 0
			if p.Exact {
				fixed[label] = p.Want
			}
			if p.Allowed != "" && !p.Exact {
				w.Cannot("%s: port %s of %s: the launcher chooses, or the agent does", c.Name, p.Name, p.Allowed)
			}
		}
	}
	var out []port
	for _, label := range slices.Sorted(maps.Keys(names)) {
		out = append(out, port{Label: label, Fixed: fixed[label]})
	}
	return out
}

const (
	// usualWindow is how long a launcher waits after its stop signal where the job says how long and nobody wants more.
	usualWindow = 35 * time.Second // muster's usual grace of 30 s, and leaving
	leaving     = 5 * time.Second  // after the grace: kill, prove, leave
)

// window is the kill window of a group's agents.
func (w *Writer) window(g Group) time.Duration {
	wanted := time.Duration(g.Grace*float64(time.Second)) + leaving
	if g.Grace == 0 {
		wanted = 0
	}
	if w.launcher.Window != nil {
		return w.launcher.Window(w, g, wanted)
	}
	return cmp.Or(w.Options.KillWindow, max(wanted, usualWindow))
}

// ClusterWindow is the kill window that is the cluster's own setting, usually that one: nobody asks the job.
func ClusterWindow(usual time.Duration) func(w *Writer, g Group, wanted time.Duration) time.Duration {
	return func(w *Writer, g Group, wanted time.Duration) time.Duration {
		window := cmp.Or(w.Options.KillWindow, usual)
		if wanted > window {
			w.Cannot("%s: muster.stop.grace %s: the cluster kills after %s; have it wait for %s",
				g.Name, seconds(g.Grace), SpanText(window), SpanText(wanted))
		}
		return window
	}
}

// LongestWindow is the kill window of a job that has one for all instances.
func (w *Writer) LongestWindow() time.Duration {
	longest := w.Options.KillWindow
	for _, g := range w.Groups {
		longest = max(longest, g.Window)
	}
	if longest == 0 {
		longest = usualWindow
	}
	return longest
}

// SpanText is a duration without parts that are zero: 10m.
func SpanText(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if short, ok := strings.CutSuffix(text, zero); ok {
			text = short + zero[:1]
		}
	}
	return text
}

// WholeSeconds is a duration in seconds, rounded up.
func WholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) + "s" }

// unsayable lists what none of the launchers has a word for. The agent holds it by itself where its engine can.
func (w *Writer) unsayable() {
	for i := range w.App.Components {
		c := &w.App.Components[i]
		if c.Instances < 1 {
			continue
		}
		if c.Limits.GPUMemory > 0 {
			w.Cannot("%s: muster.gpu.memory: the launcher grants whole GPUs; the agent holds it", c.Name)
		}
		if c.Limits.Pids > 0 && !w.launcher.CountsProcesses {
			w.Cannot("%s: muster.pids: the launcher counts no processes; the agent does, where its engine can", c.Name)
		}
		if !w.launcher.GrantsPorts {
			for _, p := range w.groupPorts(c.Name) {
				if p.Fixed > 0 {
					w.Cannot("%s: port %d: the launcher keeps no ports free; two of them on one host are refused there",
						c.Name, p.Fixed)
				}
			}
		}
	}
}

func (w *Writer) groupPorts(name string) []port {
	for _, g := range w.Groups {
		if g.Name == name {
			return g.Ports
		}
	}
	return nil
}

// OneSize tells that all containers are alike.
func (w *Writer) OneSize() bool {
	return !slices.ContainsFunc(w.Groups, func(g Group) bool { return g.size != w.Groups[0].size })
}

// Instances counts all containers.
func (w *Writer) Instances() int {
	n := 0
	for _, g := range w.Groups {
		n += g.Count
	}
	return n
}
