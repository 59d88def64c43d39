package gpu

import (
	"cmp"
	"slices"
)

// mostCompared bounds the search: of 20 devices there are at most 184,756 choices. A host with more of them free gives
// the 20 with the least memory in use to it.
const mostCompared = 20

// usedStep is the grain of memory in use: less is the driver's own noise, not a process's work.
const usedStep = 256

// cost orders choices; the smaller is the better, the first field that differs decides.
type cost struct {
	models   int // different ones: a gang is as slow as its slowest
	apart    int // pairs that no NVLink joins
	nodes    int // NUMA nodes
	used     int // memory in use, in steps
	leftover int // free devices in the NVLink groups that are broken into
	bonds    int // NVLinks, negative: a broader connection is better
}

func (c cost) less(o cost) bool {
	return cmp.Or(c.models-o.models, c.apart-o.apart, c.nodes-o.nodes, c.used-o.used, c.leftover-o.leftover,
		c.bonds-o.bonds) < 0
}

// chooseBest looks at all choices of count devices. Among equals the first in the order of the devices wins.
func chooseBest(free []Device, count int) []Device {
	if len(free) > mostCompared {
		free = slices.Clone(free)
		slices.SortStableFunc(free, func(a, b Device) int { return a.UsedMB/usedStep - b.UsedMB/usedStep })
		free = free[:max(mostCompared, count)]
	}
	islands := islandsOf(free)
	var best []int
	var least cost
	choices(len(free), count, func(picked []int) {
		c := price(free, islands, picked)
		if best == nil || c.less(least) {
			best, least = slices.Clone(picked), c
		}
	})
	out := make([]Device, 0, count)
	for _, i := range best {
		out = append(out, free[i])
	}
	return out
}

// choices calls visit with every ascending choice of k out of n.
func choices(n, k int, visit func([]int)) {
	picked := make([]int, 0, k)
	var from func(int)
	from = func(start int) {
		if len(picked) == k {
			visit(picked)
			return
		}
		for i := start; i <= n-(k-len(picked)); i++ {
			picked = append(picked, i)
			from(i + 1)
			picked = picked[:len(picked)-1]
		}
	}
	from(0)
}

func price(free []Device, islands []int, picked []int) cost {
	var c cost
	models, nodes, touched := map[string]bool{}, map[int]bool{}, map[int]bool{}
	for at, i := range picked {
		models[free[i].Name] = true
		nodes[free[i].NUMA] = true
		touched[islands[i]] = true
		c.used += free[i].UsedMB / usedStep
		for _, j := range picked[:at] {
			links := free[i].linksTo(free[j])
			c.bonds -= links
			if links == 0 {
				c.apart++
			}
		}
	}
	for _, island := range islands {
		if touched[island] {
			c.leftover++
		}
	}
	c.leftover -= len(picked)
	c.models, c.nodes = len(models), len(nodes)
	return c
}

// islandsOf numbers the groups of devices that NVLink joins, directly or over others.
func islandsOf(devices []Device) []int {
	islands := make([]int, len(devices))
	for i := range islands {
		islands[i] = i
	}
	for i, a := range devices {
		for j, b := range devices {
			if a.linksTo(b) > 0 && islands[i] != islands[j] {
				from, to := max(islands[i], islands[j]), min(islands[i], islands[j])
				for k := range islands {
					if islands[k] == from {
						islands[k] = to
					}
				}
			}
		}
	}
	return islands
}
