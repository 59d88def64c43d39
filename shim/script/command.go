package script

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

// Order is one command to an instance.
type Order struct {
	Command string // INSTALL, START, STATUS, STOP, or one of the package's own
	Task    int    // its number, from 1; STATUS has none
	Addon   int    // which add-on's INSTALL it is, from 1; 0: none, but the package's own command
}

// Files are the names of one command's files in the instance's log folder.
type Files struct {
	Command    string // what the script is told
	Structured string // what it may answer as JSON
	Stdout     string
	Stderr     string
}

// Files of a command, as Slider's agent calls them. STATUS, which is asked again and again, has one set.
func (o Order) Files() Files {
	if o.Command == plan.CommandStatus {
		return Files{
			Command: "status_command.json", Structured: "structured-out-status.json",
			Stdout: "status_command_stdout.txt", Stderr: "status_command_stderr.txt",
		}
	}
	n := strconv.Itoa(o.Task)
	return Files{
		Command: "command-" + n + ".json", Structured: "structured-out-" + n + ".json",
		Stdout: "output-" + n + ".txt", Stderr: "errors-" + n + ".txt",
	}
}

// Argv is the order's argument vector, with its files in the folder log. s is filled in already.
func (o Order) Argv(s *plan.Script, log, root string) []string {
	argv := s.Argv(o.Command, log, root)
	if o.Addon > 0 {
		argv = s.AddonArgv(s.Addons[o.Addon-1], log, root)
	}
	files := o.Files()
	for i, arg := range argv {
		switch arg {
		case path.Join(log, plan.CommandFile):
			argv[i] = path.Join(log, files.Command)
		case path.Join(log, plan.StructuredFile):
			argv[i] = path.Join(log, files.Structured)
		}
	}
	return argv
}

// document is the command JSON, with the names of Slider's agent.
type document struct {
	CommandType   string `json:"commandType"`
	RoleCommand   string `json:"roleCommand"`
	ClusterName   string `json:"clusterName"`
	ServiceName   string `json:"serviceName"`
	ComponentName string `json:"componentName"`
	Role          string `json:"role"`
	Package       string `json:"package,omitempty"` // the add-on
	TaskID        any    `json:"taskId"`            // a number; the word status for STATUS
	CommandID     string `json:"commandId"`
	hostNames
	params
	Configurations map[string]map[string]string `json:"configurations"`
	Component      map[string]string            `json:"componentConfig"`
	Containers     []string                     `json:"containers"`
	DockerMode     bool                         `json:"yarnDockerMode"`
}

// hostNames are all this host's: there is no master elsewhere.
type hostNames struct {
	Hostname       string `json:"hostname"`
	PublicHostname string `json:"public_hostname"`
	MasterHostname string `json:"appmaster_hostname"`
}

// params are what Slider's agent says of the host, the role and the command.
type params struct {
	Host    map[string]string `json:"hostLevelParams"`
	Role    map[string]string `json:"roleParams"`
	Command map[string]string `json:"commandParams"`
}

// Document is what a script reads: the command JSON. The plan is resolved, s its script filled in for
// this moment, host the address that peers know.
func (o Order) Document(p plan.Plan, s *plan.Script, host string) []byte {
	kind, task := "EXECUTION_COMMAND", any(o.Task)
	if o.Command == plan.CommandStatus {
		kind, task = "STATUS_COMMAND", "status"
	}
	auto := strconv.FormatBool(s.AutoStart)
	d := document{
		CommandType: kind, RoleCommand: o.Command, ClusterName: p.App.ID, ServiceName: p.App.ID,
		ComponentName: p.Who.Component, Role: p.Who.Component, TaskID: task, CommandID: strconv.Itoa(o.Task) + "-1",
		hostNames: hostNames{host, host, host},
		params: params{
			Host: map[string]string{
				"java_home": s.JavaHome, "package_list": s.PackageList,
				"container_id": s.Configurations["global"]["app_container_id"],
			},
			Role: map[string]string{"auto_restart": auto}, Command: o.params(s),
		},
		Configurations: s.Configurations, Component: map[string]string{"autoStartOnFailure": auto},
		Containers: []string{},
	}
	if o.Addon > 0 {
		d.Package = s.Addons[o.Addon-1].Name
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		panic("script: encode command: " + err.Error()) // texts and a number
	}
	return append(text, '\n')
}

func (o Order) params(s *plan.Script) map[string]string {
	params := map[string]string{
		"service_package_folder": s.Folder, "schema_version": "2.0", "script_type": "PYTHON", "script": s.File,
		"command_timeout": strconv.FormatFloat(s.Timeout, 'f', -1, 64),
		"record_config":   strconv.FormatBool(o.Command == plan.CommandStart || o.Command == plan.CommandStop),
	}
	own, ok := s.Commands[o.Command]
	if o.Addon > 0 {
		addon := s.Addons[o.Addon-1]
		own, ok = addon.ScriptCommand, true
		params["addonPackageRoot"] = addon.Root
		params["command_timeout"] = strconv.FormatFloat(addon.Timeout, 'f', -1, 64)
	}
	if ok {
		if own.File != "" {
			params["script"] = own.File
		} else {
			params["script_type"], params["command"] = "SHELL", own.Shell
			delete(params, "script")
		}
	}
	return params
}

// PIDFile is where START says which process it has left behind: the configuration's pid_file, as a path.
func PIDFile(s *plan.Script) string { return s.Configurations["global"]["pid_file"] }

// PIDFolder is where further pid files may lie.
func PIDFolder(s *plan.Script) string { return s.Configurations["global"]["app_pid_dir"] }

// ParsePID reads a pid file: a number and nothing else but blanks.
func ParsePID(text string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	return n, err == nil && n > 0
}

// Names lists the commands of metainfo, sorted: what may be asked for by name.
func Names(s *plan.Script) []string { return slices.Sorted(maps.Keys(s.Commands)) }
