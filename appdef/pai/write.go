package pai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Write makes a job file of an App from any dialect. What no field can express, but a key of muster's, goes into
// extras, which PAI itself ignores. unsupported names, sorted, what the file cannot express, and for an App of
// another dialect also what only its extras express.
//
// If the App came from a job file, Load makes the same App of the result.
func Write(app appdef.App) (job []byte, unsupported []string) {
	w := &writing{app: &app, native: app.Dialect == dialect, unsupported: map[string]bool{}}
	w.file.Extras = map[string]any{}
	w.roles()
	w.job()
	w.extras()
	w.others()
	if app.Kept[contributorKept] != nil {
		w.cannot("the contributor: PAI's first protocol has none")
	}
	return w.encode(), slices.Sorted(maps.Keys(w.unsupported))
}

// jobFile is the layout of a job file, in the order of the manuals.
type jobFile struct {
	JobName        string         `json:"jobName"`
	Image          string         `json:"image"`
	AuthFile       string         `json:"authFile,omitempty"`
	DataDir        string         `json:"dataDir,omitempty"`
	OutputDir      string         `json:"outputDir,omitempty"`
	CodeDir        string         `json:"codeDir,omitempty"`
	VirtualCluster string         `json:"virtualCluster,omitempty"`
	TaskRoles      []roleFile     `json:"taskRoles"`
	GPUType        string         `json:"gpuType,omitempty"`
	KillAll        any            `json:"killAllOnCompletedTaskNumber,omitempty"`
	RetryCount     *int           `json:"retryCount,omitempty"`
	JobEnvs        map[string]any `json:"jobEnvs,omitempty"`
	Extras         map[string]any `json:"extras,omitempty"`
	Tmp            any            `json:"tmp,omitempty"`
}

type roleFile struct {
	Name         string          `json:"name"`
	TaskNumber   int             `json:"taskNumber"`
	CPUNumber    int             `json:"cpuNumber"`
	MemoryMB     int             `json:"memoryMB"`
	ShmMB        *int            `json:"shmMB,omitempty"`
	GPUNumber    int             `json:"gpuNumber"`
	StorageGB    *int            `json:"storageGB,omitempty"`
	MinFailed    json.RawMessage `json:"minFailedTaskCount,omitempty"`
	MinSucceeded json.RawMessage `json:"minSucceededTaskCount,omitempty"`
	PortList     []portFile      `json:"portList,omitempty"`
	Command      string          `json:"command"`
}

type portFile struct {
	Label      string `json:"label"`
	BeginAt    int    `json:"beginAt"`
	PortNumber int    `json:"portNumber"`
}

// writing is one Write.
type writing struct {
	app    *appdef.App
	native bool // the App came from a job file, or is written like one
	file   jobFile
	// components are the ones that become roles, each beside its role in the file.
	components  []*appdef.Component
	unsupported map[string]bool
}

func (w *writing) cannot(what string) { w.unsupported[what] = true }

func (w *writing) version() string {
	return cmp.Or(w.app.Settings.PAI.Version, appdef.PAI014)
}

// of is the value of a key at the App's own level, from either of its two sections.
func (w *writing) of(key string) (string, bool) { return valueOf(w.app.Config, w.app.Resources, key) }

func valueOf(config, resources map[string]string, key string) (string, bool) {
	if text, ok := config[key]; ok {
		return text, true
	}
	text, ok := resources[key]
	return text, ok
}

// unnamed matches characters that the name of a job or role cannot have.
var (
	unnamedJob  = regexp.MustCompile(`[^A-Za-z0-9._~-]+`)
	unnamedRole = regexp.MustCompile(`[^A-Za-z0-9._~]+`)
)

func (w *writing) job() {
	s, f := w.app.Settings, &w.file
	f.JobName = unnamedJob.ReplaceAllString(w.app.Name, "-")
	if f.JobName != w.app.Name {
		w.cannot("the name " + appdef.Quote(w.app.Name) + ": PAI's has letters, digits and - . _ ~")
	}
	if f.JobName == "" {
		w.cannot("a name: PAI demands one")
	}
	f.Image = w.image()
	if auth, ok := w.of(authKey); ok && strings.HasPrefix(auth, "file:") {
		f.AuthFile = written(strings.TrimPrefix(auth, "file:"))
	}
	f.DataDir, f.CodeDir = written(s.PAI.DataDir), written(s.PAI.CodeDir)
	if s.PAI.OutputDir != defaultOutput(w.app.Name, false) {
		f.OutputDir = written(s.PAI.OutputDir)
	}
	if s.PAI.VirtualCluster != defaultCluster {
		f.VirtualCluster = s.PAI.VirtualCluster
	}
	f.GPUType, _ = w.of(gpuTypeKey)
	if _, ok := w.of(retryKey); ok {
		f.RetryCount = &s.Retry
	}
	f.KillAll = w.app.Kept[keptPrefix+"/killAllOnCompletedTaskNumber"]
	if text, ok := w.of(totalKey); ok && w.version() == appdef.PAI05 {
		f.KillAll = json.Number(text)
	}
	f.Tmp = w.app.Kept[keptPrefix+"/tmp"]
	w.envs()
}

// image is the image of all roles, else the first one's; then the others' are in the extras.
func (w *writing) image() string {
	if image, ok := w.of(imageKey); ok {
		return image
	}
	for _, c := range w.components {
		if c.Limits.Image != "" {
			return c.Limits.Image
		}
	}
	w.cannot("the host's root: PAI demands an image")
	return appdef.HostRoot
}

func (w *writing) envs() {
	envs := map[string]any{}
	for key, value := range w.app.Config {
		if name, ok := strings.CutPrefix(key, envPrefix); ok && name != "inherit" && envForm.MatchString(name) {
			envs[name] = value
		}
	}
	if w.app.Settings.PAI.Debug {
		envs[isDebug] = true
		if text, ok := w.of(holdKey); ok && text != strconv.Itoa(reservation) {
			if n, err := appdef.ParseInt(text); err == nil && n <= mostReserved {
				envs[reserved] = n
			}
		}
	}
	if len(envs) > 0 {
		w.file.JobEnvs = envs
	}
}

// roles are the components that have instances, in the order of their ranks.
func (w *writing) roles() {
	order := make([]int, len(w.app.Components))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(w.app.Components[a].Priority, w.app.Components[b].Priority)
	})
	taken := map[string]bool{}
	w.file.TaskRoles = []roleFile{}
	for _, i := range order {
		c := &w.app.Components[i]
		if c.Instances == 0 || c.Category == "CLIENT" {
			w.cannot(c.Name + ": no instances: a task role has at least one task")
			continue
		}
		name := c.Name
		if !w.native || !dashedForm.MatchString(name) {
			name = unnamedRole.ReplaceAllString(name, "_")
		}
		for taken[name] {
			name += "_"
		}
		taken[name] = true
		if name != c.Name {
			w.cannot(c.Name + ": the name: PAI's has letters, digits and . _ ~")
		}
		w.components = append(w.components, c)
		w.file.TaskRoles = append(w.file.TaskRoles, w.role(c, i, name))
	}
}

func (w *writing) role(c *appdef.Component, index int, name string) roleFile {
	r := roleFile{
		Name: name, TaskNumber: c.Instances, GPUNumber: c.Limits.GPUs,
		Command: w.filled(c.Name, c.Settings.Command),
	}
	r.CPUNumber, r.MemoryMB = w.atLeast(c, "yarn.vcores", c.Limits.VCores, 1), w.atLeast(c, "yarn.memory",
		c.Limits.MemoryMB, leastMemory)
	shm := min(cmp.Or(c.Limits.ShmMB, max(r.MemoryMB/2, 1)), r.MemoryMB)
	if w.version() != appdef.PAI05 || shm != defaultShm {
		r.ShmMB = &shm
	}
	kept := func(field string) any {
		return w.app.Kept[keptPrefix+appdef.Pointer("taskRoles", strconv.Itoa(index), field)]
	}
	if _, ok := valueOf(c.Config, c.Resources, storageKey); ok {
		r.StorageGB = &c.Limits.StorageGB
	}
	if w.version() == appdef.PAI05 {
		r.MinFailed, r.MinSucceeded = w.keptCount(kept, "minFailedTaskCount", index), w.keptCount(kept,
			"minSucceededTaskCount", index)
	} else {
		r.MinFailed, r.MinSucceeded = w.count(c, minFailedKey, c.Settings.Complete.MinFailed), w.count(c, minSuccessKey,
			c.Settings.Complete.MinSucceeded)
	}
	if r.Command == "" {
		w.cannot(c.Name + ": no command, which PAI demands: what runs it is the package's script")
	} else if !w.native && (len(appdef.Placeholders(r.Command)) > 0 || strings.Contains(r.Command, "{{")) {
		w.cannot(c.Name + ": what muster fills into its command: " + appdef.Quote(r.Command))
	}
	r.PortList = w.ports(c)
	return r
}

// filled is a text with the values of a package's configuration filled in, because a job file has no place for them.
// What only the start knows stays, also ports.
func (w *writing) filled(component, text string) string {
	if w.native {
		return text
	}
	known := appdef.Resolver{App: w.app, Component: component}
	out, _ := appdef.Expand(text, func(name string) (string, bool) {
		if !strings.HasPrefix(name, "site.") && !strings.HasPrefix(name, "@//site/") {
			return "", false
		}
		value, ok := known.Lookup(name)
		return value, ok && !strings.Contains(value, "ALLOCATED_PORT}")
	})
	return out
}

// atLeast is a number of a role within PAI's limits.
func (w *writing) atLeast(c *appdef.Component, key string, n, least int) int {
	if n < least {
		text, _ := valueOf(c.Config, c.Resources, key)
		w.cannot(c.Name + ": " + key + "=" + text)
		return least
	}
	return n
}

// keptCount is a count that 0.5 ignores.
func (w *writing) keptCount(kept func(string) any, field string, index int) json.RawMessage {
	if _, ok := w.app.Kept[keptPrefix+appdef.Pointer("taskRoles", strconv.Itoa(index), field)]; !ok {
		return nil
	}
	return encoded(kept(field))
}

// count is minFailedTaskCount or minSucceededTaskCount: for a job file only if that has it, for others always.
func (w *writing) count(c *appdef.Component, key string, n *int) json.RawMessage {
	text, ok := valueOf(c.Config, c.Resources, key)
	global, everywhere := w.of(key)
	switch {
	case w.native && (!ok || everywhere && global == text):
		return nil
	case n == nil:
		return json.RawMessage("null")
	case *n > c.Instances:
		return nil // it is in the extras
	}
	return json.RawMessage(strconv.Itoa(*n))
}

// ports are a component's labels; http and ssh are always there.
func (w *writing) ports(c *appdef.Component) []portFile {
	labels := map[string]portFile{}
	for _, need := range w.app.PortNeeds(c.Name) {
		label := w.label(c, need.Key)
		p, more := labels[label]
		if !more {
			p = portFile{Label: label, BeginAt: need.Claims[0].Want}
		}
		p.PortNumber += len(need.Claims)
		labels[label] = p
	}
	for _, label := range []string{labelHTTP, labelSSH} {
		if p := labels[label]; p.BeginAt == 0 && p.PortNumber == 1 {
			delete(labels, label)
		}
	}
	return slices.SortedFunc(maps.Values(labels), func(a, b portFile) int { return cmp.Compare(a.Label, b.Label) })
}

// label is the label of a configuration value. In a job's own dictionary it is the key. Elsewhere it is http for the
// port of the component's address, and the key for others.
func (w *writing) label(c *appdef.Component, key string) string {
	if label, ok := strings.CutPrefix(key, portDict+"."); ok {
		label, _, _ = strings.Cut(label, "-")
		return label
	}
	if export, ok := w.app.Export(c.Settings.ClusterExport); ok && strings.Contains(export.Value, key) || ok &&
		strings.Contains(export.Value, strings.Replace(key, ".", "/", 1)) {
		return labelHTTP
	}
	return unnamedRole.ReplaceAllString(key, "_")
}

func (w *writing) encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(w.file); err != nil {
		panic("pai: encode a job: " + err.Error()) // texts, numbers and what was JSON before
	}
	return b.Bytes()
}

func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("pai: encode: " + err.Error())
	}
	return text
}
