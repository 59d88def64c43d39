package main

import (
	"context"
	"strconv"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/ports"
)

// registerRemote adds what a job needs that runs elsewhere: the flags of muster submit whose names HBox does not
// have. Those of muster run are taken over.
func (f *submitFlags) registerRemote(set flags.Set) {
	o := &f.job.file
	set.StringVar(&f.store, "store", "", "with --launcher, as all below: `URL` of the store (default: muster.store)")
	set.StringVar(&f.storeAs, "store-as", "", "the store as the hosts see it")
	set.StringVar(&f.address, "address", "", "`URL` of Nomad or YARN (default: NOMAD_ADDR; yarn-site.xml)")
	set.StringVar(&f.unitDir, "unit-dir", "/etc/systemd/system", "`DIR` for systemd's units")
	set.BoolVar(&f.kill, "kill-on-interrupt", false, "Ctrl-C stops the run, a second one the job; exit 2")
	set.StringVar(&o.Format, "format", "", "shell: by YARN's distributed shell; jobs: without Kubernetes' JobSet")
	set.StringVar(&o.Binary, "binary", "",
		"muster on the hosts: `PATH` or URL#sha256=HEX (default: this one, in the store)")
	set.StringVar(&o.Run, "run", "", "name of this run of the app (default: the clock's seconds)")
	registerLauncherFlags(set, o)
	set.BoolVar(&f.job.strict, "strict", false, "exit 1 if the launcher cannot express part of the app")
}

// there runs the job by a launcher, and waits for its end as hbox-submit does.
func (f *hboxFlags) there(ctx context.Context, s console.Streams, launcher string, job hbox.Submission) error {
	x := f.remote
	x.wait, x.json, x.state = true, f.run.JSON, f.run.State
	x.job.registry, x.job.filesystem = f.run.Registry, f.run.Filesystem
	x.job.file.AppID = f.run.AppID
	if f.run.AppID == "" { // names of jobs are no names of their own, as HBox has it
		x.job.file.AppID = appdef.NameOf(job.App.Name, "-"+strconv.FormatInt(time.Now().UnixMilli(), 10))
	}
	agent := jobAgentFlags{
		workDir: f.run.WorkDir, logDir: f.run.LogDir, policy: flags.Policy{File: f.run.Policy.File}, env: f.run.Env,
		requireLimits: f.run.RequireLimits,
	}
	if f.run.Engine != "auto" {
		agent.engine = f.run.Engine
	}
	if f.run.Ports != ports.Default.String() {
		agent.ports = f.run.Ports
	}
	x.job.agent = agent
	o, err := x.submission(ctx, s, "hbox-submit", launcher)
	if err != nil {
		return err
	}
	if f.run.Host != "" {
		return exit.Usagef("hbox-submit: --host is of this machine; agents of %s find their own", launcher)
	}
	if err := x.job.check(launcher); err != nil {
		return err
	}
	quiet, err := f.announce(ctx, s, x.job.file.AppID, job)
	if err != nil {
		return err
	}
	defer quiet()
	o.HBox, o.Submission = true, &job
	return o.Run(ctx, nil)
}
