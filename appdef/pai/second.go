package pai

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// The names of the second protocol: of a job, and of task roles and port labels, which are names of variables.
var (
	secondJobForm  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)
	secondRoleForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// contributorKept is where an App keeps who has written a job.
const contributorKept = keptPrefix + "/contributor"

const wantIdentifier = "a name of letters, digits and _, no digit first"

// The kinds of prerequisites, and the key of a task role that names one of each.
const (
	kindImage  = "dockerimage"
	kindScript = "script"
	kindOutput = "output"
	kindData   = "data"
)

// secondDefaultShm is the size of /dev/shm in MB if the job sets none.
const secondDefaultShm = 512

// secondJob reads a job of PAI 1's own protocol. Its version of PAI is 1, whatever the command line says.
func (l *loading) secondJob(c cursor) {
	c.knows([]string{
		"protocolVersion", "name", "type", "version", "contributor", "description", "prerequisites", "parameters",
		"secrets", "jobRetryCount", "taskRoles", "deployments", "defaults", "extras",
	})
	l.protocol(c)
	name := c.required("name")
	if name != "" && !secondJobForm.MatchString(name) {
		c.badAt("name", appdef.Quote(name), "a name of letters, digits and - _, at most 255", "")
	}
	if kind := c.required("type"); kind != "" && kind != "job" {
		c.badAt("type", appdef.Quote(kind), "job", "")
	}
	l.draft = appdef.NewDraft(dialect, name, c.at("name"))
	l.draft.App.JobSecrets = map[string]string{}
	l.roles, l.groups, l.version = map[string]appdef.Place{}, map[string]bool{}, appdef.PAI1
	l.secondVersion(c)
	l.draft.App.Release, l.draft.App.Comment = c.scalar("version"), c.text("description")
	if by := c.text("contributor"); by != "" {
		l.draft.App.Kept[contributorKept] = by
	}
	l.draft.Set("", "muster.framework", "none", c.place()) // the job's name does not choose a framework
	l.draft.Set("", "muster.role", string(appdef.RoleWorker), c.place())

	j := &secondJob{
		loading: l, prerequisites: l.prerequisites(c), secretNames: map[string]string{},
		imageOf: map[string]cursor{},
	}
	j.parameters, _ = c.object("parameters")
	j.secrets, _ = c.object("secrets")
	j.extras, _ = c.object("extras")
	j.defaults(c)
	j.plugins()
	j.taskRoles(c)
	if n, ok := c.whole("jobRetryCount", 0, mostNumber); ok {
		l.draft.Set("", retryKey, strconv.Itoa(n), c.at("jobRetryCount"))
	}
	j.notSupported()
	l.extras(c)
}

// secondJob is a job of the second protocol in the reading.
type secondJob struct {
	*loading
	prerequisites               map[string]map[string]cursor // by kind and name
	parameters, secrets, extras cursor                       // without a node if the job has none
	deployment                  cursor                       // the task roles of the default deployment
	pluginCommands              []pluginCommands
	secretNames                 map[string]string // variable → the secret's path
	imageOf                     map[string]cursor // by role
}

func (l *loading) protocol(c cursor) {
	const name = "protocolVersion"
	m, ok := c.get(name)
	switch {
	case !ok:
		c.bad("no "+name, "protocolVersion: 2", "prerequisites and deployments are of the second protocol")
	case !m.Scalar() || m.Text != "2":
		got := string(m.Kind)
		if m.Scalar() {
			got = appdef.Quote(m.Text)
		}
		m.bad(got, "2", "PAI's first protocol is JSON, and has no such key")
	}
}

// secondVersion says where the version of PAI comes from. Nothing may say otherwise.
func (l *loading) secondVersion(c cursor) {
	const why = "a job with protocolVersion is of PAI 1"
	if v := l.options.Version; v != "" && v != appdef.PAI1 {
		p := appdef.Place{File: "--pai-version"}.Problem(appdef.Quote(v), appdef.PAI1, why)
		p.Usage = true
		l.found = append(l.found, p)
	}
	if own, ok := ownVersion(c); ok && own.Text != appdef.PAI1 {
		own.bad(appdef.Quote(own.Text), appdef.PAI1, why)
	}
	l.draft.Set("", versionKey, appdef.PAI1, c.at("protocolVersion"))
}

// scalar reads a text or a number as a text.
func (c cursor) scalar(name string) string {
	m, ok := c.get(name)
	if ok && !m.Scalar() {
		m.bad(string(m.Kind), "a text or a number", "")
		return ""
	}
	if !ok {
		return ""
	}
	return m.Text
}

// texts reads a list of texts.
func (c cursor) texts(name string) []string {
	m, ok := c.get(name)
	if !ok {
		return nil
	}
	if m.Kind != appdef.JSONArray {
		m.bad(string(m.Kind), "a list of texts", "")
		return nil
	}
	var texts []string
	for i, item := range m.Items {
		one := cursor{JSONNode: item, l: c.l, pointer: m.pointer + appdef.Pointer(strconv.Itoa(i))}
		if item.Kind != appdef.JSONText {
			one.bad(string(item.Kind), "a text", "quotes make one of any value")
			continue
		}
		texts = append(texts, item.Text)
	}
	return texts
}

// prerequisites reads what task roles may name, by kind and name.
func (l *loading) prerequisites(c cursor) map[string]map[string]cursor {
	kinds := []string{kindImage, kindScript, kindOutput, kindData}
	all := map[string]map[string]cursor{}
	for _, kind := range kinds {
		all[kind] = map[string]cursor{}
	}
	for _, one := range c.objects("prerequisites") {
		kind, name := one.required("type"), one.required("name")
		switch {
		case kind == "" || name == "":
			continue
		case all[kind] == nil:
			one.badAt("type", appdef.Quote(kind), "one of "+strings.Join(kinds, ", "), appdef.DidYouMean(kind, kinds))
			continue
		case all[kind][name].JSONNode != nil:
			one.badAt("name", "a second "+kind+" "+appdef.Quote(name), "a name of its own",
				"the first is at "+all[kind][name].place().String())
			continue
		}
		if kind == kindImage {
			one.knows([]string{
				"protocolVersion", "name", "type", "version", "contributor", "description", "auth", "uri",
			})
			one.required("uri")
		}
		all[kind][name] = one
	}
	return all
}

// named finds the prerequisite of a kind that a task role names; false if it names none, or one that is not there.
func (j *secondJob) named(role cursor, field, kind string) (cursor, bool) {
	name := role.text(field)
	if name == "" {
		return cursor{}, false
	}
	one, there := j.prerequisites[kind][name]
	if !there {
		names := sortedNames(j.prerequisites[kind])
		role.badAt(field, "the unknown "+kind+" "+appdef.Quote(name), "the name of a prerequisite of type "+kind,
			appdef.DidYouMean(name, names))
	}
	return one, there
}

// defaults reads the virtual cluster and finds the deployment whose commands surround the task roles'.
func (j *secondJob) defaults(c cursor) {
	defaults, _ := c.object("defaults")
	cluster := defaultCluster
	at := c.at("defaults")
	if defaults.JSONNode != nil {
		defaults.knows([]string{"virtualCluster", "deployment"})
		if own := defaults.text("virtualCluster"); own != "" {
			cluster, at = own, defaults.at("virtualCluster")
		}
	}
	j.draft.Set("", clusterKey, cluster, at)
	first := map[string]appdef.Place{}
	chosen := ""
	if defaults.JSONNode != nil {
		chosen = defaults.text("deployment")
	}
	for _, one := range c.objects("deployments") {
		one.knows([]string{"protocolVersion", "name", "version", "contributor", "description", "taskRoles"})
		name := one.required("name")
		if at, twice := first[name]; twice && name != "" {
			one.badAt("name", "a second deployment "+appdef.Quote(name), "a name of its own",
				"the first is at "+at.String())
			continue
		}
		first[name] = one.at("name")
		roles, ok := one.object("taskRoles")
		if !ok {
			one.bad("no taskRoles", "the task roles whose commands it surrounds", "")
			continue
		}
		if name == chosen && name != "" {
			j.deployment = roles
		}
	}
	if _, there := first[chosen]; chosen != "" && !there {
		names := sortedNames(first)
		defaults.badAt("deployment", "the unknown deployment "+appdef.Quote(chosen), "the name of a deployment",
			appdef.DidYouMean(chosen, names))
	}
}

func sortedNames[T any](all map[string]T) []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
