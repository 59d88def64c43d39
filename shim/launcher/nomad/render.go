package nomad

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/render"
)

// Nomad's job as its API takes it (the types of package api of hashicorp/nomad 1.6); the HCL is written from the same
// value.
type (
	jobSpec struct {
		ID, Name, Type    string
		Region, Namespace string `json:",omitempty"`
		Priority          int
		Datacenters       []string
		Meta              map[string]string
		Constraints       []constraint
		TaskGroups        []group
	}
	group struct {
		Name             string
		Count            int
		Constraints      []constraint  `json:",omitempty"`
		Networks         []networkSpec `json:",omitempty"`
		RestartPolicy    restart
		ReschedulePolicy reschedule
		Tasks            []taskSpec
	}
	constraint struct {
		LTarget string `json:",omitempty"`
		RTarget string
		Operand string
	}
	networkSpec struct {
		Mode          string
		DynamicPorts  []port `json:",omitempty"`
		ReservedPorts []port `json:",omitempty"`
	}
	port struct {
		Label string
		Value int `json:",omitempty"`
	}
	restart struct {
		Attempts        int
		Interval, Delay time.Duration
		Mode            string
	}
	reschedule struct {
		Attempts                  int
		Interval, Delay, MaxDelay time.Duration
		DelayFunction             string
		Unlimited                 bool
	}
	taskSpec struct {
		Name, Driver  string
		User          string `json:",omitempty"`
		Config        config
		Env           map[string]string `json:",omitempty"`
		Artifacts     []artifact        `json:",omitempty"`
		KillTimeout   time.Duration
		KillSignal    string
		ShutdownDelay time.Duration
		Resources     resources
		LogConfig     logConfig
	}
	config struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	artifact struct {
		GetterSource, GetterMode, RelativeDest string
		GetterOptions                          map[string]string `json:",omitempty"`
	}
	resources struct {
		CPU      int `json:",omitempty"` // MHz
		Cores    int `json:",omitempty"`
		MemoryMB int
		Devices  []device `json:",omitempty"`
	}
	device struct {
		Name        string
		Count       int
		Constraints []constraint `json:",omitempty"`
	}
	logConfig struct{ MaxFiles, MaxFileSizeMB int }
)

// What Nomad's restarts are. It asks for no exit code: whatever is not 0 is tried again, here with the same index and
// ports, then on another host.
var (
	retriesHere      = restart{Attempts: 3, Interval: 10 * time.Minute, Delay: 5 * time.Second, Mode: "fail"}
	retriesElsewhere = reschedule{
		Attempts: 5, Interval: 24 * time.Hour, Delay: 10 * time.Second, DelayFunction: "exponential",
		MaxDelay: 5 * time.Minute,
	}
)

const (
	usualMemoryMB = 300  // MB, Nomad's own default
	coreMHz       = 1000 // what a vcore of YARN is taken for
)

// usualWindow is a client's max_kill_timeout.
const usualWindow = 30 * time.Second

// Jobs writes batch jobs of Nomad.
var Jobs = render.Launcher{
	Name: "nomad", Formats: []string{"hcl", "json"}, // json: as Nomad's API takes it
	Flags:       []string{"--namespace", "--region", "--datacenter", "--driver", "--user"},
	GrantsPorts: true, Window: killWindow,
	Write: func(w *render.Writer) ([]render.File, error) { return writer{w}.write() },
}

func killWindow(w *render.Writer, g render.Group, wanted time.Duration) time.Duration {
	given := w.Options.KillWindow
	if wanted > usualWindow || given > usualWindow {
		w.Cannot("%s: kill_timeout %s: Nomad's clients allow %s unless max_kill_timeout in their configuration says "+
			"more", g.Name, render.SpanText(max(wanted, given)), render.SpanText(usualWindow))
	}
	return cmp.Or(given, max(wanted, usualWindow))
}

type writer struct{ *render.Writer }

func (w writer) write() ([]render.File, error) {
	job, err := w.job()
	if err != nil {
		return nil, err
	}
	if w.Options.Format == "json" {
		text, err := json.MarshalIndent(struct{ Job jobSpec }{job}, "", "  ")
		return []render.File{{Name: w.Options.AppID + ".json", Text: string(text) + "\n"}}, err
	}
	return []render.File{{Name: w.Options.AppID + ".nomad.hcl", Text: w.hcl(job)}}, nil
}

func (w writer) job() (jobSpec, error) {
	if w.Options.Driver == "" {
		w.Options.Driver = "raw_exec"
	}
	if strings.Contains(w.Options.TokenFile, "${") {
		return jobSpec{}, fmt.Errorf("token file %s: Nomad would fill in ${…}", w.Options.TokenFile)
	}
	if w.Options.Driver != "raw_exec" && w.Options.Driver != "exec" {
		return jobSpec{}, fmt.Errorf("driver %s: want raw_exec or exec", appdef.Quote(w.Options.Driver))
	}
	priority, err := priorityOf(w.Options.Priority)
	if err != nil {
		return jobSpec{}, err
	}
	job := jobSpec{
		ID: w.Options.AppID, Name: w.Options.AppID, Type: "batch",
		Region: w.Options.Region, Namespace: w.Options.Namespace, Priority: priority,
		Datacenters: w.Options.Datacenters,
		Meta:        map[string]string{"muster_app": w.Options.AppID, "muster_run": w.Options.Run},
		Constraints: []constraint{{"${attr.kernel.name}", "linux", "="}}, TaskGroups: []group{},
	}
	if len(job.Datacenters) == 0 {
		job.Datacenters = []string{"*"}
	}
	for _, g := range w.Groups {
		one, err := w.group(g)
		if err != nil {
			return job, err
		}
		job.TaskGroups = append(job.TaskGroups, one)
	}
	w.loseAll()
	return job, nil
}

func (w writer) loseAll() {
	w.Cannot("exit codes: Nomad starts an agent again after any but 0, %d times here and %d times elsewhere; one "+
		"that is started after the verdict ends with it at once", retriesHere.Attempts, retriesElsewhere.Attempts)
	if !slices.Contains(w.Options.AgentFlags, "--work-dir") {
		w.Cannot("folders: another allocation begins with empty ones; checkpoints that are to outlive one belong " +
			"into a store (muster.checkpoint.sync), or --work-dir into a folder that stays")
	}
	if w.Options.Queue != "" {
		w.Cannot("queue %s: Nomad has none; namespaces and node pools come near", w.Options.Queue)
	}
	if w.Options.TimeLimit > 0 {
		w.Cannot("time limit %s: Nomad has none; muster.timeout is the app's own", w.Options.TimeLimit)
	}
	if w.Options.Driver == "exec" {
		w.Cannot("driver exec: what the programs need must be in the chroot_env of the clients' configuration, " +
			"Python above all")
	}
}

// priorityOf reads a number from 1 to 100, or a word of HBox's.
func priorityOf(text string) (int, error) {
	if text == "" {
		return 50, nil
	}
	words := map[string]int{"DEFAULT": 50, "VERY_LOW": 10, "LOW": 30, "NORMAL": 50, "HIGH": 70, "VERY_HIGH": 90}
	if n, ok := words[strings.ToUpper(text)]; ok {
		return n, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 100 {
		return 0, fmt.Errorf("priority %s: want 1 to 100, or DEFAULT, VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH",
			appdef.Quote(text))
	}
	return n, nil
}

func (w writer) group(g render.Group) (group, error) {
	out := group{Name: g.Name, Count: g.Count, RestartPolicy: retriesHere, ReschedulePolicy: retriesElsewhere}
	if g.Spread {
		out.Constraints = append(out.Constraints, constraint{RTarget: "true", Operand: "distinct_hosts"})
	}
	if g.Label != "" {
		out.Constraints = append(out.Constraints, constraint{"${node.class}", g.Label, "="})
	}
	network := networkSpec{Mode: "host"}
	for _, p := range g.Ports {
		if p.Fixed > 0 {
			network.ReservedPorts = append(network.ReservedPorts, port{p.Label, p.Fixed})
		} else {
			network.DynamicPorts = append(network.DynamicPorts, port{Label: p.Label})
		}
	}
	if len(g.Ports) > 0 {
		out.Networks = []networkSpec{network}
	}
	task, err := w.task(g)
	out.Tasks = []taskSpec{task}
	return out, err
}

func (w writer) task(g render.Group) (taskSpec, error) {
	task := taskSpec{
		Name: "muster", Driver: w.Options.Driver, User: w.Options.User,
		Config:      w.start(g),
		KillTimeout: g.Window, KillSignal: "SIGINT", LogConfig: logConfig{MaxFiles: 3, MaxFileSizeMB: 10},
	}
	if w.Options.TokenFile != "" {
		task.Env = map[string]string{"CONSUL_HTTP_TOKEN_FILE": w.Options.TokenFile}
	}
	if render.Remote(w.Options.Binary) {
		if strings.HasPrefix(w.Options.Binary, "hdfs:") {
			return task, errors.New("binary on hdfs: Nomad's clients fetch from http, https, s3, gcs and git; give " +
				"a path on the hosts or such a URL")
		}
		if err := w.FetchedBinary(); err != nil {
			return task, err
		}
		task.Artifacts = []artifact{{
			w.Options.Binary, "file",
			"local/" + render.BinaryName,
			map[string]string{"checksum": "sha256:" + w.Options.BinarySHA256},
		}}
		if w.Options.Helper != "" {
			task.Artifacts = append(task.Artifacts, artifact{
				w.Options.Helper, "file", "local/" + render.HelperName,
				map[string]string{"checksum": "sha256:" + w.Options.HelperSHA256},
			})
		}
	}
	for _, word := range append([]string{w.Options.Binary}, g.Command...) {
		if strings.HasPrefix(word, "\ufeff") || cty.NormalizeString(word) != word {
			return task, fmt.Errorf("%s: Nomad reads composed characters (NFC) without a byte order mark, and "+
				"would change or refuse this", appdef.Quote(word))
		}
	}
	task.Resources = w.resources(g)
	return task, nil
}

// ownFolder makes the folder of the program's copy. Nomad's task folder is open to all users of the host, who could put
// another in the place of a folder there: it is taken from them, as the agent does with its work folder. Where it is
// not the agent's to take, the copy lies in /tmp; TMPDIR is in the task folder.
const ownFolder = `{ { [ "$(id -u)" != 0 ] || chown 0:0 "$PWD"; } && chmod go-w "$PWD" 2>/dev/null && ` +
	`d=$PWD/.muster-bin && rm -rf "$d" && mkdir -m 700 "$d" || d=$(TMPDIR=/tmp mktemp -d); }`

// start is what a task runs. Nomad's clients check what they fetch; what lies on the host is checked at the start.
func (w writer) start(g render.Group) config {
	words := []string{w.Local("local")}
	if !render.Remote(w.Options.Binary) {
		words = w.StartIn(words[0], ownFolder)
	}
	return config{Command: driverText.Replace(words[0]), Args: driverTexts(slices.Concat(words[1:], g.Command))}
}

// driverText keeps `${HOME}` and `%{if}` of a command as they are: Nomad's clients read what a driver is told as a
// template of HCL's, whatever form the job was written in.
var driverText = strings.NewReplacer("${", "$${", "%{", "%%{")

func driverTexts(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = driverText.Replace(word)
	}
	return out
}

func (w writer) resources(g render.Group) resources {
	r := resources{MemoryMB: g.MemoryMB}
	if g.MemoryMB == 0 {
		r.MemoryMB = usualMemoryMB
	}
	switch {
	case g.VCores == appdef.Max:
		r.CPU = coreMHz
		w.Cannot("%s: vcores max: Nomad grants what it is asked for, %d MHz here", g.Name, coreMHz)
	case g.Hard && g.VCores > 0:
		r.Cores = g.VCores
	default:
		r.CPU = max(g.VCores, 1) * coreMHz
	}
	if g.GPUs > 0 {
		d := device{Name: "nvidia/gpu", Count: g.GPUs}
		if g.GPUType != "" { // as the agent compares it: case and dashes do not count
			words := strings.FieldsFunc(g.GPUType, func(r rune) bool { return r == ' ' || r == '-' || r == '_' })
			for i := range words {
				words[i] = regexp.QuoteMeta(words[i])
			}
			d.Constraints = []constraint{{"${device.model}", "(?i)" + strings.Join(words, "[ _-]*"), "regexp"}}
		}
		r.Devices = []device{d}
	}
	return r
}
