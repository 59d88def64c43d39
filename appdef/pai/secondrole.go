package pai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// taskRoles reads all task roles, in the order of the file.
func (j *secondJob) taskRoles(c cursor) {
	roles, ok := c.object("taskRoles")
	if !ok {
		if c.Member("taskRoles") == nil {
			c.bad("no taskRoles", "an object with at least one task role", "")
		}
		return
	}
	if len(roles.Members) == 0 {
		roles.bad("an empty object", "at least one task role", "")
	}
	for i, role := range roles.members() {
		name := roles.Members[i].Name
		switch {
		case role.Kind != appdef.JSONObject:
			role.bad(string(role.Kind), "an object", "")
		case !secondRoleForm.MatchString(name):
			role.bad("a task role "+appdef.Quote(name), wantIdentifier, "")
		default:
			j.taskRole(name, role)
		}
	}
	images := map[string]bool{}
	for _, image := range j.imageOf {
		images[image.text("uri")] = true
	}
	for role, image := range j.imageOf {
		if len(images) == 1 { // that of all, which --set muster.image changes
			role = ""
		}
		j.draft.Resource(role, imageKey, strings.TrimSpace(image.text("uri")), image.at("uri"))
	}
}

func (j *secondJob) taskRole(name string, c cursor) {
	c.knows([]string{
		"protocolVersion", "instances", "completion", "taskRetryCount", "prerequisites", "dockerImage", "data",
		"output", "script", "extraContainerOptions", "resourcePerInstance", "commands",
	})
	tasks := c.wholeOr("instances", 1, mostNumber, 1)
	s, ports := j.resources(c)
	commands := c.texts("commands")
	if len(commands) == 0 && (c.Member("commands") == nil || c.Member("commands").Kind == appdef.JSONArray) {
		c.badAt("commands", "no commands", "a list with at least one", meaning["command"])
	}
	j.tasks += tasks
	j.add(name, c, amount{tasks, c.at("instances")}, s)
	c.required("dockerImage")
	j.image(name, c)
	j.setPorts(name, ports, c.at("resourcePerInstance"))
	j.completionOf(name, c, tasks)
	j.retries(name, c)
	script := j.script(name, c, commands)
	j.openNotebook(c.at("commands"), script)
	j.draft.Set(name, commandKey, script, c.at("commands"))
}

// resources reads what each task gets.
func (j *secondJob) resources(c cursor) (s share, ports []port) {
	at := c.at("resourcePerInstance")
	s = share{
		cores: amount{1, at}, memory: amount{defaultMemory, at}, gpus: amount{0, at},
		shm: amount{secondDefaultShm, c.at("extraContainerOptions")},
	}
	all := map[string]port{}
	if r, ok := c.object("resourcePerInstance"); ok {
		r.knows([]string{"cpu", "memoryMB", "gpu", "ports"})
		for field, into := range map[string]*amount{"cpu": &s.cores, "memoryMB": &s.memory, "gpu": &s.gpus} {
			least := 1
			if field == "gpu" {
				least = 0
			}
			if _, given := r.get(field); !given {
				r.bad("no "+field, wholeOf(least, mostNumber), "")
				continue
			}
			*into = amount{r.wholeOr(field, least, mostNumber, into.n), r.at(field)}
		}
		all = j.labels(r)
		at = r.at("ports")
	} else if c.Member("resourcePerInstance") == nil {
		c.bad("no resourcePerInstance", "an object with cpu, memoryMB and gpu", "")
	}
	if options, ok := c.object("extraContainerOptions"); ok {
		options.knows([]string{"shmMB", "infiniband"})
		if n, given := options.whole("shmMB", 0, mostNumber); given && n > 0 {
			if s.shm = (amount{n, options.at("shmMB")}); n > s.memory.n {
				options.badAt("shmMB", strconv.Itoa(n), "at most memoryMB, "+strconv.Itoa(s.memory.n), "")
			}
		}
		if flag, given := options.get("infiniband"); given && flag.Text != "false" {
			options.warnAt("infiniband", "infiniband: "+flag.Text, "the devices in the operator's policy",
				"muster gives a container no device by this key: it has no effect")
		}
	}
	s.shm.n = min(s.shm.n, s.memory.n)
	return s, j.sortedPorts(all, at)
}

// labels reads how many ports a role has of each label. All are dynamic.
func (j *secondJob) labels(r cursor) map[string]port {
	all := map[string]port{}
	labels, ok := r.object("ports")
	if !ok {
		return all
	}
	for i, m := range labels.Members {
		label := labels.members()[i]
		n, counted := labels.whole(m.Name, 1, mostPorts)
		switch {
		case !secondRoleForm.MatchString(m.Name):
			label.bad("a label "+appdef.Quote(m.Name), wantIdentifier, "")
		case counted:
			all[m.Name] = port{label: m.Name, n: n, at: label.place()}
		}
	}
	return all
}

// image sets a role's image and the login of its registry.
func (j *secondJob) image(role string, c cursor) {
	image, ok := j.named(c, "dockerImage", kindImage)
	if !ok || strings.TrimSpace(image.text("uri")) == "" {
		return
	}
	j.imageOf[role] = image
	auth, ok := image.object("auth")
	if !ok {
		return
	}
	auth.knows([]string{"username", "password", "registryuri"})
	scope := scope{secondJob: j, plain: true}
	login := map[string]string{}
	for _, field := range []string{"username", "password"} {
		login[field], _ = scope.fill(auth.scalar(field), auth.at(field))
	}
	registry, _ := scope.fill(auth.scalar("registryuri"), auth.at("registryuri"))
	if registry == "" {
		registry = "https://index.docker.io/v1/"
	}
	text, err := json.Marshal(map[string]any{"auths": map[string]any{registry: login}})
	if err != nil {
		panic("pai: encode a login: " + err.Error()) // texts
	}
	key := kindImage + "/" + image.text("name")
	j.draft.App.JobSecrets[key] = string(text)
	j.draft.Resource(role, authKey, appdef.JobSecret+key, auth.place())
}

// completionOf reads when a role ends the job. -1 is never.
func (j *secondJob) completionOf(role string, c cursor, tasks int) {
	failed, succeeded := amount{0, c.place()}, amount{tasks, c.at("completion")}
	if completion, ok := c.object("completion"); ok {
		completion.knows([]string{"minFailedInstances", "minSucceededInstances"})
		for name, into := range map[string]*amount{"minFailedInstances": &failed, "minSucceededInstances": &succeeded} {
			n, given := completion.whole(name, -1, mostNumber)
			switch {
			case !given || n == 0:
			case n > tasks:
				completion.badAt(name, strconv.Itoa(n), "at most instances, "+strconv.Itoa(tasks), "-1 is never")
			default:
				*into = amount{n, completion.at(name)}
			}
		}
	}
	for key, a := range map[string]amount{minFailedKey: failed, minSuccessKey: succeeded} {
		switch {
		case a.n < 0:
			j.draft.SetNull(role, key, a.at)
		case a.n > 0:
			j.draft.Set(role, key, strconv.Itoa(a.n), a.at)
		}
	}
}

// retries reads taskRetryCount, which PAI heeds only without gang allocation.
func (j *secondJob) retries(role string, c cursor) {
	n, given := c.whole("taskRetryCount", 0, mostNumber)
	if !given || n == 0 {
		return
	}
	if j.gang() {
		c.warnAt("taskRetryCount", strconv.Itoa(n), "gangAllocation: false in extras",
			"PAI heeds it only there: it is without effect, and jobRetryCount counts")
		return
	}
	at := c.at("taskRetryCount")
	j.draft.Set(role, "muster.restart", string(appdef.ScopeInstance), at)
	j.draft.Set(role, "muster.restart.budget", strconv.Itoa(n), at)
	j.draft.Set(role, "muster.restart.window", "0", at)
}

func (j *secondJob) gang() bool {
	if j.extras.JSONNode == nil {
		return true
	}
	flag, given := j.extras.get("gangAllocation")
	return !given || flag.Kind != appdef.JSONBoolean || flag.Text != "false"
}

// strict is how PAI 1 runs a role's commands: the first that fails ends the task.
const strict = "set -o errexit -o nounset -o pipefail\n"

// script is what a task runs: its commands, those of the default deployment around them, and the commands of plugins
// before and after, each in a shell of its own.
func (j *secondJob) script(role string, c cursor, commands []string) string {
	if j.deployment.JSONNode != nil {
		if around, ok := j.deployment.object(role); ok {
			around.knows([]string{"preCommands", "postCommands"})
			commands = slices.Concat(around.texts("preCommands"), commands, around.texts("postCommands"))
		}
	}
	lines := make([]string, len(commands))
	for i, command := range commands {
		lines[i] = strings.TrimSpace(command)
	}
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	if text == "" {
		text = ":"
	}
	parts := map[string]cursor{}
	for _, kind := range []string{kindScript, kindOutput, kindData} {
		if one, there := j.named(c, kind, kind); there {
			parts[kind] = one
		}
	}
	before, after := j.pluginsOf(role, c)
	if len(after) > 0 {
		text = "(\n" + text + "\n)" // its exit does not skip what follows
	}
	text = strings.Join(slices.Concat(before, []string{text}, after), "\n")
	filled, secrets := scope{secondJob: j, parts: parts}.fill(text, c.at("commands"))
	if secrets {
		filled = "eval '" + filled + "'"
	}
	for name, path := range j.secretNames {
		if secrets && strings.Contains(filled, `"$`+name+`"`) {
			j.draft.Set(role, "muster.secret."+name, appdef.JobSecret+path, j.secrets.place())
		}
	}
	if strings.Contains(filled, "\x00") {
		c.badAt("commands", "a character NUL", "a text without it", "no command can hold it")
		return ":"
	}
	return strict + filled
}
