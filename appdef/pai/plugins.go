package pai

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// pluginKey is the key of extras with the plugins of PAI 1's runtime, and the prefix of a prerequisite's plugin.
const pluginKey = "com.microsoft.pai.runtimeplugin"

// pluginCommands are commands that a plugin runs before and after a task's own.
type pluginCommands struct {
	roles         []string // empty: all
	before, after []string
	ignore        bool // of their failure
}

// plugins reads the plugins of extras. Others than cmd and ssh are not run, and named.
func (j *secondJob) plugins() {
	if j.extras.JSONNode == nil {
		return
	}
	for _, one := range j.extras.objects(pluginKey) {
		one.knows([]string{"plugin", "parameters", "failurePolicy", "taskroles"})
		parameters, _ := one.get("parameters")
		if parameters.JSONNode != nil && parameters.Kind != appdef.JSONObject {
			parameters.bad(string(parameters.Kind), "an object", "")
			continue
		}
		name := one.required("plugin")
		switch {
		case name == "cmd" && parameters.JSONNode != nil:
			p := commandsOf(parameters)
			p.roles, p.ignore = one.texts("taskroles"), strings.EqualFold(one.text("failurePolicy"), "ignore")
			j.pluginCommands = append(j.pluginCommands, p)
		case name == "ssh" && parameters.JSONNode != nil:
			sshPlugin(parameters)
		case name != "" && name != "cmd" && name != "ssh":
			one.warnAt("plugin", "the plugin "+appdef.Quote(name), "cmd or ssh", insteadOf(name))
		}
	}
}

// insteadOf says what serves in place of a plugin that is not run.
func insteadOf(plugin string) string {
	switch plugin {
	case "teamwise_storage":
		return "it is not run: let the operator's policy mount the folders of a storage"
	case "git":
		return "it is not run: a command of the task role clones a repository"
	case "tensorboard":
		return "it is not run: muster.side.NAME starts a process beside a task's own"
	}
	return "it is not run"
}

// sshPlugin names what of PAI's ssh muster's own login does otherwise.
func sshPlugin(parameters cursor) {
	parameters.knows([]string{"jobssh", "userssh", "sshbarrier", "sshbarrierTimeout"})
	if user, ok := parameters.get("userssh"); ok && user.Member("value") != nil && user.Member("value").Text != "" {
		parameters.warnAt("userssh", "a key of the user's", "muster ssh",
			"muster lets in who may write the app's keys: the key is not added")
	}
}

// commandsOf reads the commands of the plugin cmd, in both forms that it takes.
func commandsOf(parameters cursor) (p pluginCommands) {
	p.before, p.after = parameters.texts("preCommands"), parameters.texts("postCommands")
	for _, callback := range parameters.objects("callbacks") {
		switch event := callback.required("event"); event {
		case "taskStarts":
			p.before = append(p.before, callback.texts("commands")...)
		case "taskSucceeds":
			p.after = append(p.after, callback.texts("commands")...)
		case "":
		default:
			callback.badAt("event", appdef.Quote(event), "taskStarts or taskSucceeds", "")
		}
	}
	return p
}

// pluginsOf are the commands before and after a role's own: those of its prerequisites, then those of extras. What runs
// after begins with the last.
func (j *secondJob) pluginsOf(role string, c cursor) (before, after []string) {
	var all []pluginCommands
	names := c.texts("prerequisites")
	for _, name := range names {
		one, there := j.prerequisite(name)
		if !there {
			c.badAt("prerequisites", "the unknown prerequisite "+appdef.Quote(name), "the name of one", "")
			continue
		}
		plugin := one.text("plugin")
		switch {
		case plugin == pluginKey+".cmd":
			p := commandsOf(one)
			p.ignore = strings.EqualFold(one.text("failurePolicy"), "ignore")
			all = append(all, p)
		case plugin != "":
			one.warnAt("plugin", "the plugin "+appdef.Quote(plugin), pluginKey+".cmd", "it is not run")
		}
	}
	for _, p := range j.pluginCommands {
		if len(p.roles) == 0 || slices.Contains(p.roles, role) {
			all = append(all, p)
		}
	}
	for _, p := range all {
		if len(p.before) > 0 {
			before = append(before, p.shell(p.before))
		}
		if len(p.after) > 0 {
			after = append([]string{p.shell(p.after)}, after...)
		}
	}
	return before, after
}

// prerequisite finds one by its name alone. PAI takes the last of several kinds.
func (j *secondJob) prerequisite(name string) (found cursor, ok bool) {
	for _, kind := range []string{kindImage, kindScript, kindOutput, kindData} {
		if one, there := j.prerequisites[kind][name]; there {
			found, ok = one, true
		}
	}
	return found, ok
}

// shell runs commands in a shell of their own, in which only a failure ends them, and not even that if it is ignored.
func (p pluginCommands) shell(commands []string) string {
	head, tail := "(\nset +o nounset +o pipefail\n", "\n)"
	if p.ignore {
		head, tail = "(\nset +o errexit +o nounset +o pipefail\n", "\n) || true"
	}
	return head + strings.Join(commands, "\n") + tail
}

// notSupported names the keys of extras that have a meaning for PAI 1 and none here.
func (j *secondJob) notSupported() {
	if j.extras.JSONNode == nil {
		return
	}
	for name, instead := range map[string]string{
		"hivedScheduler":              "the launcher places tasks; muster.gpu.type names a model of GPUs",
		"storages":                    "nothing is mounted: let the operator's policy mount the folders of a storage",
		"jobStatusChangeNotification": "the operator's policy says who is told of a job's end",
		"jobPriorityClass":            "the launcher has priorities of its own",
	} {
		if m, ok := j.extras.get(name); ok && (m.Kind != appdef.JSONObject || len(m.Members) > 0) {
			j.extras.warnAt(name, "the key "+name, "to leave it out", instead)
		}
	}
	if !j.gang() {
		j.extras.warnAt("gangAllocation", "gangAllocation: false", "to leave it out",
			"tasks still start together; taskRetryCount acts")
		j.draft.Set("", envPrefix+"GANG_ALLOCATION", "false", j.extras.at("gangAllocation"))
	}
}
