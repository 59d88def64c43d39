package render

import (
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
)

// Nomad's job as its API takes it (the types of package api of hashicorp/nomad 1.6); the HCL is written from the same value.
type (
	nomadJob struct {
		ID, Name, Type    string
		Region, Namespace string `json:",omitempty"`
		Priority          int
		Datacenters       []string
		Meta              map[string]string
		Constraints       []nomadConstraint
		TaskGroups        []nomadGroup
	}
	nomadGroup struct {
		Name             string
		Count            int
		Constraints      []nomadConstraint `json:",omitempty"`
		Networks         []nomadNetwork    `json:",omitempty"`
		RestartPolicy    nomadRestart
		ReschedulePolicy nomadReschedule
		Tasks            []nomadTask
	}
	nomadConstraint struct {
		LTarget string `json:",omitempty"`
		RTarget string
		Operand string
	}
	nomadNetwork struct {
		Mode          string
		DynamicPorts  []nomadPort `json:",omitempty"`
		ReservedPorts []nomadPort `json:",omitempty"`
	}
	nomadPort struct {
		Label string
		Value int `json:",omitempty"`
	}
	nomadRestart struct {
		Attempts        int
		Interval, Delay time.Duration
		Mode            string
	}
	nomadReschedule struct {
		Attempts                  int
		Interval, Delay, MaxDelay time.Duration
		DelayFunction             string
		Unlimited                 bool
	}
	nomadTask struct {
		Name, Driver  string
		User          string `json:",omitempty"`
		Config        nomadConfig
		Env           map[string]string `json:",omitempty"`
		Artifacts     []nomadArtifact   `json:",omitempty"`
		KillTimeout   time.Duration
		KillSignal    string
		ShutdownDelay time.Duration
		Resources     nomadResources
		LogConfig     nomadLog
	}
	nomadConfig struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	nomadArtifact struct {
		GetterSource, GetterMode, RelativeDest string
		GetterOptions                          map[string]string `json:",omitempty"`
	}
	nomadResources struct {
		CPU      int `json:",omitempty"` // MHz
		Cores    int `json:",omitempty"`
		MemoryMB int
		Devices  []nomadDevice `json:",omitempty"`
	}
	nomadDevice struct {
		Name        string
		Count       int
		Constraints []nomadConstraint `json:",omitempty"`
	}
	nomadLog struct{ MaxFiles, MaxFileSizeMB int }
)

// What Nomad's restarts are. It asks for no exit code: whatever is not 0 is tried again, here with the same index and ports,
// then on another host.
var (
	nomadHere      = nomadRestart{Attempts: 3, Interval: 10 * time.Minute, Delay: 5 * time.Second, Mode: "fail"}
	nomadElsewhere = nomadReschedule{
		Attempts: 5, Interval: 24 * time.Hour, Delay: 10 * time.Second, DelayFunction: "exponential", MaxDelay: 5 * time.Minute,
	}
)

const (
	nomadMemory = 300  // MB, Nomad's own default
	nomadMHz    = 1000 // what a vcore of YARN is taken for
)

func (w *writer) nomad() ([]File, error) {
	job, err := w.nomadJob()
	if err != nil {
		return nil, err
	}
	if w.o.Format == "json" {
		text, err := json.MarshalIndent(struct{ Job nomadJob }{job}, "", "  ")
		return []File{{w.o.AppID + ".json", string(text) + "\n"}}, err
	}
	return []File{{w.o.AppID + ".nomad.hcl", w.nomadHCL(job)}}, nil
}

func (w *writer) nomadJob() (nomadJob, error) {
	if w.o.Driver == "" {
		w.o.Driver = "raw_exec"
	}
	if strings.Contains(w.o.TokenFile, "${") {
		return nomadJob{}, fmt.Errorf("token file %s: Nomad would fill in ${…}", w.o.TokenFile)
	}
	if w.o.Driver != "raw_exec" && w.o.Driver != "exec" {
		return nomadJob{}, fmt.Errorf("driver %s: want raw_exec or exec", appdef.Quote(w.o.Driver))
	}
	priority, err := nomadPriority(w.o.Priority)
	if err != nil {
		return nomadJob{}, err
	}
	job := nomadJob{
		ID: w.o.AppID, Name: w.o.AppID, Type: "batch", Region: w.o.Region, Namespace: w.o.Namespace, Priority: priority,
		Datacenters: w.o.Datacenters, Meta: map[string]string{"muster_app": w.o.AppID, "muster_run": w.o.Run},
		Constraints: []nomadConstraint{{"${attr.kernel.name}", "linux", "="}}, TaskGroups: []nomadGroup{},
	}
	if len(job.Datacenters) == 0 {
		job.Datacenters = []string{"*"}
	}
	for _, g := range w.groups {
		one, err := w.nomadGroup(g)
		if err != nil {
			return job, err
		}
		job.TaskGroups = append(job.TaskGroups, one)
	}
	w.loseOfNomad()
	return job, nil
}

func (w *writer) loseOfNomad() {
	w.lose("exit codes: Nomad starts an agent again after any but 0, %d times here and %d times elsewhere; one that is started after the verdict ends with it at once", nomadHere.Attempts, nomadElsewhere.Attempts)
	if !slices.Contains(w.o.AgentFlags, "--work-dir") {
		w.lose("folders: another allocation begins with empty ones; checkpoints that are to outlive one belong into a store (muster.checkpoint.sync), or --work-dir into a folder that stays")
	}
	if w.o.Queue != "" {
		w.lose("queue %s: Nomad has none; namespaces and node pools come near", w.o.Queue)
	}
	if w.o.TimeLimit > 0 {
		w.lose("time limit %s: Nomad has none; muster.timeout is the app's own", w.o.TimeLimit)
	}
	if w.o.Driver == "exec" {
		w.lose("driver exec: what the programs need must be in the chroot_env of the clients' configuration, Python above all")
	}
}

// nomadPriority reads a number from 1 to 100, or a word of HBox's.
func nomadPriority(text string) (int, error) {
	if text == "" {
		return 50, nil
	}
	if n, ok := map[string]int{"DEFAULT": 50, "VERY_LOW": 10, "LOW": 30, "NORMAL": 50, "HIGH": 70, "VERY_HIGH": 90}[strings.ToUpper(text)]; ok {
		return n, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 100 {
		return 0, fmt.Errorf("priority %s: want 1 to 100, or DEFAULT, VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH", appdef.Quote(text))
	}
	return n, nil
}

func (w *writer) nomadGroup(g group) (nomadGroup, error) {
	out := nomadGroup{Name: g.name, Count: g.count, RestartPolicy: nomadHere, ReschedulePolicy: nomadElsewhere}
	if g.spread {
		out.Constraints = append(out.Constraints, nomadConstraint{RTarget: "true", Operand: "distinct_hosts"})
	}
	if g.label != "" {
		out.Constraints = append(out.Constraints, nomadConstraint{"${node.class}", g.label, "="})
	}
	network := nomadNetwork{Mode: "host"}
	for _, p := range g.ports {
		if p.fixed > 0 {
			network.ReservedPorts = append(network.ReservedPorts, nomadPort{p.label, p.fixed})
		} else {
			network.DynamicPorts = append(network.DynamicPorts, nomadPort{Label: p.label})
		}
	}
	if len(g.ports) > 0 {
		out.Networks = []nomadNetwork{network}
	}
	task, err := w.nomadTask(g)
	out.Tasks = []nomadTask{task}
	return out, err
}

func (w *writer) nomadTask(g group) (nomadTask, error) {
	task := nomadTask{
		Name: "muster", Driver: w.o.Driver, User: w.o.User,
		Config:      nomadConfig{Command: driverText.Replace(w.local("local")), Args: driverTexts(g.command)},
		KillTimeout: g.window, KillSignal: "SIGINT", LogConfig: nomadLog{MaxFiles: 3, MaxFileSizeMB: 10},
	}
	if w.o.TokenFile != "" {
		task.Env = map[string]string{"CONSUL_HTTP_TOKEN_FILE": w.o.TokenFile}
	}
	if remote(w.o.Binary) {
		if strings.HasPrefix(w.o.Binary, "hdfs:") {
			return task, errors.New("binary on hdfs: Nomad's clients fetch from http, https, s3, gcs and git; give a path on the hosts or such a URL")
		}
		task.Artifacts = []nomadArtifact{{w.o.Binary, "file", "local/" + binaryName, checksum(w.o.Binary)}}
	}
	for _, word := range append([]string{w.o.Binary}, g.command...) {
		if strings.HasPrefix(word, "\ufeff") || cty.NormalizeString(word) != word {
			return task, fmt.Errorf("%s: Nomad reads composed characters (NFC) without a byte order mark, and would change or refuse this", appdef.Quote(word))
		}
	}
	task.Resources = w.nomadResources(g)
	return task, nil
}

// inStore is the name of a file in a store of muster submit: its digest is what the launcher is to find.
var inStore = regexp.MustCompile(`/([0-9a-f]{64})-[^/]+$`)

// checksum has Nomad's clients check what they fetch, where its name says what it is to be.
func checksum(binary string) map[string]string {
	if m := inStore.FindStringSubmatch(binary); m != nil {
		return map[string]string{"checksum": "sha256:" + m[1]}
	}
	return nil
}

// driverText keeps `${HOME}` and `%{if}` of a command as they are: Nomad's clients read what a driver is told as a template of
// HCL's, whatever form the job was written in.
var driverText = strings.NewReplacer("${", "$${", "%{", "%%{")

func driverTexts(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = driverText.Replace(word)
	}
	return out
}

func (w *writer) nomadResources(g group) nomadResources {
	r := nomadResources{MemoryMB: g.memory}
	if g.memory == 0 {
		r.MemoryMB = nomadMemory
	}
	switch {
	case g.vcores == appdef.Max:
		r.CPU = nomadMHz
		w.lose("%s: vcores max: Nomad grants what it is asked for, %d MHz here", g.name, nomadMHz)
	case g.hard && g.vcores > 0:
		r.Cores = g.vcores
	default:
		r.CPU = max(g.vcores, 1) * nomadMHz
	}
	if g.gpus > 0 {
		d := nomadDevice{Name: "nvidia/gpu", Count: g.gpus}
		if g.gpuType != "" { // as the agent compares it: case and dashes do not count
			words := strings.FieldsFunc(g.gpuType, func(r rune) bool { return r == ' ' || r == '-' || r == '_' })
			for i := range words {
				words[i] = regexp.QuoteMeta(words[i])
			}
			d.Constraints = []nomadConstraint{{"${device.model}", "(?i)" + strings.Join(words, "[ _-]*"), "regexp"}}
		}
		r.Devices = []nomadDevice{d}
	}
	return r
}
