package pai

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// JobFile is the name of a job file inside a package.
const JobFile = "job.json"

// Options are the command line's additions to the job file.
type Options struct {
	// Name of the file, for problems.
	Name string
	// Version is the version of PAI (appdef.PAI05, PAI014, PAI1); empty: what the file shows.
	Version string
	// OutputUser puts the user into the default output folder, as PAI does: /Output/<user>/<job>. The manuals say
	// /Output/<job>.
	OutputUser bool
	// Set are `[COMPONENT|global:]KEY=VALUE` and Instances `COMPONENT=N,…`, as for a package; they win over the file.
	Set, Instances []string
}

// mostBytes limits a job file.
const mostBytes = 8 << 20

// protocolTwo finds a YAML document of PAI 1's own protocol.
var protocolTwo = regexp.MustCompile(`(?m)^["']?protocolVersion["']?[ \t]*:`)

// Is tells by its content whether a document is a job file of PAI, of either protocol, however broken.
func Is(data []byte) bool {
	keys := appdef.JSONKeys(data)
	if slices.ContainsFunc([]string{"taskRoles", "jobName", "protocolVersion"}, func(key string) bool {
		return slices.Contains(keys, key)
	}) {
		return true
	}
	return len(keys) == 0 && protocolTwo.Match(data)
}

// Load reads a job file, applies the options, and settles and validates the App. It always returns all problems,
// sorted; without one of severity error the App can be planned. Warnings are also in App.Warnings.
//
// In the first protocol comments, trailing commas and numbers in quotes are accepted. Fields that PAI refuses as
// unknown are warnings.
func Load(data []byte, options Options) (appdef.App, appdef.Problems) {
	l := &loading{options: options}
	if options.Name == "" {
		l.options.Name = "job.json"
	}
	root := l.read(data)
	if root == nil {
		return appdef.App{Dialect: dialect}, l.found.Sort()
	}
	if c := (cursor{JSONNode: root, l: l}); l.second {
		l.secondJob(c)
	} else {
		l.job(c)
	}
	if len(l.draft.App.Components) == 0 { // there is nothing left to judge
		return appdef.App{Name: l.draft.App.Name, Dialect: dialect}, l.found.Sort()
	}
	l.draft.Found(l.found...)
	l.draft.Override(options.Set, options.Instances)
	app, found := l.draft.Finish()
	app.Settings.PAI.VersionWhy = l.sign.why
	return app, found
}

const dialect = "pai"

// loading is one run of Load.
type loading struct {
	options Options
	draft   *appdef.Draft
	second  bool // the job is of the second protocol
	version string
	sign    sign // that the version was told by; empty if somebody has said it
	found   appdef.Problems
	roles   map[string]appdef.Place // by name
	groups  map[string]bool         // export groups in lower case
	tasks   int
}

func (l *loading) read(data []byte) *appdef.JSONNode {
	top := appdef.Place{File: l.options.Name}
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		l.found = append(l.found, top.Problem("nothing", "a job file", ""))
		return nil
	case len(data) > mostBytes:
		l.found = append(l.found, top.Problem(fmt.Sprintf("more than %d MiB", mostBytes>>20), "a job file", ""))
		return nil
	}
	read := appdef.ReadJSON
	if len(appdef.JSONKeys(data)) == 0 && protocolTwo.Match(data) {
		read, l.second = appdef.ReadYAML, true
	}
	root, found := read(l.options.Name, data)
	l.found = append(l.found, found...)
	switch {
	case root == nil:
		return nil
	case root.Kind != appdef.JSONObject:
		top.Line = root.Line
		l.found = append(l.found, top.Problem(string(root.Kind), "an object", ""))
		return nil
	}
	for _, sign := range secondSigns() {
		l.second = l.second || root.Member(sign) != nil
	}
	return root
}

// secondSigns are top-level keys that only the second protocol has.
func secondSigns() []string { return []string{"protocolVersion", "prerequisites", "deployments"} }

// jobKeys are the keys of a job file. One of them, tmp, belongs to SCM's web page: it is kept and has no effect.
func jobKeys() []string {
	return []string{
		"jobName", "image", "authFile", "dataDir", "outputDir", "codeDir", "virtualCluster", "taskRoles", "gpuType",
		"killAllOnCompletedTaskNumber", "retryCount", "jobEnvs", "extras", "tmp",
	}
}

func roleKeys() []string {
	return []string{
		"name", "taskNumber", "cpuNumber", "memoryMB", "shmMB", "gpuNumber", "portList", "command",
		"minFailedTaskCount", "minSucceededTaskCount", "storageGB",
	}
}

func portKeys() []string { return []string{"label", "beginAt", "portNumber"} }

// jobForm is the form of jobName in PAI 0.5 and in both manuals; PAI 0.14's server does not accept ~.
var jobForm = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

func (l *loading) job(c cursor) {
	c.knows(jobKeys())
	name := c.required("jobName")
	if name != "" && !jobForm.MatchString(name) {
		c.badAt("jobName", appdef.Quote(name), "a name of letters, digits and - . _ ~", "")
	}
	l.draft = appdef.NewDraft(dialect, name, c.at("jobName"))
	l.roles, l.groups = map[string]appdef.Place{}, map[string]bool{}
	l.versionOf(c)
	if l.version != appdef.PAI05 && strings.Contains(name, "~") {
		c.warnAt("jobName", appdef.Quote(name), "a name without ~", "PAI "+l.version+" itself refuses it")
	}
	l.draft.Set("", "muster.framework", "none", c.place()) // the job's name does not choose a framework
	l.draft.Set("", "muster.role", string(appdef.RoleWorker), c.place())
	l.limits(c)
	l.dirs(c)
	for _, role := range c.listOf("taskRoles") {
		l.role(role)
	}
	l.completion(c)
	l.undecided(c)
	if n, ok := c.whole("retryCount", appdef.RetryAlways, mostNumber); ok {
		l.draft.Set("", retryKey, strconv.Itoa(n), c.at("retryCount"))
	}
	l.jobEnvs(c)
	l.extras(c)
	l.keep(c, "tmp")
}

// limits reads the image and the settings that all tasks share.
func (l *loading) limits(c cursor) {
	if image := c.required("image"); image != "" {
		l.draft.Resource("", imageKey, image, c.at("image"))
	}
	if gpu := c.text("gpuType"); gpu != "" {
		l.draft.Resource("", gpuTypeKey, gpu, c.at("gpuType"))
	}
	cluster := c.text("virtualCluster")
	if cluster == "" {
		cluster = defaultCluster
	}
	l.draft.Set("", clusterKey, cluster, c.at("virtualCluster"))
}

const (
	imageKey       = "muster.image"
	authKey        = "muster.image.auth"
	gpuTypeKey     = "muster.gpu.type"
	gpuKey         = "yarn.io/gpu"
	storageKey     = "muster.storage"
	shmKey         = "muster.shm"
	commandKey     = "muster.command"
	versionKey     = "muster.pai.version"
	dataKey        = "muster.pai.data.dir"
	outputKey      = "muster.pai.output.dir"
	codeKey        = "muster.pai.code.dir"
	clusterKey     = "muster.pai.virtual.cluster"
	debugKey       = "muster.pai.debug"
	holdKey        = "muster.hold"
	retryKey       = "muster.retry"
	totalKey       = "muster.complete.total.minSucceeded"
	minFailedKey   = "muster.complete.minFailed"
	minSuccessKey  = "muster.complete.minSucceeded"
	exactKey       = "muster.ports.exact"
	envPrefix      = "muster.env."
	defaultCluster = "default"
)

// keep stores an ignored field, and reports it.
func (l *loading) keep(c cursor, name string) {
	m := c.Member(name)
	if m == nil {
		return
	}
	l.draft.App.Kept[keptPrefix+c.pointer+appdef.Pointer(name)] = m.Value()
	c.warnAt(name, "the key "+name, "to leave it out", "it is SCM's own: kept, without effect")
}

// keptPrefix begins the pointers of fields that an App keeps from its job file, whatever the file's name.
const keptPrefix = "job#"
