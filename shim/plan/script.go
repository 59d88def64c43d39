package plan

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// Script says that the package's own scripts or commands run the instance, as Slider's agent ran
// them; a plan without one has a process that is a single command.
type Script struct {
	// File is the commandScript, under package/: whatever has no entry in Commands is given to it. Empty: none.
	File string `json:"file,omitempty"`
	// Commands are metainfo's commands by name.
	Commands map[string]ScriptCommand `json:"commands,omitempty"`
	Python   string                   `json:"python"`
	Folder   string                   `json:"folder"`  // basedir: the definition's package/
	Library  string                   `json:"library"` // what the scripts import lies here
	// Timeout and StatusInterval are in seconds: of one command, and between two STATUS; 0: STATUS is never asked.
	Timeout        float64 `json:"timeout"`
	StatusInterval float64 `json:"status_interval"`
	// Configurations are dictionary → key → value. Values may still hold what only the start knows.
	Configurations map[string]map[string]string `json:"configurations"`
	JavaHome       string                       `json:"java_home,omitempty"`
	PackageList    string                       `json:"package_list"` // JSON, as install_packages reads it
	AutoStart      bool                         `json:"auto_start,omitempty"`
	shell          string
}

// ScriptCommand is one command of metainfo 2.1: a shell's text, or a Python script under package/.
type ScriptCommand struct {
	Shell string `json:"shell,omitempty"`
	File  string `json:"file,omitempty"`
}

// The commands that the agent itself gives.
const (
	CommandInstall   = "INSTALL"
	CommandStart     = "START"
	CommandStatus    = "STATUS"
	CommandStop      = "STOP"
	CommandGetConfig = "GET_CONFIG"
)

// taskToken stands for the number of a command in the names of its files.
const taskToken = "{{task}}"

// Names of a command's files in the instance's log folder; the number of the command stands for `{{task}}`.
const (
	CommandFile    = "command-" + taskToken + ".json"
	StructuredFile = "structured-out-" + taskToken + ".json"
)

// scripted tells that the package's own scripts or commands run the instance.
func (b *builder) scripted() bool {
	s := b.component.Settings
	return !b.serves() && s.Start == appdef.StartScript && s.CommandFrom != "muster.command"
}

// script plans the commands; nil when one command line is all.
func (b *builder) script() *Script {
	if !b.scripted() {
		return nil
	}
	c := b.component
	s := &Script{
		Commands: map[string]ScriptCommand{}, Python: b.python(), Folder: path.Join(b.req.root(), "app/definition/package"),
		Library: path.Join(b.req.root(), "infra/agent/slider-agent"), Timeout: defaultCommandTime,
		StatusInterval: float64(c.Settings.StatusInterval), PackageList: packageList(b.app.Packages), AutoStart: c.AutoStart,
		shell: b.shell(),
	}
	if c.CommandScript != nil && !c.CommandScript.Missing {
		s.File, s.Timeout = c.CommandScript.Script, cmp.Or(float64(c.CommandScript.Timeout), defaultCommandTime)
	}
	for _, k := range c.Commands {
		if strings.EqualFold(k.Type, "PYTHON") {
			s.Commands[k.Name] = ScriptCommand{File: k.Exec}
		} else {
			s.Commands[k.Name] = ScriptCommand{Shell: b.shellText("commands", k.Exec)}
		}
	}
	if own := c.Settings.TFArgs; own != nil {
		b.warn(b.key("muster.tensorflow.args"), appdef.Quote(*own), "muster.start=builtin", "the package's script makes its own arguments")
	}
	s.Configurations, _ = b.scope.Dictionaries()
	s.JavaHome, _ = b.scope.Lookup("JAVA_HOME")
	return s
}

// defaultCommandTime is Slider's for a command that names none, in seconds.
const defaultCommandTime = 600

// packageList is hostLevelParams.package_list as Slider 0.91 sends it.
func packageList(packages []appdef.Package) string {
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

// Has tells whether there is something to run for a command. A script says itself what it has.
func (s *Script) Has(command string) bool {
	_, own := s.Commands[command]
	return own || s.File != ""
}

// isFile tells that a command is a Python script and not a shell's text.
func (s *Script) isFile(command string) bool {
	if s == nil {
		return false
	}
	own, ok := s.Commands[command]
	return ok && own.File != "" || !ok && s.File != ""
}

// Argv is the argument vector of one command: a script's as Slider's agent gives it, or a shell's. log
// and root are the instance's log folder and working folder.
func (s *Script) Argv(command, log, root string) []string {
	own := s.Commands[command]
	if !s.isFile(command) {
		return []string{cmp.Or(s.shell, "bash"), "-c", own.Shell}
	}
	return []string{
		s.Python, path.Join(s.Folder, cmp.Or(own.File, s.File)), command, path.Join(log, CommandFile), s.Folder,
		path.Join(log, StructuredFile), "INFO", root,
	}
}

// env is what scripts find beside what every process does.
func (b *builder) scriptEnv(s *Script, env map[string]string) {
	given := cmp.Or(env["PYTHONPATH"], b.req.Given["PYTHONPATH"], b.req.Inherited["PYTHONPATH"])
	env["PYTHONPATH"] = strings.TrimSuffix(s.Library+":"+given, ":")
}

// Filled is what the start knows put into the script's configurations and commands. r may be empty:
// before the barrier nobody knows the others.
func (s *Script) Filled(p Plan, r registry.Roster, facts StartFacts) *Script {
	fill := finisher{plan: p, roster: r, facts: withRow(facts, p, r)}.filler()
	return s.each(fill)
}

// each is the script with every text put through fill.
func (s *Script) each(fill func(string) string) *Script {
	if s == nil {
		return nil
	}
	out := *s
	out.Folder, out.Library, out.Python, out.JavaHome = fill(s.Folder), fill(s.Library), fill(s.Python), fill(s.JavaHome)
	out.Configurations = make(map[string]map[string]string, len(s.Configurations))
	for dict, values := range s.Configurations {
		out.Configurations[dict] = eachValue(values, fill)
	}
	out.Commands = make(map[string]ScriptCommand, len(s.Commands))
	for name, c := range s.Commands {
		out.Commands[name] = ScriptCommand{Shell: fill(c.Shell), File: c.File}
	}
	return &out
}
