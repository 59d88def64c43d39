package hbox

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/shellwords"
)

// Write is the App as the words behind `hbox-submit`. Parse of them gives the App again if it came from a command line.
// What HBox has no word for becomes --conf muster.X, which HBox itself ignores. unsupported describes, sorted, what
// even that cannot express.
func Write(app appdef.App) (args, unsupported []string) {
	w := writer{app: &app}
	w.kind, _ = kindNamed(w.typeName())
	w.whole()
	w.sizes()
	w.words()
	w.files()
	w.data()
	w.side()
	w.limits()
	w.endings()
	w.rest()
	slices.Sort(w.unsupported)
	return w.line(), slices.Compact(w.unsupported)
}

// writer is one Write.
type writer struct {
	app         *appdef.App
	kind        kind
	single      bool // the processes know nothing of each other
	args        []string
	command     []string
	unsupported []string
}

func (w *writer) line() []string {
	if len(w.command) == 0 {
		return w.args
	}
	if _, dashed := cutDashes(w.command[0]); dashed {
		return slices.Concat(w.args, []string{"--"}, w.command)
	}
	return slices.Concat(w.args, w.command)
}

func (w *writer) option(name, text string) { w.args = append(w.args, "--"+name, text) }

func (w *writer) conf(name, text string) { w.option("conf", name+"="+text) }

func (w *writer) cannot(text string) { w.unsupported = append(w.unsupported, text) }

// number adds an option if it differs from its default.
func (w *writer) number(name string, n, fallback int) {
	if n != fallback {
		w.option(name, strconv.Itoa(n))
	}
}

// typeName is the app type, or the type of the App's framework.
func (w *writer) typeName() string {
	if t := w.app.Settings.HBox.Type; t != "" {
		return t
	}
	for _, k := range kinds {
		if k.framework != "" && k.framework == w.app.Settings.Framework {
			return k.name
		}
	}
	return "HBOX"
}

// whole writes what holds for the whole app, and reports what HBox cannot express.
func (w *writer) whole() {
	a := w.app
	w.option("app-type", strings.ToLower(w.kind.name))
	if a.Name != defaultName {
		w.option("app-name", a.Name)
	}
	for _, missing := range []struct {
		there bool
		what  string
	}{
		{len(a.CommandOrders) > 0, "the order of starts"},
		{len(a.Packages) > 0, "the package's folders and archives: --files and --archiveFiles bring files"},
		{len(a.AppResources) > 0, "application.resources: --files brings them"},
		{len(a.Addons) > 0, "the add-ons"},
		{len(a.ConfigFiles) > 0 || len(a.Defaults) > 0, "the dictionaries of the configuration"},
		{a.Release != "", "the version"},
		{a.Comment != "", "the comment"},
	} {
		if missing.there {
			w.cannot(missing.what)
		}
	}
	for _, c := range a.Components {
		if w.role(c.Name) == nil {
			w.cannot("the component " + c.Name + ": HBox has workers, parameter servers and an evaluator")
			continue
		}
		if c.CommandScript != nil || len(c.Commands) > 0 {
			w.cannot("the scripts of " + c.Name)
		}
		if c.MinInstances > 0 || c.MaxInstances >= 0 {
			w.cannot("the least and the most instances of " + c.Name)
		}
	}
}

// role finds the component of one of HBox's roles.
func (w *writer) role(name string) *appdef.Component {
	if !slices.Contains([]string{roleScheduler, rolePS, roleChief, roleWorker, roleEvaluator}, name) {
		return nil
	}
	return w.app.Component(name)
}

func count(c *appdef.Component) int {
	if c == nil {
		return 0
	}
	return c.Instances
}

// sizes writes the numbers of each role.
func (w *writer) sizes() {
	worker, chief, evaluator, ps := w.role(roleWorker), w.role(roleChief), w.role(roleEvaluator), w.role(rolePS)
	if count(ps) > 0 && !w.kind.ps {
		w.cannot("the component ps: the app type " + w.kind.name + " has no parameter servers")
		ps = nil
	}
	w.number("worker-num", count(worker)+count(chief)+count(evaluator), 1)
	w.number("ps-num", count(ps), 0)
	w.size("worker", worker)
	w.size("ps", ps)
	if chief != nil {
		w.option("chiefworker-memory", strconv.Itoa(chief.Limits.MemoryMB))
	}
	if evaluator != nil {
		w.option("tf-evaluator", "true")
		if worker != nil && evaluator.Limits.MemoryMB != worker.Limits.MemoryMB {
			w.option("evaluatorworker-memory", strconv.Itoa(evaluator.Limits.MemoryMB))
		}
	}
	workers, strategy := count(worker)+count(chief)+count(evaluator), true
	if _, address := w.app.Config["site.global."+roleWorker+".port"]; w.kind.tensorflow() &&
		w.app.Settings.Framework == "none" && !address && workers > 1 {
		strategy = false
		w.conf(confStrategy, "false")
	}
	w.single = w.kind.alone(workers, count(ps), strategy)
}

func (w *writer) size(name string, c *appdef.Component) {
	if c == nil {
		return
	}
	if c.Limits.MemoryMB == appdef.Max || c.Limits.VCores == appdef.Max {
		w.cannot("as much as there is for " + c.Name + ": HBox wants numbers")
	}
	w.number(name+"-memory", max(c.Limits.MemoryMB, 1), 1024)
	w.number(name+"-cores", max(c.Limits.VCores, 1), 1)
	w.number(name+"-gpus", c.Limits.GPUs, 0)
}

// words writes the command and the variables.
func (w *writer) words() {
	lead := w.role(roleWorker)
	if lead == nil {
		lead = w.role(roleChief)
	}
	for _, key := range slices.Sorted(maps.Keys(w.app.Config)) {
		if name, ok := strings.CutPrefix(key, "muster.env."); ok && name != "inherit" {
			w.conf(confEnv+name, w.app.Config[key])
		}
	}
	if lead == nil || lead.Settings.Command == "" {
		return
	}
	text := lead.Settings.Command
	for _, c := range w.app.Components {
		role := w.role(c.Name)
		if role == nil || role.Instances == 0 || c.Name == rolePS && !w.kind.ps {
			continue
		}
		if role.Settings.Command != text {
			w.conf(c.Name+":muster.command", role.Settings.Command) // HBox starts the lead's in all containers
		}
	}
	if w.kind.lives() {
		if _, length, ok := strings.Cut(text, "sleep "); ok && durationForm.MatchString(length) {
			w.option("duration", strings.Replace(length, forever, "0", 1))
		}
		return
	}
	text = w.searchPaths(text)
	if words, ok := shellwords.Words(text); ok {
		w.command = words
		return
	}
	w.command = []string{"bash", "-c", text}
}

// searchPaths writes the additions to PATH and LD_LIBRARY_PATH before the command, and returns the command.
func (w *writer) searchPaths(text string) string {
	whole := text
	path, found := "", false
	if rest, ok := strings.CutPrefix(text, pathPrefix); ok {
		if path, rest, ok = quotedWord(rest, "; "); !ok {
			return whole
		}
		text, found = rest, true
	}
	libraries := ""
	if rest, ok := strings.CutPrefix(text, libraryPrefix); ok {
		if libraries, rest, ok = quotedWord(rest, librarySuffix+"; "); !ok {
			return whole
		}
		text, found = rest, true
	}
	command, ok := strings.CutPrefix(text, "exec ")
	if !found || !ok {
		return whole
	}
	if path != "" {
		w.option("user-path", path)
	}
	if libraries != "" {
		w.option("user-ldlibrarypath", libraries)
	}
	return command
}

// quotedWord reads one word in the form of shellwords.Word, up to what must follow.
func quotedWord(text, end string) (value, rest string, ok bool) {
	for at := 0; ; {
		i := strings.Index(text[at:], end)
		if i < 0 {
			return "", "", false
		}
		at += i
		words, whole := shellwords.Words(text[:at])
		if whole && len(words) == 1 {
			return words[0], text[at+len(end):], true
		}
		at++
	}
}

// files writes the files in stores that every instance gets.
func (w *writer) files() {
	found := false
	for _, kind := range []struct{ key, option string }{{fileKey, "cacheFile"}, {archiveKey, "cacheArchive"}} {
		var all []string
		for _, key := range slices.Sorted(maps.Keys(w.app.Config)) {
			name, ok := strings.CutPrefix(key, kind.key)
			path := w.app.Config[key]
			if ok && !strings.HasPrefix(path, localScheme) && !strings.ContainsAny(path+name, ",#") {
				all = append(all, path+"#"+name)
			}
		}
		if len(all) > 0 {
			found = true
			w.option(kind.option, strings.Join(all, ","))
		}
	}
	if found && w.app.Config["muster.files.check"] == "false" {
		w.conf(confFileCheck, "false")
	}
}

// limits writes the image and how memory grows.
func (w *writer) limits() {
	for _, c := range []struct {
		*appdef.Component
		conf string
	}{{w.role(roleWorker), confWorkerAutoscale}, {w.role(rolePS), confPSAutoscale}} {
		if c.Component != nil && c.Limits.Autoscale > 0 {
			w.conf(c.conf, strconv.FormatFloat(c.Limits.Autoscale, 'f', -1, 64))
		}
	}
	for _, c := range w.app.Components {
		if w.role(c.Name) != nil && c.Limits.Image != "" {
			w.conf("hbox.container.type", "docker")
			w.conf(confDockerImage, c.Limits.Image)
			return
		}
	}
}

// endings writes what fails the job, how often it is retried and how long it may take.
func (w *writer) endings() {
	s := w.app.Settings
	tolerant := !w.kind.strict || w.single // it tolerates failures
	switch byDefault := tolerant && !w.kind.allReduce; {
	case s.Total.FailedShare > 0 && (s.Total.FailedShare != 0.5 || !byDefault):
		w.conf(confRate, strconv.FormatFloat(s.Total.FailedShare, 'g', 12, 64))
	case s.Total.FailedShare == 0 && tolerant && w.never():
		w.conf(confRate, "2")
	case s.Total.FailedShare == 0 && byDefault:
		w.conf(confRate, "0")
	}
	if s.Retry > 0 {
		w.conf(confAttempts, strconv.Itoa(s.Retry+1))
	}
	if s.Timeout > 0 {
		w.conf(confTimeout, milliseconds(s.Timeout))
	}
	if _, written := w.app.Config["muster.stage.timeout"]; written {
		w.conf(confStageTimeout, milliseconds(s.StageTimeout))
	}
}

// never tells whether no number of failures fails the job.
func (w *writer) never() bool {
	return !slices.ContainsFunc(w.app.Components, func(c appdef.Component) bool {
		return c.Name != roleEvaluator && c.Settings.Complete.MinFailed != nil
	})
}

func milliseconds(s appdef.Seconds) string {
	return strconv.FormatInt(s.Duration().Milliseconds(), 10)
}

// rest writes as --conf muster.X what the options do not express.
func (w *writer) rest() {
	said, _ := Parse(w.line(), Site{})
	a, b := w.app, &said.App
	w.differ("", a.Config, b.Config, nil, nil)
	w.differ("", a.Resources, b.Resources, nil, nil)
	for i := range a.Components {
		c := &a.Components[i]
		other := b.Component(c.Name)
		if w.role(c.Name) == nil || other == nil {
			continue
		}
		w.differ(c.Name, c.Config, other.Config, a.Config, b.Config)
		w.differ(c.Name, c.Resources, other.Resources, a.Resources, b.Resources)
	}
}

// sized are the keys that have options.
var sized = [...]string{"yarn.memory", "yarn.vcores", "yarn.role.priority", "yarn.io/gpu", "yarn.component.instances"}

// differ writes the values of one level that are missing so far; above are those of the level that holds for all.
func (w *writer) differ(component string, want, have, wantAbove, haveAbove map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		text := want[key]
		if above, ok := wantAbove[key]; ok && above == text {
			continue // the level above has it
		}
		got, ok := have[key]
		if above, inherited := haveAbove[key]; ok && inherited && above == got {
			ok = false // it belongs to the level above
		}
		switch {
		case ok && got == text, key == "muster.dialect", slices.Contains(sized[:], key):
		case strings.HasPrefix(key, "muster."):
			w.conf(strings.TrimPrefix(component+":"+key, ":"), text)
		case component == "":
			w.cannot("the value of " + key)
		default:
			w.cannot("the value of " + key + " of " + component)
		}
	}
}
