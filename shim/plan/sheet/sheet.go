package sheet

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// Of is the text for an App and the plans of the first instances of its components. only limits it to one component.
func Of(app *appdef.App, plans []plan.Plan, only string) string {
	s := &sheet{}
	if only == "" {
		s.app(app, plans)
	}
	for _, p := range plans {
		s.component(app, p)
	}
	seen := map[string]bool{}
	for _, p := range plans {
		for _, w := range p.Warnings {
			if text := w.String(); !seen[text] {
				seen[text] = true
				s.tail = append(s.tail, "warning: "+text)
			}
		}
	}
	for _, c := range app.Components {
		if c.Instances == 0 && (only == "" || only == c.Name) {
			s.head(c.Name + ": no instances")
		}
	}
	return s.String()
}

// app describes the whole app: who waits for whom and what ends the job.
func (s *sheet) app(app *appdef.App, plans []plan.Plan) {
	instances := 0
	for _, c := range app.Components {
		instances += c.Instances
	}
	s.head(fmt.Sprintf("%s: %s, %s; %s definition", app.Name, appdef.Counted(len(app.Components), "component"),
		appdef.Counted(instances, "instance"), article(app.Dialect)))
	own := func(key string) string { return app.Origins[key] }
	framework := app.Settings.Framework
	if app.Settings.TensorFlowMode != "" {
		framework += ", " + app.Settings.TensorFlowMode
	}
	s.row("framework", framework, cmp.Or(own("muster.framework"), app.Settings.FrameworkWhy))
	if pai := app.Settings.PAI; pai.Version != "" {
		s.row("PAI", "variables and rules of generation "+pai.Version,
			cmp.Or(pai.VersionWhy, own("muster.pai.version")))
		s.folders(plans, own)
	}
	if hbox := app.Settings.HBox; hbox.Type != "" {
		s.row("HBox", "variables of app type "+hbox.Type, own("muster.hbox.type"))
	}
	s.hadoop(plans)
	for _, p := range plans {
		if len(p.Barrier.WaitsFor) > 0 {
			s.row("barrier", "nobody starts before "+strings.Join(p.Barrier.WaitsFor,
				", ")+" are there, within "+span(p.Barrier.Timeout), own("muster.barrier.timeout"))
			break
		}
	}
	s.row("ends", ending(app), cmp.Or(own("muster.complete.total.minSucceeded"),
		own("muster.complete.total.minFailed")))
	if text := retries(app.Settings.Retry, app.Dialect); text != "" {
		s.row("retry", text, own("muster.retry"))
	}
	if t := app.Settings.Timeout; t > 0 {
		s.row("time", "the whole run within "+span(float64(t)), own("muster.timeout"))
	}
}

// hadoop describes the host's Hadoop, which every process gets.
func (s *sheet) hadoop(plans []plan.Plan) {
	i := slices.IndexFunc(plans, func(p plan.Plan) bool { return p.Hadoop != nil })
	if i < 0 {
		return
	}
	h := plans[i].Hadoop
	text := "configuration " + h.Conf
	if h.Home != "" {
		text += ", Hadoop " + h.Home
	}
	if h.Java != "" {
		text += ", Java " + h.Java
	}
	if h.Tickets != "" {
		text += ", a ticket of each process's own"
	}
	if h.Tokens != "" {
		text += ", and a copy of the agent's tokens"
	}
	s.row("Hadoop", text+": each process is told", "")
}

// folders are those of a PAI job, as its tasks get them.
func (s *sheet) folders(plans []plan.Plan, own func(key string) string) {
	i := slices.IndexFunc(plans, func(p plan.Plan) bool { return p.PAI != nil })
	if i < 0 {
		return
	}
	p := plans[i].PAI
	row := func(label, dir, why, key string) {
		if dir != "" {
			s.row(label, dir+why, own(key))
		}
	}
	row("dataDir", p.DataDir, "", "muster.pai.data.dir")
	row("outputDir", p.OutputDir, ", made where a task's command or variables name it", "muster.pai.output.dir")
	row("codeDir", p.CodeDir, ", brought to each task as ./"+path.Base(p.CodeDir)+"/", "muster.pai.code.dir")
	if p.VirtualCluster != "default" {
		row("cluster", p.VirtualCluster, ", for the launcher", "muster.pai.virtual.cluster")
	}
}

// ending describes what ends the job with success, and what fails it.
func ending(app *appdef.App) string {
	var enders, all []string
	for _, c := range app.Components {
		role := c.Settings.Role
		if c.Instances == 0 || role == appdef.RoleService {
			continue
		}
		all = append(all, c.Name)
		if role == appdef.RoleChief || role == appdef.RoleWorker {
			enders = append(enders, c.Name)
		}
	}
	if len(enders) == 0 {
		enders = all
	}
	text := "when all of " + strings.Join(enders, " and ") + " are done"
	if len(enders) == 0 {
		text = "when it is stopped"
	}
	total := app.Settings.Total
	if n := total.MinSucceeded; n > 0 {
		text = "when " + appdef.Counted(n, "instance") + " of all ended with 0, or " + text[len("when "):]
	}
	switch {
	case total.FailedShare > 0:
		text += fmt.Sprintf("; fails when %g%% of all have failed", total.FailedShare*100)
	case total.MinFailed > 0:
		text += "; fails when " + appdef.Counted(total.MinFailed, "instance") + " of all failed"
	}
	return text
}

func retries(n int, dialect string) string {
	switch {
	case n == appdef.RetryAlways:
		return "the whole gang restarts after every end"
	case n == appdef.RetryForever:
		return "the whole gang restarts after every failure that may pass"
	case n > 0 && dialect == "pai":
		return "the whole gang restarts after failures that the program cannot help, and after others " +
			appdef.Counted(n, "time")
	case n > 0:
		return "the whole gang restarts after a failure, " + appdef.Counted(n, "time")
	case dialect == "pai":
		return "the whole gang restarts after failures that the program cannot help, and after no other"
	}
	return ""
}

// component describes one instance, and with it the others of its component.
func (s *sheet) component(app *appdef.App, p plan.Plan) {
	c := app.Component(p.Who.Component)
	from := func(pointer string) string { return p.Origins[pointer] }
	s.head(fmt.Sprintf("%s: %s, %s", c.Name, appdef.Counted(c.Instances, "instance"), p.Who.Role))
	s.runs(p, from)
	s.limits(p, from)
	for _, port := range p.Ports {
		s.row("ports", portText(port), keyOrigin(app, c, port.Name))
	}
	for _, e := range p.Exports {
		text := e.Group + "." + e.Name + " = " + e.Template
		if e.Address {
			text += ", its address in the cluster"
		}
		s.row("exports", text, "")
	}
	for _, e := range p.AppExports {
		s.row("exports", e.Group+"."+e.Name+" = "+e.Template+", for the app", "")
	}
	if len(p.PublishedConfigs) > 0 {
		s.row("publishes", "its configurations "+strings.Join(p.PublishedConfigs, ", "), "")
	}
	s.variables(app, c, p)
	s.data(app, c, p)
	for _, side := range p.Sides {
		text := side.Name + ": " + commandText(side.Argv)
		if side.Port != "" {
			text += ", with the port " + side.Port
		}
		if side.HTTP {
			text += ", asked for an answer there"
		}
		if !side.Restart {
			text += ", started once"
		}
		s.row("beside it", text, cmp.Or(app.Origins[c.Name+"."+side.Why], app.Origins[side.Why], side.Why))
	}
	s.rules(app, c, p, from)
}

func (s *sheet) runs(p plan.Plan, from func(string) string) {
	text := commandText(p.Process.Argv)
	if p.Script != nil && p.Script.File != "" {
		text = "START of " + p.Script.File + ", with " + p.Script.Python
	}
	if p.Processes > 1 {
		text += fmt.Sprintf(", %d processes in each container", p.Processes)
	}
	s.row("runs", text, from("/process/argv"))
	if p.Process.ResumeArgs != "" {
		s.row("", "with a checkpoint, also: "+p.Process.ResumeArgs, from("/process/resume_args"))
	}
	if len(p.Barrier.After) > 0 {
		s.row("waits for", strings.Join(p.Barrier.After, ", "), "commandOrders")
	}
	if p.Root.Kind == plan.RootImage {
		s.row("in", "the image "+p.Root.Image, from("/root/image"))
	} else {
		s.row("in", "the host's root ("+p.Root.Kind+"), engine "+p.Engine.Name+": "+p.Engine.Why, from("/root/kind"))
	}
	if p.Process.User != "" {
		s.row("as", p.Process.User, from("/process/user"))
	}
}

func (s *sheet) limits(p plan.Plan, from func(string) string) {
	l := p.Limits
	whole := func(n int, unit string) string {
		switch n {
		case appdef.Max:
			return "all that is granted"
		case 0:
			return "without a limit"
		}
		return fmt.Sprintf("%d %s", n, unit)
	}
	s.row("limits", "memory "+whole(l.MemoryMB, "MB"), from("/limits/memory_mb"))
	cores := "cores " + whole(l.VCores, "as a share")
	if l.CPUHard {
		cores = "cores " + whole(l.VCores, "and no more")
	}
	s.row("", cores, from("/limits/vcores"))
	if l.GPUs > 0 {
		text := fmt.Sprintf("GPUs %d", l.GPUs)
		if l.GPUType != "" {
			text += " of type " + l.GPUType
		}
		s.row("", text, from("/limits/gpus"))
	}
	if l.ShmMB > 0 {
		s.row("", fmt.Sprintf("/dev/shm %d MB", l.ShmMB), from("/limits/shm_mb"))
	}
	if l.StorageGB > 0 {
		s.row("", fmt.Sprintf("%d GB free in the work folder at the start", l.StorageGB), from("/limits/storage_gb"))
	}
	if l.Pids > 0 {
		s.row("", fmt.Sprintf("processes and threads %d", l.Pids), from("/limits/pids"))
	}
	if p.Engine.Filter != "" {
		s.row("", "system calls: filter "+p.Engine.Filter, "")
	}
	for _, u := range p.Engine.Unenforced {
		s.row("", u.Limit+" is not enforced: "+u.Why, "")
	}
}

// variables are the definition's own with their values, and the names of what a framework or a dialect adds.
func (s *sheet) variables(app *appdef.App, c *appdef.Component, p plan.Plan) {
	for _, name := range slices.Sorted(maps.Keys(c.Settings.Env)) {
		s.row("variables", name+"="+p.Process.Env[name], cmp.Or(app.Origins[c.Name+".muster.env."+name],
			app.Origins["muster.env."+name]))
	}
	for _, name := range p.Process.Secrets {
		s.row("variables", name+", a secret", p.Process.SecretRefs[name])
	}
	s.told(c, p)
}

// told are the names of the variables that the roster adds at the start.
func (s *sheet) told(c *appdef.Component, p plan.Plan) {
	if p.Start == nil {
		return
	}
	var framework, dialect []string
	for _, name := range slices.Sorted(maps.Keys(p.Start.Env)) {
		_, own := c.Settings.Env[name]
		_, inherited := p.Process.Inherited[name]
		_, qizhi := strings.CutPrefix(name, "QIZHI_")
		switch {
		case own, inherited, qizhi, strings.HasPrefix(name, "MUSTER_"), slices.Contains(p.Process.Secrets, name):
		case strings.HasPrefix(name, "PAI_"):
			dialect = append(dialect, name)
		default:
			framework = append(framework, name)
		}
	}
	s.list("variables", framework, "")
	s.list("variables", dialect, "each as QIZHI_… too")
	s.list("files", slices.Sorted(maps.Keys(p.Start.Files)), "")
}

// data describes inputs and outputs.
func (s *sheet) data(app *appdef.App, c *appdef.Component, p plan.Plan) {
	key := func(name string) string { return cmp.Or(app.Origins[c.Name+"."+name], app.Origins[name]) }
	for _, item := range p.Stage {
		switch item.Kind {
		case plan.StageCopy:
			s.row("brings", item.Name+": a copy of "+item.From, key("muster.file."+item.Name))
		case plan.StageResource:
			s.row("brings", "app/resources/"+item.Name+": a copy of "+item.From, key("application.resources"))
		case plan.StageUnpacked:
			s.row("brings", item.Name+"/: what is in "+item.From, key("muster.archive."+item.Name))
		}
	}
	if in := p.Inputs; in != nil {
		for _, one := range in.From {
			if in.Workers == 0 {
				s.row("inputs", one.Name+": an empty folder", "")
				continue
			}
			s.row("inputs", fmt.Sprintf("%s: %s, %s among %s", one.Name, strings.Join(one.From, ", "),
				formOf(in.Strategy, in.Format, "TextInputFormat"), appdef.Counted(in.Workers,
					"instance")), key("muster.input."+one.Name))
		}
	}
	if out := p.Outputs; out != nil {
		for _, one := range out.To {
			if one.To == "" { // another instance uploads it
				continue
			}
			s.row("outputs", fmt.Sprintf("%s: to %s/%s, %s", one.Name, strings.TrimRight(one.To, "/"),
				cmp.Or(out.Folder, one.Name), formOf(out.Strategy, out.Format,
					"TextOutputFormat")), key("muster.output."+one.Name))
			if out.Strategy == appdef.StrategyStream {
				continue
			}
			when, from := "when muster save asks for it", key("muster.outputs.interim")
			if out.SaveEvery > 0 {
				when = "every " + appdef.Seconds(out.SaveEvery).Duration().String()
				from = cmp.Or(key("muster.outputs.interval"), from)
			}
			s.row("", fmt.Sprintf("saved to %s/%sTIME/%s, %s", strings.TrimRight(one.To, "/"),
				cmp.Or(out.Interim, plan.DefaultSaves), cmp.Or(out.Folder, one.Name), when), from)
		}
	}
}

// formOf is a strategy; of a stream with the class of its records.
func formOf(strategy, format, usual string) string {
	if strategy == appdef.StrategyStream {
		return strategy + " of " + cmp.Or(format, usual)
	}
	return strategy
}

// rules describe what restarts, what ends the job and how a process is stopped.
func (s *sheet) rules(app *appdef.App, c *appdef.Component, p plan.Plan, from func(string) string) {
	r := p.Restart
	switch {
	case r.Scope == string(appdef.ScopeNever):
		s.row("restart", "never", from("/restart/scope"))
	case r.Scope == string(appdef.ScopeGang):
		s.row("restart", "all together when one fails", from("/restart/scope"))
	default:
		s.row("restart", "alone, the others go on", from("/restart/scope"))
	}
	if r.Scope != string(appdef.ScopeNever) {
		s.row("", budgetText(r), cmp.Or(from("/restart/budget"), from("/restart/window")))
	}
	switch p.Who.Role {
	case string(appdef.RoleService), string(appdef.RoleEvaluator):
		s.row("counts", "neither its failure nor its end decides the job's", from("/who/role"))
	default:
		failed := "failures do not fail the job"
		if total := app.Settings.Total; total.FailedShare > 0 || total.MinFailed > 0 {
			failed = "failures fail the job only as ends says"
		}
		if n := p.Complete.MinFailed; n != nil {
			failed = "the job fails with " + appdef.Counted(*n, "failed instance")
		}
		s.row("counts", failed, from("/complete/min_failed"))
		if n := p.Complete.MinSucceeded; n != nil {
			s.row("", "the job has succeeded with "+appdef.Counted(*n, "instance")+" that ended with 0",
				from("/complete/min_succeeded"))
		}
	}
	s.row("stop", fmt.Sprintf("%s, then KILL after %s", p.Stop.Signal, span(p.Stop.Grace)),
		cmp.Or(from("/stop/grace"), from("/stop/signal")))
	if cut := registry.FenceGrace.Seconds(); p.Stop.Grace > cut {
		s.row("", "after "+span(cut)+" where the host is cut off from the registry and its peers are not", "")
	}
	s.row("checkpoint", p.Checkpoint.Dir, from("/checkpoint/dir"))
	if p.Hold > 0 {
		s.row("hold", "a failed container is kept "+span(p.Hold),
			cmp.Or(app.Origins[c.Name+".muster.hold"], app.Origins["muster.hold"]))
	}
}

func budgetText(r plan.Restart) string {
	if r.Budget < 0 {
		return "without end, " + pausesText(r)
	}
	text := appdef.Counted(r.Budget, "restart")
	if r.Window > 0 {
		text += " within " + span(r.Window)
	}
	text += ", " + pausesText(r)
	if r.Refill == "checkpoint" {
		text += "; a newer checkpoint empties the account"
	}
	return text
}

func pausesText(r plan.Restart) string {
	return "the first at once, then after " + span(r.BackoffMin) + " to " + span(r.BackoffMax)
}

func portText(p plan.Port) string {
	switch {
	case p.Want > 0 && p.Exact:
		return fmt.Sprintf("%s: %d and no other", p.Name, p.Want)
	case p.Want > 0:
		return fmt.Sprintf("%s: %d, else a free one", p.Name, p.Want)
	case p.Allowed != "":
		return p.Name + ": a free one of " + p.Allowed
	}
	return p.Name + ": a free one"
}

// keyOrigin is where the value that requests a port was written. The port's name is the key, with a number for further
// ports of one value.
func keyOrigin(app *appdef.App, c *appdef.Component, port string) string {
	for name := port; name != ""; {
		key := "site." + name
		for i := range app.Components {
			if app.Components[i].Name != c.Name {
				continue
			}
			for _, at := range []string{
				appdef.Pointer("components", fmt.Sprint(i), "config", key),
				appdef.Pointer("config", key),
			} {
				if place, ok := app.Places[at]; ok {
					return place.String()
				}
			}
		}
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			break
		}
		name = name[:dot]
	}
	return ""
}
