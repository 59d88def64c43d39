package seeds

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
)

// PAI's words for where a job and a task are, and the exit code of a job that its user has stopped.
const (
	paiWaiting   = "WAITING"
	paiRunning   = "RUNNING"
	paiSucceeded = "SUCCEEDED"
	paiStopped   = "STOPPED"
	paiFailed    = "FAILED"

	stoppedByUser = -7351
)

// paiJob is what PAI's list and its page of one job have in common.
type paiJob struct {
	Name           string     `json:"name"`
	Username       string     `json:"username"`
	State          string     `json:"state"`
	SubState       string     `json:"subState"`
	ExecutionType  string     `json:"executionType"`
	Retries        int        `json:"retries"`
	RetryDetails   paiRetries `json:"retryDetails"`
	CreatedTime    *int64     `json:"createdTime"` // ms
	CompletedTime  *int64     `json:"completedTime"`
	AppExitCode    *int       `json:"appExitCode"`
	VirtualCluster string     `json:"virtualCluster"`
}

// paiRetries counts restarts of the whole job by who caused them. Muster does not tell these apart.
type paiRetries struct {
	User     int `json:"user"`
	Platform int `json:"platform"`
	Resource int `json:"resource"`
}

// paiSummary is one job in the answer of GET /api/v1/jobs.
type paiSummary struct {
	paiJob
	TotalGPUNumber      int `json:"totalGpuNumber"`
	TotalTaskNumber     int `json:"totalTaskNumber"`
	TotalTaskRoleNumber int `json:"totalTaskRoleNumber"`
}

// paiDetail is the answer of GET /api/v1/jobs/NAME.
type paiDetail struct {
	JobStatus paiStatus          `json:"jobStatus"`
	TaskRoles map[string]paiRole `json:"taskRoles"`
}

type paiStatus struct {
	paiJob
	AppID              string      `json:"appId"`
	AppProgress        *float64    `json:"appProgress"`
	AppTrackingURL     string      `json:"appTrackingUrl"`
	AppLaunchedTime    *int64      `json:"appLaunchedTime"`
	AppCompletedTime   *int64      `json:"appCompletedTime"`
	AppExitSpec        *paiSpec    `json:"appExitSpec"`
	AppExitDiagnostics *string     `json:"appExitDiagnostics"`
	AppExitMessages    paiMessages `json:"appExitMessages"`
	TriggerMessage     *string     `json:"appExitTriggerMessage"`
	TriggerRole        *string     `json:"appExitTriggerTaskRoleName"`
	TriggerIndex       *int        `json:"appExitTriggerTaskIndex"`
	AppExitType        *string     `json:"appExitType"`
}

// paiSpec is the row of PAI's exit table.
type paiSpec struct {
	Code     int    `json:"code"`
	Phrase   string `json:"phrase"`
	Type     string `json:"type"`
	Reaction string `json:"reaction"`
}

type paiMessages struct {
	Container *string `json:"container"` // the end of what the failed process wrote
	Runtime   *string `json:"runtime"`
	Launcher  *string `json:"launcher"`
}

type paiRole struct {
	Status struct {
		Name string `json:"name"`
	} `json:"taskRoleStatus"`
	Tasks []paiTask `json:"taskStatuses"`
}

type paiTask struct {
	Index     int               `json:"taskIndex"`
	State     string            `json:"taskState"`
	Container string            `json:"containerId"`
	IP        string            `json:"containerIp"`
	Ports     map[string]string `json:"containerPorts"`
	GPUs      *int              `json:"containerGpus"` // a mask of device numbers, which are not known here: null
	Log       string            `json:"containerLog"`
	ExitCode  *int              `json:"containerExitCode"`
}

// paiSSH is the answer of GET /api/v1/jobs/NAME/ssh.
type paiSSH struct {
	Containers []paiLogin `json:"containers"`
	KeyPair    paiKeyPair `json:"keyPair"`
}

type paiLogin struct {
	ID   string `json:"id"`
	IP   string `json:"sshIp"`
	Port string `json:"sshPort"`
}

// paiKeyPair is where PAI keeps a job's keys: a folder of HDFS. Muster puts none there, so that it is empty.
type paiKeyPair struct {
	Folder  string `json:"folderPath"`
	Public  string `json:"publicKeyFileName"`
	Private string `json:"privateKeyFileName"`
	Link    string `json:"privateKeyDirectDownloadLink"`
}

func (a App) job() paiJob {
	j := paiJob{
		Name: a.facts.ID, Username: a.user(), ExecutionType: "START", Retries: max(0, a.view.Generation-1),
		CreatedTime: millis(a.view.Started), VirtualCluster: cmp.Or(a.def.Settings.PAI.VirtualCluster, "default"),
	}
	j.RetryDetails.User = j.Retries
	j.State, j.SubState = paiWaiting, "APPLICATION_WAITING"
	switch a.view.Phase {
	case "running", "stopping":
		j.State, j.SubState = paiRunning, "APPLICATION_RUNNING"
	case "interrupted": // it goes on when it is launched again
		j.SubState = "FRAMEWORK_WAITING"
	}
	if d := a.view.Directive; d != nil && d.Act == registry.ActStop && a.view.Verdict != nil &&
		a.view.Verdict.Outcome == registry.Stopped {
		j.ExecutionType = "STOP"
	}
	if a.view.Outcome == nil || *a.view.Outcome == "interrupted" {
		return j
	}
	j.SubState = "FRAMEWORK_COMPLETED"
	if v := a.view.Verdict; v != nil {
		j.CompletedTime = millis(&v.At)
	}
	switch registry.Outcome(*a.view.Outcome) {
	case registry.Succeeded:
		j.State, j.AppExitCode = paiSucceeded, new(0)
	case registry.Stopped:
		j.State, j.AppExitCode = paiStopped, new(stoppedByUser)
	case registry.Failed:
		j.State = paiFailed
		if row, ok := a.first(); ok && row.PAI != nil {
			j.AppExitCode = &row.PAI.Code
		} else if ok {
			j.AppExitCode = row.Exit
		}
	}
	return j
}

// first is the instance whose failure decided.
func (a App) first() (row status.Instance, ok bool) {
	if a.view.Verdict == nil || a.view.Verdict.First == "" {
		return status.Instance{}, false
	}
	return a.Instance(a.view.Verdict.First)
}

func millis(t *time.Time) *int64 {
	if t == nil || t.IsZero() {
		return nil
	}
	return new(t.UnixMilli())
}

// PAIList are jobs as PAI lists them, the newest first; user: only those of one.
func PAIList(all []App, user string) any { return paiList(all, user) }

func paiList(all []App, user string) []paiSummary {
	jobs := []paiSummary{}
	for _, a := range all {
		s := paiSummary{paiJob: a.job(), TotalTaskRoleNumber: len(a.def.Components)}
		for _, c := range a.def.Components {
			s.TotalTaskNumber += c.Instances
			s.TotalGPUNumber += c.Instances * max(c.Limits.GPUs, 0)
		}
		if !a.Defined() {
			s.TotalTaskRoleNumber, s.TotalTaskNumber = len(a.roles("")), len(a.view.Instances)
		}
		if user == "" || user == s.Username {
			jobs = append(jobs, s)
		}
	}
	slices.SortFunc(jobs, func(x, y paiSummary) int {
		return cmp.Or(cmp.Compare(number(y.CreatedTime), number(x.CreatedTime)), cmp.Compare(x.Name, y.Name))
	})
	return jobs
}

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// PAI is the job as PAI's page shows it. base is the URL of this server.
func (a App) PAI(base string) any {
	s := paiStatus{
		paiJob: a.job(), AppID: a.view.Run, AppTrackingURL: base + "/apps/" + a.facts.ID,
		AppLaunchedTime: millis(a.view.Started),
	}
	s.AppCompletedTime = s.CompletedTime
	sum, told := 0.0, 0
	for _, row := range a.view.Instances {
		if row.Progress != nil {
			sum, told = sum+*row.Progress, told+1
		}
	}
	if told > 0 {
		s.AppProgress = new(sum / float64(told))
	}
	if v := a.view.Verdict; v != nil {
		s.TriggerMessage, s.AppExitMessages.Launcher = &v.Cause, &v.Cause
		s.AppExitDiagnostics = &v.Cause
	}
	if row, ok := a.first(); ok {
		s.TriggerRole, s.TriggerIndex = &row.Component, &row.Index
		if row.ExitInfo != nil && row.ExitInfo.LastOutput != "" {
			s.AppExitMessages.Container = &row.ExitInfo.LastOutput
		}
		if p := row.PAI; p != nil && s.State == paiFailed {
			s.AppExitSpec = &paiSpec{Code: p.Code, Phrase: p.Phrase, Type: p.Type, Reaction: p.Reaction}
			s.AppExitType = &p.Type
		}
	}
	return paiDetail{JobStatus: s, TaskRoles: a.roles(base)}
}

func (a App) roles(base string) map[string]paiRole {
	roles := map[string]paiRole{}
	for _, row := range a.view.Instances {
		r := roles[row.Component]
		r.Status.Name = row.Component
		r.Tasks = append(r.Tasks, a.task(row, base))
		roles[row.Component] = r
	}
	return roles
}

func (a App) task(row status.Instance, base string) paiTask {
	t := paiTask{
		Index: row.Index, State: paiWaiting, Container: a.container(row), IP: row.Host, Ports: paiPorts(row.Ports),
		Log: base + "/api/v1/apps/" + a.facts.ID + "/logs/" + row.Instance + "/stdout", ExitCode: row.Exit,
	}
	switch a.endOf(row) {
	case succeeded:
		t.State = paiSucceeded
	case failed:
		t.State = paiFailed
	case stopped:
		t.State = paiStopped
	case goesOn:
		t.ExitCode = nil // of the attempt before
		if row.Phase == "running" || row.Phase == "stopping" {
			t.State = paiRunning
		}
	}
	return t
}

// paiPorts are an instance's ports by PAI's labels, several of one with commas: port.http, port.http-2.
func paiPorts(ports map[string]int) map[string]string {
	names := map[string][]string{}
	for name := range ports {
		label, ofPAI := strings.CutPrefix(name, "port.")
		if ofPAI { // no label has a dash
			label, _, _ = strings.Cut(label, "-")
		}
		names[label] = append(names[label], name)
	}
	out := map[string]string{}
	for label, all := range names {
		// by length, then by letters, so that the numbers at the end rise
		slices.SortFunc(all, func(x, y string) int { return cmp.Or(len(x)-len(y), cmp.Compare(x, y)) })
		var list []string
		for _, name := range all {
			list = append(list, strconv.Itoa(ports[name]))
		}
		out[label] = strings.Join(list, ",")
	}
	return out
}

// PAIConfig is the job file; ok is false where no registry has the definition.
func (a App) PAIConfig() (job []byte, ok bool) {
	if !a.Defined() {
		return nil, false
	}
	job, _ = pai.Write(a.def)
	return job, true
}

// PAISSH is how the job's containers are logged in to; ok is false where none has a port for that.
func (a App) PAISSH() (answer any, ok bool) {
	s := paiSSH{Containers: []paiLogin{}}
	for _, row := range a.view.Instances {
		if port := paiPorts(row.Ports)["ssh"]; port != "" && a.endOf(row) == goesOn {
			s.Containers = append(s.Containers, paiLogin{ID: a.container(row), IP: row.Host, Port: port})
		}
	}
	return s, len(s.Containers) > 0
}
