package plan

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// Stores are the schemes of URLs that data can be brought from. Others are planned for: they are refused
// where a plan is to be run.
func Stores() []string { return append(writable(), "http", "https") }

// writable are those that something can be left at.
func writable() []string { return []string{"file", "hdfs"} }

// storeName is the folder in the work folder that is the default filesystem where nothing names one.
const storeName = "store"

// DefaultStore is the default filesystem of a run without one: a folder that its instances on this host share.
const DefaultStore = "file:" + Work + "/" + storeName

// The kinds of StageItem that come from a store: the files of a PAI job. From is a path or URL.
const (
	// StageCode is a folder that is copied to To.
	StageCode = "code"
	// StageCodeBeside is a folder that is copied to To, which stays read-only, and from there into the instance's folder.
	StageCodeBeside = "code-beside"
	// StageOutput is a folder that is made where From says.
	StageOutput = "output"
)

// inputs are what is dealt out to the instance; nil: nothing.
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
		b.problem(b.key(nprocKey), strconv.Itoa(n)+" processes in a container with the input strategy "+in.Strategy, "1", "a container has one stdin")
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

// emptyInputs are the folders without a file that HBox gives an evaluator; nil: none.
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

// outputs are what the instance leaves; nil: nothing.
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
			b.cannot(b.key(key), scheme+": in "+appdef.Quote(url), strings.Join(writable(), ": or ")+": or a path", "nothing is left on a web server")
		}
		if out.Folder == "" && slices.Contains([]string{"_temporary", "_SUCCESS"}, name) {
			b.problem(b.key(key), appdef.Quote(name)+" as the name of what is left", "another name", "it is Hadoop's own in the place of an output")
		}
		if other, twice := taken[url]; twice && out.Folder != "" {
			b.problem(b.key(key), appdef.Quote(url)+", where muster.output."+other+" goes as well", "a place of its own", "")
		}
		taken[url] = name
		if other := b.sameName(url, name); other != "" && out.Folder == "" {
			b.problem(b.key(key), appdef.Quote(strings.TrimRight(url, "/")+"/"+name)+", where "+other+" leaves its own as well", "a place of its own", "each of them has no folder of its own name there")
		}
		if another {
			url = ""
		}
		out.To = append(out.To, Output{Name: name, To: url})
	}
	return &out
}

// sameName is another component that leaves an output at the same place under the same plain name; empty: there is none.
func (b *builder) sameName(url, name string) string {
	for _, c := range b.app.Components {
		s := c.Settings.Outputs
		to, ok := s.To[name]
		plain := s.Only != nil || s.Flat && c.Instances == 1
		if !ok || !plain || c.Name == b.component.Name || c.Instances == 0 {
			continue
		}
		at, ok := inFilesystem(b.defaultFS(), b.req.Allocation.User, strings.TrimSpace(b.text("muster.output."+name, to)))
		if ok && strings.TrimRight(at, "/") == strings.TrimRight(url, "/") {
			return c.Name
		}
	}
	return ""
}

// leavesNothing: HBox ends MXNet's servers without their outputs.
func (b *builder) leavesNothing() bool {
	kind := b.app.Settings.HBox.Type
	return b.component.Settings.Role == appdef.RolePS && (kind == "MXNET" || kind == "XFLOW")
}

// Readers are the instances that a component's inputs are dealt out among, in the order of their turns: its own, and
// those of components with the same inputs; trainers first, then parameter servers. Evaluators read nothing.
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

// turnOf is when a component's turn comes; -1: never.
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

// code are the folders of a PAI job: codeDir, which comes to each task, and outputDir, which is made only for who uses it.
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
			b.warn(b.key(key), scheme+": in "+appdef.Quote(at), strings.Join(writable(), ": or ")+": or a path", "it is not made here: the job's own commands have to")
		} else if ok {
			at, ok = b.location(key, at)
		}
		if ok {
			items = append(items, StageItem{Name: "outputDir", Kind: StageOutput, From: at})
		}
	}
	return items
}

func (b *builder) codeItem(key, from string) StageItem {
	if b.app.Settings.PAI.Version != appdef.PAI05 {
		return StageItem{Name: "codeDir", Kind: StageCodeBeside, From: from, To: path.Join(b.req.root(), appdef.CodeName)}
	}
	base := path.Base(strings.TrimRight(pathOf(from), "/"))
	if base == "/" || base == "." || base == ".." || base != "package" && slices.Contains(appdef.OwnNames(), base) {
		b.problem(b.key(key), appdef.Quote(from), "a folder with a name of its own", "it is brought to ./"+base+"/, which is muster's")
	}
	return StageItem{Name: "codeDir", Kind: StageCode, From: from, To: path.Join(b.req.root(), base)}
}

// usesOutput tells whether the process can know of the output folder by what it is told to do.
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

// usesData tells whether the instance reads or leaves something in a store, or is told of one.
func (b *builder) usesData() bool {
	s := b.component.Settings
	return hasOwn(s) || b.app.Settings.PAI.Version != ""
}

// staysAtHome: inputs and outputs are named from the folder where the process starts.
func (b *builder) staysAtHome() bool {
	s := b.component.Settings
	return hasOwn(s) || b.app.Settings.PAI.CodeDir != "" || b.emptyInputs() != nil
}

// hasOwn tells that something is brought or left under a name of the definition's.
func hasOwn(s appdef.ComponentSettings) bool {
	return len(s.Inputs.From)+len(s.Outputs.To)+len(s.Files)+len(s.Archives) > 0
}

// cannot reports what is planned and cannot be run.
func (b *builder) cannot(where spot, got, want, hint string) {
	if b.req.Starts {
		b.problem(where, got, want, hint)
		return
	}
	b.warn(where, got, want, hint+": it is planned, and a run of it is refused")
}

var schemeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

func schemeOf(url string) string {
	return strings.ToLower(strings.TrimSuffix(schemeForm.FindString(url), ":"))
}

// pathOf is the path of a URL: without scheme and host.
func pathOf(url string) string {
	rest := url[len(schemeForm.FindString(url)):]
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		_, p, _ := strings.Cut(after, "/")
		return "/" + p
	}
	return rest
}

// location is a path or URL of data. Without a scheme it is in the default filesystem: of a local one a path from / on is
// one of this machine's.
func (b *builder) location(key, written string) (string, bool) {
	written = strings.TrimSpace(written)
	text, ok := inFilesystem(b.defaultFS(), b.req.Allocation.User, written)
	if !ok {
		b.problem(b.key(key), appdef.Quote(written), "a path from / on, or a URL", "")
		return "", false
	}
	switch scheme := schemeOf(text); {
	case scheme != "" && !slices.Contains(Stores(), scheme):
		b.cannot(b.key(key), scheme+": in "+appdef.Quote(text), strings.Join(Stores(), ": or ")+": or a path", "there is no store for "+scheme+": here")
	case !strings.HasPrefix(pathOf(text), "/") && !strings.HasPrefix(pathOf(text), Work):
		b.problem(b.key(key), appdef.Quote(text), "a path from / on", "")
		return "", false
	}
	return text, true
}

// inFilesystem is a path without a scheme as a URL of the filesystem with this URI; false: it has no place there. A URL is
// what it is.
func inFilesystem(uri, user, name string) (string, bool) {
	absolute := strings.HasPrefix(name, "/")
	switch scheme := schemeOf(uri); {
	case name == "":
		return "", false
	case schemeOf(name) != "":
		return name, true
	case scheme == "" || scheme == "file":
		if absolute || strings.HasPrefix(name, Work) {
			return name, true
		}
		top, inside := strings.TrimRight(pathOf(uri), "/"), path.Clean(name)
		if top == "" || inside == ".." || strings.HasPrefix(inside, "../") { // it leaves the filesystem
			return "", false
		}
		return "file:" + path.Join(top, inside), true
	case absolute:
		return strings.TrimSuffix(uri, pathOf(uri)) + name, true
	default: // Hadoop's home folder
		return strings.TrimSuffix(uri, pathOf(uri)) + path.Join("/user", user, name), true
	}
}

// defaultFS is the value of ${NN_URI}: the definition's own, else the caller's.
func (b *builder) defaultFS() string {
	uri, _ := b.scope.Lookup("NN_URI")
	return uri
}

// withDefaultFS gives a Hadoop client's two names of the default filesystem their values where nobody else does.
func (r Request) withDefaultFS(scope appdef.Resolver) appdef.Resolver {
	uri, known := scope.Lookup("NN_URI")
	if !known && r.DefaultFS != "" {
		uri, scope.Vars["NN_URI"] = r.DefaultFS, r.DefaultFS
	}
	if _, known := scope.Lookup("NN_HOST"); known {
		return scope
	}
	if rest, ok := strings.CutPrefix(uri[len(schemeForm.FindString(uri)):], "//"); ok {
		host, _, _ := strings.Cut(rest, "/")
		if host, _, _ = strings.Cut(host, ":"); host != "" {
			scope.Vars["NN_HOST"] = host
		}
	}
	return scope
}

// commas splits a list; what stands between the braces of a pattern stays together.
func commas(text string) []string {
	var parts []string
	depth, from := 0, 0
	cut := func(to int) {
		if part := strings.TrimSpace(text[from:to]); part != "" {
			parts = append(parts, part)
		}
		from = to + 1
	}
	for i, c := range text {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth <= 0:
			cut(i)
		}
	}
	cut(len(text))
	return parts
}

// resolved puts the true folders into what is read.
func (in *Inputs) resolved(fill func(string) string) *Inputs {
	if in == nil {
		return nil
	}
	out := *in
	out.From = slices.Clone(in.From)
	for i, one := range out.From {
		out.From[i].From = each(one.From, fill)
	}
	return &out
}

// resolved puts the true folders into what is left.
func (o *Outputs) resolved(fill func(string) string) *Outputs {
	if o == nil {
		return nil
	}
	out := *o
	out.To = slices.Clone(o.To)
	for i, one := range out.To {
		out.To[i].To = fill(one.To)
	}
	return &out
}

// resolved puts the true folders into what a job is told of its own.
func (p *PAI) resolved(fill func(string) string) *PAI {
	if p == nil {
		return nil
	}
	out := *p
	for _, text := range []*string{&out.DefaultFS, &out.DataDir, &out.OutputDir, &out.CodeDir} {
		*text = fill(*text)
	}
	return &out
}
