package plan

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// inputs are the inputs that the instance reads; nil: none.
func (b *builder) inputs() *Inputs {
	s := b.component.Settings.Inputs
	readers := Readers(b.app, b.component.Name)
	at := slices.Index(readers, registry.Instance{Component: b.req.Component, Index: b.req.Index})
	if at < 0 {
		return b.emptyInputs()
	}
	in := Inputs{
		Strategy: s.Strategy, Worker: at, Workers: len(readers),
		Rename: s.Rename, Whole: s.Whole, Shuffle: s.Shuffle, Epochs: s.Epochs, Format: s.Format,
		Chief: s.Chief, ListLength: s.ListLength, Parallel: s.Parallel, Retries: s.Retries,
	}
	if in.Strategy == "" {
		in.Strategy = appdef.StrategyDownload
	}
	if in.Strategy == appdef.StrategyStream {
		b.streamIn(&in)
	}
	if n := b.component.Settings.Processes; in.Strategy == appdef.StrategyStream && n > 1 {
		b.problem(b.key(nprocKey), strconv.Itoa(n)+" processes in a container with the input strategy "+in.Strategy,
			"1", "a container has one stdin")
	}
	for _, name := range slices.Sorted(maps.Keys(s.From)) {
		key := "muster.input." + name
		one := Input{Name: name, From: []string{}}
		for _, text := range commas(b.text(key, s.From[name])) {
			if url, ok := b.location(key, text); ok {
				one.From = append(one.From, url)
			}
		}
		in.From = append(in.From, one)
	}
	return &in
}

// emptyInputs are the empty input folders that HBox gives an evaluator; nil: none.
func (b *builder) emptyInputs() *Inputs {
	if b.app.Settings.HBox.Type == "" || b.component.Settings.Role != appdef.RoleEvaluator {
		return nil
	}
	names := map[string]bool{}
	for _, c := range b.app.Components {
		s := c.Settings.Inputs
		for name := range s.From {
			names[name] = names[name] || s.Strategy == "" || s.Strategy == appdef.StrategyDownload
		}
	}
	maps.DeleteFunc(names, func(_ string, download bool) bool { return !download })
	if len(names) == 0 {
		return nil
	}
	in := Inputs{Strategy: appdef.StrategyDownload}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		in.From = append(in.From, Input{Name: name, From: []string{}})
	}
	return &in
}

// outputs are what the instance uploads; nil: nothing.
func (b *builder) outputs() *Outputs {
	s, c := b.component.Settings.Outputs, b.component
	if len(s.To) == 0 {
		return nil
	}
	out := Outputs{
		Strategy: s.Strategy, To: []Output{}, Failed: s.Failed, Format: s.Format,
		Interim: s.Interim, Incremental: s.Incremental, SaveEvery: float64(b.app.Settings.SaveEvery),
		Parallel: s.Parallel,
	}
	if out.Strategy == "" {
		out.Strategy = appdef.StrategyUpload
	}
	if out.Strategy == appdef.StrategyStream {
		b.streamOut(&out)
	}
	if s.Only == nil && (!s.Flat || c.Instances > 1) {
		out.Folder = b.req.instance()
	}
	another := s.Only != nil && *s.Only != b.req.Index || b.leavesNothing()
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.To)) {
		key := "muster.output." + name
		url, ok := b.location(key, b.text(key, s.To[name]))
		if !ok {
			continue
		}
		if scheme := schemeOf(url); slices.Contains(Stores(), scheme) && !slices.Contains(writable(), scheme) {
			b.cannot(b.key(key), scheme+": in "+appdef.Quote(url), strings.Join(writable(), ": or ")+": or a path",
				"nothing is left on a web server")
		}
		if out.Folder == "" && slices.Contains([]string{"_temporary", "_SUCCESS"}, name) {
			b.problem(b.key(key), appdef.Quote(name)+" as the name of what is left", "another name",
				"it is Hadoop's own in the place of an output")
		}
		if other, twice := taken[url]; twice && out.Folder != "" {
			b.problem(b.key(key), appdef.Quote(url)+", where muster.output."+other+" goes as well",
				"a place of its own", "")
		}
		taken[url] = name
		if other := b.sameName(url, name); other != "" && out.Folder == "" {
			b.problem(b.key(key), appdef.Quote(strings.TrimRight(url,
				"/")+"/"+name)+", where "+other+" leaves its own as well", "a place of its own", "each of them has "+
				"no folder of its own name there")
		}
		if another {
			url = ""
		}
		out.To = append(out.To, Output{Name: name, To: url})
	}
	return &out
}

// sameName is another component that uploads an output of the same plain name to the same location; empty: none.
func (b *builder) sameName(url, name string) string {
	for _, c := range b.app.Components {
		s := c.Settings.Outputs
		to, ok := s.To[name]
		plain := s.Only != nil || s.Flat && c.Instances == 1
		if !ok || !plain || c.Name == b.component.Name || c.Instances == 0 {
			continue
		}
		at, ok := inFilesystem(b.defaultFS(), b.req.Allocation.User,
			strings.TrimSpace(b.text("muster.output."+name, to)))
		if ok && strings.TrimRight(at, "/") == strings.TrimRight(url, "/") {
			return c.Name
		}
	}
	return ""
}

// leavesNothing: HBox ends MXNet's servers without uploading their outputs.
func (b *builder) leavesNothing() bool {
	kind := b.app.Settings.HBox.Type
	return b.component.Settings.Role == appdef.RolePS && (kind == "MXNET" || kind == "XFLOW")
}

// Readers are the instances that share a component's inputs, in the order of their turns: its own instances, and those
// of components with the same inputs. Chiefs and workers come first, then parameter servers. Evaluators read nothing.
func Readers(app *appdef.App, component string) []registry.Instance {
	c := app.Component(component)
	if c == nil || len(c.Settings.Inputs.From) == 0 {
		return nil
	}
	var readers []registry.Instance
	for turn := range 3 {
		for _, other := range Order(app) {
			if turnOf(other) != turn || !maps.Equal(other.Settings.Inputs.From, c.Settings.Inputs.From) {
				continue
			}
			for i := range other.Instances {
				readers = append(readers, registry.Instance{Component: other.Name, Index: i})
			}
		}
	}
	return readers
}

// turnOf is the position of a component's turn; -1: never.
func turnOf(c *appdef.Component) int {
	switch c.Settings.Role {
	case appdef.RoleChief:
		return 0
	case appdef.RoleWorker:
		return 1
	case appdef.RoleEvaluator:
		return -1
	case appdef.RolePS, appdef.RoleService:
	}
	return 2
}

// usesData tells whether the instance reads from a store, uploads to one, or gets the URL of one.
func (b *builder) usesData() bool {
	s := b.component.Settings
	return hasOwn(s) || b.app.Settings.PAI.Version != ""
}

// staysAtHome: the paths of inputs and outputs are relative to the folder where the process starts.
func (b *builder) staysAtHome() bool {
	s := b.component.Settings
	return hasOwn(s) || b.app.Settings.PAI.CodeDir != "" || b.emptyInputs() != nil
}

// hasOwn tells whether something is downloaded or uploaded under a name that the definition gives.
func hasOwn(s appdef.ComponentSettings) bool {
	kept := slices.ContainsFunc(s.Sides, func(one appdef.Side) bool { return one.History != "" })
	return kept || len(s.Inputs.From)+len(s.Outputs.To)+len(s.Files)+len(s.Archives) > 0
}

// streamIn adds the settings of an input stream, and refuses a format that nobody here can read.
func (b *builder) streamIn(in *Inputs) {
	s := b.component.Settings.Inputs
	in.Splits, in.Lines, in.Separator = s.Splits, s.Lines, s.Separator
	if in.Cache = s.Cache && s.Epochs > 1; in.Cache {
		in.CacheLimit = cmp.Or(s.CacheLimit, appdef.StreamCacheLimit)
	}
	if _, own := InputForm(in.Format); own {
		return
	}
	b.byClass("muster.inputs.format", in.Format, named(inputFormats[:]), InputByClass)
	in.Conf = s.Conf
	if in.Workers > 1 {
		in.Shared, _ = inFilesystem(b.defaultFS(), b.hadoopUser(), sharedSplits)
		if scheme := schemeOf(in.Shared); b.req.Hadoop != nil && (scheme == "" || scheme == "file") {
			b.cannot(b.key("muster.inputs.format"), appdef.Quote(in.Format)+" with "+strconv.Itoa(in.Workers)+
				" readers and the default filesystem "+appdef.Quote(b.defaultFS()),
				"one that all hosts have in common: fs.defaultFS, or --default-fs",
				"the readers share the list of the splits there ("+sharedSplits+")")
		}
	}
}

// UnreadProperties are the properties for formats of a component none of whose formats is a class of the user's:
// muster's own read none.
func UnreadProperties(c appdef.Component) []string {
	in, out := c.Settings.Inputs, c.Settings.Outputs
	if in.Strategy == appdef.StrategyStream && InputByClass(in.Format) ||
		out.Strategy == appdef.StrategyStream && OutputByClass(out.Format) {
		return nil
	}
	return slices.Sorted(maps.Keys(in.Conf))
}

// sharedSplits is where the readers of a class's splits find them, in the default filesystem.
const sharedSplits = ".muster/splits"

// byClass refuses a format that is none of muster's own, unless the Hadoop of the host can run it as a class.
func (b *builder) byClass(key, class, own string, may func(class string) bool) {
	switch {
	case !may(class):
		b.problem(b.key(key), appdef.Quote(class), "one of "+own+" of Hadoop, or a class of yours with its package", "")
	case b.req.Hadoop == nil || b.req.Hadoop.Java == "" && !b.imageHas("JAVA_HOME"):
		b.cannot(b.key(key), appdef.Quote(class), "one of "+own+", or a host with Hadoop's configuration and a Java",
			"a class of yours is run by Java, on the Hadoop of the host (HADOOP_CONF_DIR, HADOOP_HOME, JAVA_HOME)")
	}
}

// streamOut refuses what no output stream can be.
func (b *builder) streamOut(out *Outputs) {
	if _, own := OutputParts(out.Format); !own {
		b.byClass("muster.outputs.format", out.Format, named(outputFormats[:]), OutputByClass)
		out.Conf = b.component.Settings.Outputs.Conf
	}
	if n := len(b.component.Settings.Outputs.To); n > 1 {
		b.problem(b.key("muster.outputs.strategy"), strconv.Itoa(n)+" outputs with the strategy "+out.Strategy, "one",
			"a process has one stdout")
	}
}
