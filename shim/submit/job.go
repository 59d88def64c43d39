package submit

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/render"
)

// Job is what a launcher is to run: an APP, how its definition is changed, and what the job file says.
type Job struct {
	Verb     string // that was given the job, as messages name it
	Launcher known.Launcher
	Choices  openapp.Choices
	File     render.Options            // what the job file says, as far as flags have said it
	Strict   bool                      // refuse a job of which something is unsupported
	Site     func() (hbox.Site, error) // reads the administrator's defaults for a submission of HBox's
	Warn     io.Writer                 // takes warnings, notes and what is unsupported
}

// HBoxVerb in APP's place begins the words of a submission of HBox's.
const HBoxVerb = "hbox-submit"

// FindLauncher gives the launcher of that name, or says which ones there are.
func FindLauncher(verb, name string) (known.Launcher, error) {
	l, ok := known.Find(name)
	if ok {
		return l, nil
	}
	hint := ""
	near, ok := appdef.Nearest(name, known.Names())
	if ours, found := known.NameOf(name); found {
		near, ok = ours, true
	}
	if ok {
		hint = "; did you mean " + near + "?"
	}
	return l, exit.Usagef("%s: launcher %q: want one of %s%s", verb, name, strings.Join(known.Names(), ", "), hint)
}

// Write writes the job's files. args are APP, or the words of a submission of HBox's.
func (j *Job) Write(ctx context.Context, args []string) (render.Job, error) {
	app, unsupported, err := j.read(ctx, args)
	if err != nil {
		return render.Job{}, err
	}
	if err := j.complete(&app); err != nil {
		return render.Job{}, err
	}
	return j.render(app, unsupported)
}

// read gives the App, and what a submission of HBox's asks for that is unsupported here.
func (j *Job) read(ctx context.Context, args []string) (appdef.App, []string, error) {
	if args[0] == HBoxVerb {
		return j.readWords(args[1:])
	}
	l, err := j.Choices.Load(ctx, args[0], j.Warn)
	if err != nil {
		return appdef.App{}, nil, err
	}
	defer l.Close()
	if j.File.App == "" {
		j.File.App = l.Pinned(l.Ref)
		if filepath.IsAbs(l.Ref) {
			fmt.Fprintf(j.Warn, "note: the agents load %s: it must be there on every host; --app names another "+
				"place\n", l.Ref)
		}
	} else {
		j.File.App = l.Pinned(j.File.App)
	}
	return l.App, nil, nil
}

// readWords reads a command line of hbox-submit. Agents do not read one: they need the package that it is made into.
func (j *Job) readWords(words []string) (appdef.App, []string, error) {
	job, err := j.parseWords(words)
	if err != nil {
		return appdef.App{}, nil, err
	}
	if j.File.App == "" {
		return appdef.App{}, nil, exit.Usagef("%s: --app is missing: where the agents find the package; "+
			"muster hbox-submit --package FOLDER writes it", j.Verb)
	}
	unsupported, err := j.carry(job)
	return job.App, unsupported, err
}

func (j *Job) parseWords(words []string) (hbox.Submission, error) {
	site, err := j.Site()
	if err != nil {
		return hbox.Submission{}, exit.With(exit.Usage, err)
	}
	job, found := hbox.Parse(words, site)
	if job.Verb != hbox.VerbRun {
		return job, exit.Usagef("%s: hbox-submit: want a job", j.Verb)
	}
	found.Warnings().Print(j.Warn)
	if bad := found.Errors(); len(bad) > 0 {
		return job, exit.With(exit.Usage, bad)
	}
	if len(j.Choices.Set) > 0 || len(j.Choices.Instances) > 0 {
		return job, exit.Usagef("%s: --set and --instances are of packages; say it in the words of hbox-submit, as "+
			"--conf", j.Verb)
	}
	given := j.Choices.Hadoop.Conf
	if j.Choices.Hadoop.Conf, err = job.PickConf(given); err != nil {
		return job, exit.With(exit.Usage, err)
	}
	if given == "" && job.HadoopConf != "" {
		j.File.AgentFlags = append(j.File.AgentFlags, "--hadoop-conf", job.HadoopConf)
	}
	return job, nil
}

// carry takes over what HBox's options say to YARN, and lists the rest.
func (j *Job) carry(job hbox.Submission) (unsupported []string, err error) {
	o := &j.File
	for _, name := range slices.Sorted(maps.Keys(job.Carried)) {
		ok := true
		switch value := job.Carried[name]; name {
		case "queue", "hbox.app.queue":
			o.Queue = cmp.Or(o.Queue, value)
		case "priority", "hbox.app.priority":
			o.Priority = cmp.Or(o.Priority, value)
		case "driver-memory", "hbox.driver.memory":
			o.MasterMemoryMB, ok = hbox.Megabytes(value)
		case "driver-cores", "hbox.driver.cores":
			o.MasterVCores, err = appdef.ParseInt(value)
			ok = err == nil && o.MasterVCores > 0
		case hbox.HostLocal:
			unsupported = append(unsupported, "hbox-submit: "+name+": no launcher is told the hosts of an earlier run")
		default:
			unsupported = append(unsupported, "hbox-submit: "+name+": it is of HBox's own services")
		}
		if !ok {
			return nil, exit.Usagef("hbox-submit: %s %q: want a whole number above 0; memory in megabytes, or with "+
				"G or M behind it",
				name, job.Carried[name])
		}
	}
	unread := map[string]bool{}
	for _, c := range job.App.Components {
		for _, name := range plan.UnreadProperties(c) {
			unread[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		unsupported = append(unsupported, "hbox-submit: "+name+": no --inputformat or --outputformat is a class of "+
			"yours, which alone would read it")
	}
	return unsupported, nil
}

// complete fills in what neither flags nor APP have said.
func (j *Job) complete(app *appdef.App) error {
	o := &j.File
	o.AppID = cmp.Or(o.AppID, appdef.NameOf(app.Name, ""))
	o.Run = cmp.Or(o.Run, strconv.FormatInt(time.Now().Unix(), 10))
	if err := cmp.Or(appdef.CheckName("--app-id", o.AppID), appdef.CheckName("--run", o.Run)); err != nil {
		return exit.With(exit.Usage, err)
	}
	if q := app.Settings.PAI.VirtualCluster; o.Queue == "" && q != "default" {
		o.Queue = q
	}
	changes, err := j.Choices.Args()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	o.AppFlags = changes
	return nil
}

// render writes the files, and tells what is unsupported; unsupported was unsupported before.
func (j *Job) render(app appdef.App, unsupported []string) (render.Job, error) {
	name := j.Launcher.Jobs.Name
	job, err := known.Render(name, app, j.File)
	if err != nil {
		return job, exit.Usagef("%s %w", j.Verb, err)
	}
	job.Unsupported = append(job.Unsupported, unsupported...)
	for _, line := range job.Unsupported {
		fmt.Fprintln(j.Warn, "unsupported: "+line)
	}
	if j.Strict && len(job.Unsupported) > 0 {
		return job, exit.With(exit.Definition, fmt.Errorf("%s: %s does not support %s",
			j.Verb, name, appdef.Counted(len(job.Unsupported), "thing")))
	}
	return job, nil
}
