package seeds

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/status"
)

// hboxApp is the answer of HBox's /app.
type hboxApp struct {
	AppID        string `json:"appId"`
	AppType      string `json:"appType"`
	AppUser      string `json:"appUser"`
	WorkerNum    int    `json:"workerNum"`
	WorkerMem    string `json:"workerMem"` // "2.0 GB"
	WorkerVCores int    `json:"workerVCores"`
	WorkerGCores int    `json:"workerGCores"`
	PSNum        int    `json:"psNum"`
	PSMem        string `json:"psMem"`
	PSVCores     int    `json:"psVCores"`
	PSGCores     int    `json:"psGCores"`
}

// hboxContainer is one container as HBox lists it.
type hboxContainer struct {
	ID        string `json:"cid"`
	StartTime string `json:"startTime"` // as Java prints it; "": not known
	Status    string `json:"status"`
	GPU       string `json:"gpu"` // "" always, as HBox answers
}

// hboxContainers is the answer of HBox's /containers.
type hboxContainers struct {
	All []hboxContainer `json:"containerInfos"`
}

// HBoxOutputs is the answer of HBox's /app/savemodel: where the outputs were saved.
type HBoxOutputs struct {
	To []string `json:"outputInfos"`
}

// HBox says what was asked for: the parameter servers, and all that HBox counts as workers.
func (a App) HBox() any {
	h := hboxApp{
		AppID: a.facts.ID, AppType: a.def.Settings.HBox.Type, AppUser: a.user(), WorkerMem: gigabytes(0),
		PSMem: gigabytes(0),
	}
	if h.AppType == "" {
		h.AppType = strings.ToUpper(a.def.Settings.Framework)
	}
	for _, c := range a.def.Components {
		limits := c.Limits
		switch c.Settings.Role {
		case appdef.RolePS:
			h.PSNum += c.Instances
			h.PSMem, h.PSVCores, h.PSGCores = gigabytes(limits.MemoryMB), limits.VCores, limits.GPUs
		case appdef.RoleWorker, appdef.RoleChief, appdef.RoleEvaluator:
			if h.WorkerNum == 0 || c.Settings.Role == appdef.RoleWorker { // of several the workers' own limits
				h.WorkerMem, h.WorkerVCores, h.WorkerGCores = gigabytes(limits.MemoryMB), limits.VCores, limits.GPUs
			}
			h.WorkerNum += c.Instances
		case appdef.RoleService: // HBox has none
		}
	}
	return h
}

// gigabytes prints as HBox does, whose number has at least one digit after the point.
func gigabytes(mb int) string {
	text := strconv.FormatFloat(float64(max(mb, 0))/1024, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text + " GB"
}

// HBoxContainers lists the containers: parameter servers, then the others. There is no application master.
func (a App) HBoxContainers() any {
	list := hboxContainers{All: []hboxContainer{}}
	for _, ps := range []bool{true, false} {
		for _, row := range a.view.Instances {
			if row.Phase != "missing" && (row.Role == string(appdef.RolePS)) == ps {
				list.All = append(list.All, a.hboxContainer(row))
			}
		}
	}
	return list
}

// HBoxContainer is one of them.
func (a App) HBoxContainer(row status.Instance) any { return a.hboxContainer(row) }

func (a App) hboxContainer(row status.Instance) hboxContainer {
	c := hboxContainer{ID: a.container(row), Status: "INITIALIZING"}
	switch a.endOf(row) {
	case succeeded:
		c.Status = "SUCCEEDED"
	case failed:
		c.Status = "FAILED"
	case stopped:
		c.Status = "FINISHED"
	case goesOn:
		if row.Phase == "running" || row.Phase == "stopping" {
			c.Status, c.StartTime = "RUNNING", javaDate(row.Since)
		}
	}
	return c
}

// Evaluator is the container of HBox's evaluator; "": there is none.
func (a App) Evaluator() string {
	for _, row := range a.view.Instances {
		if row.Role == string(appdef.RoleEvaluator) && row.Phase != "missing" {
			return a.container(row)
		}
	}
	return ""
}

// FirstRunning is the instance that a signal goes to: HBox gives it to one container, the first that asks.
func (a App) FirstRunning() (instance string, ok bool) {
	for _, role := range []appdef.Role{appdef.RoleChief, appdef.RoleWorker, appdef.RolePS, appdef.RoleEvaluator} {
		for _, row := range a.view.Instances {
			if row.Role == string(role) && row.Phase == "running" {
				return row.Instance, true
			}
		}
	}
	return "", false
}

// BoardURL is where the board answers; "": there is none, or it has not said so yet.
func (a App) BoardURL() string {
	for _, row := range a.view.Instances {
		if url := webURL(row); url != "" && a.endOf(row) == goesOn {
			return url
		}
	}
	return ""
}
