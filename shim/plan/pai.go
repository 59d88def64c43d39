package plan

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// paiDict is the dictionary whose values hold the ports of a portList, by label (appdef/pai).
const paiDict = "port."

// pai is what the tasks of a PAI job get. Services are no task roles: PAI has none.
func (b *builder) pai() *PAI {
	s := b.app.Settings
	if s.PAI.Version == "" {
		return nil
	}
	p := &PAI{
		Version: s.PAI.Version, Job: b.app.Name, User: b.req.Allocation.User,
		DataDir:   b.paiDir("muster.pai.data.dir", s.PAI.DataDir),
		OutputDir: b.paiDir("muster.pai.output.dir", s.PAI.OutputDir),
		CodeDir:   b.paiDir("muster.pai.code.dir", s.PAI.CodeDir), VirtualCluster: s.PAI.VirtualCluster,
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

// paiDir fills a folder in. Without a file system there is no warning about the default output folder, which nobody
// wrote.
func (b *builder) paiDir(key, text string) string {
	if at, ok := keyPlace(b.app, b.position, key); ok && at.Pointer != "" {
		return b.text(key, text)
	}
	out, _, _ := b.scope.ExpandLax(text)
	return out
}

func (b *builder) paiRole(c *appdef.Component) PAIRole {
	return PAIRole{
		Name: c.Name, Tasks: c.Instances, CPUs: c.Limits.VCores, MemoryMB: c.Limits.MemoryMB, GPUs: c.Limits.GPUs,
		ShmMB:     c.Limits.ShmMB,
		MinFailed: c.Settings.Complete.MinFailed, MinSucceeded: c.Settings.Complete.MinSucceeded,
		Ports: paiPorts(b.app, c.Name),
	}
}

// paiPorts are a role's ports by label: the fixed ones first, as PAI's launcher lists them. Its order of the others is
// that of a hash map; here they are sorted by label.
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
		// by length, then by letters, so that the numbers at the end rise
		slices.SortFunc(p.Names, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
		})
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

// code are the folders of a PAI job: codeDir, which each task gets, and outputDir, which is created only for tasks that
// use it.
func (b *builder) code() []StageItem {
	pai := b.app.Settings.PAI
	var items []StageItem
	if pai.CodeDir != "" {
		const key = "muster.pai.code.dir"
		if from, ok := b.location(key, b.paiDir(key, pai.CodeDir)); ok {
			items = append(items, b.codeItem(key, from))
		}
	}
	if pai.OutputDir != "" && b.usesOutput() {
		const key = "muster.pai.output.dir"
		at, ok := inFilesystem(b.defaultFS(), b.req.Allocation.User, b.paiDir(key, pai.OutputDir))
		if scheme := schemeOf(at); ok && scheme != "" && !slices.Contains(writable(), scheme) {
			b.warn(b.key(key), scheme+": in "+appdef.Quote(at), strings.Join(writable(), ": or ")+": or a path",
				"it is not made here: the job's own commands have to")
		} else if ok {
			at, ok = b.location(key, at)
		}
		if ok {
			items = append(items, StageItem{Name: "outputDir", Kind: StageOutput, From: at})
		}
	}
	return items
}

// codeItem brings codeDir to ./NAME/, NAME being its last part: every generation since 0.4 runs `hdfs dfs -get` into a
// folder that exists.
func (b *builder) codeItem(key, from string) StageItem {
	base := path.Base(strings.TrimRight(pathOf(from), "/"))
	if base == "/" || base == "." || base == ".." || base != "package" && slices.Contains(appdef.OwnNames(), base) {
		b.problem(b.key(key), appdef.Quote(from), "a folder with a name of its own",
			"it is brought to ./"+base+"/, which is muster's")
	}
	return StageItem{Name: "codeDir", Kind: StageCode, From: from, To: path.Join(b.req.root(), base)}
}

// usesOutput tells whether the process can know the output folder from its command and variables.
func (b *builder) usesOutput() bool {
	s, dir := b.component.Settings, b.app.Settings.PAI.OutputDir
	texts := append(slices.Collect(maps.Values(s.Env)), s.Command)
	for _, side := range s.Sides {
		texts = append(texts, side.Command)
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(text, "OUTPUT_DIR") || strings.Contains(text, dir)
	})
}
