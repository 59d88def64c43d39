package plan

import (
	"cmp"
	"path"
	"slices"
)

// Script says that the package's own scripts or commands run the instance, as under Slider's agent. Without a Script
// the process is a single command.
type Script struct {
	// File is the commandScript, under package/. It handles all commands that have no entry in Commands. Empty: none.
	File string `json:"file,omitempty"`
	// Commands are metainfo's commands by name.
	Commands map[string]ScriptCommand `json:"commands,omitempty"`
	// Addons are what add-ons run behind INSTALL, in their order.
	Addons  []ScriptAddon `json:"addons,omitempty"`
	Python  string        `json:"python"`
	Folder  string        `json:"folder"`  // basedir: the definition's package/
	Library string        `json:"library"` // folder of the libraries that the scripts import
	// Timeout limits one command, and StatusInterval is the pause between two STATUS, both in seconds; 0: no STATUS.
	Timeout        float64 `json:"timeout"`
	StatusInterval float64 `json:"status_interval"`
	Up             string  `json:"up,omitempty"` // muster.up; empty: auto
	// Configurations are dictionary → key → value. Values may still contain placeholders of the start.
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

// ScriptAddon is the INSTALL of an add-on package in this component.
type ScriptAddon struct {
	Name string `json:"name"`
	Root string `json:"root"` // the add-on's folder; a File lies below its package/
	ScriptCommand
	Timeout float64 `json:"timeout"` // seconds
}

// The commands that the agent calls by itself.
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

// Has tells whether there is something to run for a command. A script knows itself which commands it has.
func (s *Script) Has(command string) bool {
	_, own := s.Commands[command]
	return own || s.File != ""
}

// Asks tells whether STATUS is asked.
func (s *Script) Asks() bool { return s.Has(CommandStatus) && s.StatusInterval > 0 }

// isFile tells whether a command is a Python script and not a text for a shell.
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
	return s.python(path.Join(s.Folder, cmp.Or(own.File, s.File)), command, log, root)
}

// AddonArgv is the argument vector of an add-on's INSTALL. As under Slider its script is told the folder of the app's
// package, not of the add-on's.
func (s *Script) AddonArgv(a ScriptAddon, log, root string) []string {
	if a.File == "" {
		return []string{cmp.Or(s.shell, "bash"), "-c", a.Shell}
	}
	return s.python(path.Join(a.Root, "package", a.File), CommandInstall, log, root)
}

func (s *Script) python(file, command, log, root string) []string {
	return []string{
		s.Python, file, command, path.Join(log, CommandFile), s.Folder, path.Join(log, StructuredFile), "INFO", root,
	}
}

// each is the script with every text put through fill.
func (s *Script) each(fill func(string) string) *Script {
	if s == nil {
		return nil
	}
	out := *s
	out.Folder, out.Library = fill(s.Folder), fill(s.Library)
	out.Python, out.JavaHome = fill(s.Python), fill(s.JavaHome)
	out.Configurations = make(map[string]map[string]string, len(s.Configurations))
	for dict, values := range s.Configurations {
		out.Configurations[dict] = eachValue(values, fill)
	}
	out.Addons = slices.Clone(s.Addons)
	for i, a := range out.Addons {
		out.Addons[i].Root, out.Addons[i].Shell = fill(a.Root), fill(a.Shell)
	}
	out.Commands = make(map[string]ScriptCommand, len(s.Commands))
	for name, c := range s.Commands {
		out.Commands[name] = ScriptCommand{Shell: fill(c.Shell), File: c.File}
	}
	return &out
}
