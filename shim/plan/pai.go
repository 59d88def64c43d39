package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// paiDict is the dictionary whose values hold the ports of a portList, by label (appdef/pai).
const paiDict = "port."

// pai is what the tasks of a PAI job are told. Services are no task roles: PAI knows none.
func (b *builder) pai() *PAI {
	s := b.app.Settings
	if s.PAI.Version == "" {
		return nil
	}
	p := &PAI{
		Version: s.PAI.Version, Job: b.app.Name, User: b.req.Allocation.User,
		DataDir: b.paiDir("muster.pai.data.dir", s.PAI.DataDir), OutputDir: b.paiDir("muster.pai.output.dir", s.PAI.OutputDir),
		CodeDir: b.paiDir("muster.pai.code.dir", s.PAI.CodeDir), VirtualCluster: s.PAI.VirtualCluster,
		KillAll: s.Total.MinSucceeded, Env: map[string]string{}, Roles: []PAIRole{},
	}
	p.DefaultFS, _ = b.scope.Lookup("NN_URI")
	if b.literal() {
		maps.Copy(p.Env, b.component.Settings.Env)
	}
	for i := range b.app.Components {
		if c := &b.app.Components[i]; late(c) == 0 {
			p.Roles = append(p.Roles, b.paiRole(c))
		}
	}
	return p
}

// literal tells that commands and variables are told as they are written: PAI fills nothing in, and `${USER}` or `${ps_HOST}`
// in a job file is its shell's.
func (b *builder) literal() bool { return b.app.Dialect == "pai" }

// paiDir fills a folder in. The default output folder, which nobody wrote, is nothing to warn of where there is no file system.
func (b *builder) paiDir(key, text string) string {
	if at, ok := keyPlace(b.app, b.position, key); ok && at.Pointer != "" {
		return b.text(key, text)
	}
	out, _, _ := b.scope.ExpandLax(text)
	return out
}

func (b *builder) paiRole(c *appdef.Component) PAIRole {
	return PAIRole{
		Name: c.Name, Tasks: c.Instances, CPUs: c.Limits.VCores, MemoryMB: c.Limits.MemoryMB, GPUs: c.Limits.GPUs, ShmMB: c.Limits.ShmMB,
		MinFailed: c.Settings.Complete.MinFailed, MinSucceeded: c.Settings.Complete.MinSucceeded, Ports: paiPorts(b.app, c.Name),
	}
}

// paiPorts are a role's ports by label: the fixed ones first, as PAI's launcher lists them. Its order of the rest is that of a
// hash map; here they are by label.
func paiPorts(app *appdef.App, component string) []PAIPort {
	labels, fixed := map[string]*PAIPort{}, map[string]bool{}
	for _, need := range app.PortNeeds(component) {
		key, ok := strings.CutPrefix(need.Key, paiDict)
		if !ok {
			continue
		}
		label, _, _ := strings.Cut(key, "-") // no label has one: http-2 is the second port of http
		if labels[label] == nil {
			labels[label] = &PAIPort{Label: label}
		}
		for i, claim := range need.Claims {
			labels[label].Names = append(labels[label].Names, portName(need.Key, i))
			fixed[label] = fixed[label] || claim.Want > 0
		}
	}
	out := []PAIPort{}
	for _, p := range labels {
		// by length, then letters: the numbers at the end count up
		slices.SortFunc(p.Names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b PAIPort) int {
		if fixed[a.Label] != fixed[b.Label] {
			return map[bool]int{true: -1, false: 1}[fixed[a.Label]]
		}
		return cmp.Compare(a.Label, b.Label)
	})
	return out
}
