package hbox

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// read applies all options and confs, except keys that --conf muster.X sets itself.
func (j *job) read() {
	j.kind = j.line.kind()
	j.readRoles()
	j.siteSettings("")
	j.global(hboxTypeKey, j.kind.name, place("--app-type"))
	framework := "none"
	if !j.single {
		framework = j.kind.framework
	}
	j.global("muster.framework", framework, place("--app-type"))
	for _, r := range j.roles {
		j.siteSettings(r.name)
		j.component(r)
	}
	j.environment()
	j.processes()
	if !j.truth("user-classpath-first", true) {
		j.global("muster.hbox.jars", "last", j.at("user-classpath-first"))
	}
	j.command()
	j.images()
	j.files()
	j.inputs()
	j.outputs()
	j.board()
	j.ends()
	j.times()
}

// app applies --conf muster.X and finishes the App.
func (j *job) app() (appdef.App, appdef.Problems) {
	names := j.draft.App.ComponentNames()
	for _, s := range j.ours {
		if s.component != "" && !slices.Contains(names, s.component) {
			j.bad(s.Place, "the unknown component "+appdef.Quote(s.component), "one of "+strings.Join(names, ", "),
				appdef.DidYouMean(s.component, names))
			continue
		}
		j.draft.Set(s.component, s.key, s.Text, s.Place)
		j.from(s.component, s.key, s.Place)
	}
	j.idle()
	j.draft.Found(j.found...)
	return j.draft.Finish()
}

// siteSettings sets the administrator's own keys of a component, empty for the app: what the job says replaces them.
func (j *job) siteSettings(component string) {
	for _, s := range j.sites {
		if s.component == component {
			j.draft.Set(component, s.key, s.Text, s.Place)
			j.from(component, s.key, s.Place)
		}
	}
}

// idle keeps the options that muster ignores.
func (j *job) idle() {
	for _, o := range optionTable {
		if v, ok := j.options[o.name]; ok && o.idle {
			j.carried[o.name] = v.Text
		}
	}
	if j.truth(HostLocal, false) { // this host is that of the previous run
		j.carried[HostLocal], j.unsaid = "true", append(j.unsaid, HostLocal)
	}
	if v, ok := j.options["priority"]; ok && !slices.Contains(priorities[:], strings.TrimSpace(v.Text)) {
		j.warn(v.Place, appdef.Quote(v.Text), "one of "+strings.Join(priorities[:], ", "), "HBox takes DEFAULT for it")
	}
}

var priorities = [...]string{"DEFAULT", "VERY_LOW", "LOW", "NORMAL", "HIGH", "VERY_HIGH"}

// component adds a role with its limits and, in a gang, its address.
func (j *job) component(r role) {
	c := j.draft.Add(r.name, r.count, r.at)
	c.Limits.MemoryMB, c.Limits.VCores = r.memory, r.cores
	j.from(r.name, "yarn.memory", j.memoryAt(r))
	j.from(r.name, "yarn.vcores", j.at(j.prefix(r)+"-cores"))
	if r.gpus > 0 {
		j.limit(r.name, "yarn.io/gpu", strconv.Itoa(r.gpus), j.at(j.prefix(r)+"-gpus"))
	}
	if r.name == roleScheduler {
		j.own(r.name, "muster.role", "ps", place("--app-type"))
	}
	if !j.single && j.kind.name != "DIGITS" {
		port := "site.global." + r.name + ".port"
		j.draft.Set("", port, "${"+r.name+".ALLOCATED_PORT}{PER_CONTAINER}", place("--app-type"))
		j.draft.Export(r.name, "host_port", "${"+r.name+"_HOST}:${"+port+"}")
	}
	conf, at := confWorkerAutoscale, j.confs[confWorkerAutoscale].Place
	if j.prefix(r) == rolePS {
		conf, at = confPSAutoscale, j.confs[confPSAutoscale].Place
	}
	if v, ok := j.confs[conf]; ok {
		if f, ok := j.share(v); ok && f > 0 {
			j.limit(r.name, "muster.memory.autoscale", strconv.FormatFloat(f, 'f', -1, 64), at)
		}
	}
}

// memoryAt is where the memory of a role is set.
func (j *job) memoryAt(r role) appdef.Place {
	option := map[string]string{roleChief: "chiefworker-memory", roleEvaluator: "evaluatorworker-memory"}[r.name]
	if v, ok := j.value(option); ok && option != "" {
		return v.Place
	}
	return j.at(j.prefix(r) + "-memory")
}

// environment sets the user's variables. HBox loses those with a second `=`, with a bar, or without a value; here they
// are complete.
func (j *job) environment() {
	for _, conf := range slices.Sorted(maps.Keys(j.confs)) {
		if name, ok := strings.CutPrefix(conf, confEnv); ok {
			j.global("muster.env."+name, j.confs[conf].Text, j.confs[conf].Place)
		}
		if variable, ok := horovodVariables[conf]; ok {
			j.horovod(variable, j.confs[conf])
		}
	}
	if v, ok := j.confs[confExit]; ok {
		j.global("muster.env.HBOX_CUSTOM_EXIT", v.Text, v.Place)
	}
	if v, ok := j.confs[confMPIHome]; ok && j.kind.mpi() {
		j.global("muster.env.OPAL_PREFIX", strings.TrimRight(v.Text, "/"), v.Place)
	}
}

// horovod sets one of these variables: HBox's true is Horovod's 1, and a value that is off or below zero is not set.
func (j *job) horovod(variable string, v appdef.Value) {
	text := strings.TrimSpace(v.Text)
	switch {
	case j.kind.framework != "horovod":
		j.warn(v.Place, appdef.Quote(v.Text)+" with the app type "+j.kind.name, "the app type HOROVOD",
			"it has no effect")
		return
	case strings.EqualFold(text, "true"):
		text = "1"
	case strings.EqualFold(text, "false"), strings.HasPrefix(text, "-"), text == "":
		return
	}
	j.global("muster.env."+variable, text, v.Place)
}

// processes sets how many processes each container of Horovod runs.
func (j *job) processes() {
	v, ok := j.confs[confHorovodProcs]
	if !ok || j.kind.framework != "horovod" {
		return
	}
	if n := j.number(v, 1, 1); n > 1 {
		j.global("muster.nproc", strconv.Itoa(n), v.Place)
	}
}
