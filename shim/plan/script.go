package plan

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// scripted tells whether the package's own scripts or commands run the instance.
func (b *builder) scripted() bool {
	s := b.component.Settings
	return !b.serves() && s.Start == appdef.StartScript && s.CommandFrom != "muster.command"
}

// script plans the commands; nil if the process is a single command.
func (b *builder) script() *Script {
	c := b.component
	if !b.scripted() {
		for _, a := range b.addonInstalls(0) {
			b.warn(func() appdef.Place { return placeOf(b.app, "addons") }, "the add-on "+appdef.Quote(a.Name),
				"a component that a script or metainfo's commands run", "its INSTALL is not run in "+c.Name)
		}
		return nil
	}
	s := &Script{
		Commands: map[string]ScriptCommand{}, Python: b.python(),
		Folder:  path.Join(b.req.root(), "app/definition/package"),
		Library: path.Join(b.req.root(), "infra/agent/slider-agent"), Timeout: defaultCommandTime,
		StatusInterval: float64(c.Settings.StatusInterval), PackageList: PackageList(b.app.Packages),
		AutoStart: c.AutoStart, Up: c.Settings.Up,
		shell: b.shell(),
	}
	if c.CommandScript != nil && !c.CommandScript.Missing {
		s.File, s.Timeout = c.CommandScript.Script, cmp.Or(float64(c.CommandScript.Timeout), defaultCommandTime)
	}
	for _, k := range c.Commands {
		if strings.EqualFold(k.Type, "PYTHON") {
			s.Commands[k.Name] = ScriptCommand{File: k.Exec}
		} else {
			s.Commands[k.Name] = ScriptCommand{Shell: b.shellText("commands", b.withNames(k.Exec))}
		}
	}
	if own := c.Settings.TFArgs; own != nil {
		b.warn(b.key("muster.tensorflow.args"), appdef.Quote(*own), "muster.start=builtin",
			"the package's script makes its own arguments")
	}
	s.Addons = b.addonInstalls(s.Timeout)
	s.Configurations, _ = b.scope.Dictionaries()
	s.JavaHome = b.javaHome()
	return s
}

// addonInstalls are what add-ons run in this component: a script, or else the command INSTALL. timeout is the
// component's.
func (b *builder) addonInstalls(timeout float64) []ScriptAddon {
	var all []ScriptAddon
	for _, a := range b.app.Addons {
		for _, part := range a.Components {
			if !laidOut(a) || part.Name != b.component.Name && part.Name != "ALL" {
				continue
			}
			run := ScriptAddon{Name: a.Name, Root: b.addonRoot(a), Timeout: timeout}
			if part.Script != nil {
				run.File, run.Timeout = part.Script.Script, cmp.Or(float64(part.Script.Timeout), timeout)
			}
			for _, k := range part.Commands {
				switch {
				case part.Script != nil || k.Name != CommandInstall:
				case strings.EqualFold(k.Type, "PYTHON"):
					run.File = k.Exec
				default:
					run.Shell = b.shellText("addons", b.withNames(k.Exec))
				}
			}
			if run.File != "" || run.Shell != "" {
				all = append(all, run)
			}
		}
	}
	return all
}

// withNames lets a text of metainfo's commands say {app_root} and {pid_file}: Slider filled in these two names of the
// dictionary global, by Python's format. A shell's own ${app_root} stays, and so does a name that nobody has set.
func (b *builder) withNames(text string) string {
	var pairs []string
	dicts, _ := b.scope.Dictionaries()
	for _, name := range []string{"app_root", "pid_file"} {
		pairs = append(pairs, "${"+name+"}", "${"+name+"}")
		if _, set := dicts["global"][name]; set {
			pairs = append(pairs, "{"+name+"}", "${@//site/global/"+name+"}")
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// javaHome is hostLevelParams.java_home; empty where nobody knows one.
func (b *builder) javaHome() string {
	const key = "java_home"
	home, known := b.scope.Lookup("JAVA_HOME")
	if written := b.component.Config[key]; !known && written != "" {
		b.warn(b.key(key), appdef.Quote(written)+", which has no value here", "the folder of a Java",
			"scripts get none; give --set JAVA_HOME=PATH")
	}
	for _, name := range appdef.Placeholders(home) {
		b.warn(b.key(key), "${"+name+"}, which has no value here", "the folder of a Java",
			"scripts get it as written; give --set JAVA_HOME=PATH")
	}
	return home
}

// defaultCommandTime is Slider's timeout of a command that names none, in seconds.
const defaultCommandTime = 600

// PackageList is hostLevelParams.package_list as Slider 0.91 sends it.
func PackageList(packages []appdef.Package) string {
	list := make([]map[string]string, 0, len(packages))
	for _, p := range packages {
		list = append(list, map[string]string{"type": p.Type, "name": p.Name})
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic("plan: encode package list: " + err.Error())
	}
	return string(text)
}

// scriptEnv adds the variables of scripts to those of every process.
func (b *builder) scriptEnv(s *Script, env map[string]string) {
	given := cmp.Or(env["PYTHONPATH"], b.req.Given["PYTHONPATH"], b.req.Inherited["PYTHONPATH"])
	env["PYTHONPATH"] = strings.TrimSuffix(s.Library+":"+given, ":")
}
