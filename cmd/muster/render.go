package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/render"
)

const renderLong = `Writes the job file by which a resource manager runs APP: one agent for each instance, with limits,
ports, counts, placement, stop and retries. APP may be of any dialect: a package, a job file of PAI,
or an HBox submission after -- hbox-submit.

  nomad     a batch job, HCL; --format json: as Nomad's API takes it
  systemd   a template unit, a target, and the limits of each instance: files in a folder, see -o
  slurm     a script for sbatch; heterogeneous where components differ in size
  k8s       a JobSet; --format jobs: indexed Jobs and a Service
  yarn      a service of YARN's service API, JSON; --format shell: the distributed shell's commands

The agents load APP by the name that --app gives, and find muster at --binary on each host or fetch it
from there. What a launcher cannot express is listed on stderr, one line each, beginning with "unsupported:",
and stands in the file as a comment. Each rendering names a new run, by the clock's seconds; --run
gives another name.`

type renderFlags struct {
	job    jobFlags
	output string
	json   bool
}

// rendering is the answer of muster render --json.
type rendering struct {
	Version     int               `json:"version"`
	Launcher    string            `json:"launcher"`
	Format      string            `json:"format"`
	App         string            `json:"app"`
	Run         string            `json:"run"`
	Files       map[string]string `json:"files"`
	Unsupported []string          `json:"unsupported"`
}

func newRender(s console.Streams) *cobra.Command {
	f := renderFlags{}
	cmd := &cobra.Command{
		Use: "render LAUNCHER APP", Short: "Write the job file that a resource manager runs an app by",
		Long: renderLong,
		Args: launcherArgs("render"),
		Example: `  muster render nomad catalog:handwriting > hand.nomad.hcl
  muster render systemd catalog:tensorflow --app-id tf -o units
  muster render k8s job.json --app hdfs://nn/apps/job.json \
      --image registry.example/muster:1
  muster render yarn --format shell --app hdfs://nn/apps/j1.zip \
      -- hbox-submit --worker-num 2 python train.py`,
		ValidArgsFunction: completeRender,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.render(cmd.Context(), s, args) },
	}
	f.job.register(cmd)
	set := cmd.Flags()
	set.StringVarP(&f.output, "output", "o", "", "new `FILE` to write, for several a new folder (default: stdout)")
	set.BoolVar(&f.json, "json", false, "print {launcher, format, app, run, files, unsupported} as JSON")
	return cmd
}

func (f *renderFlags) render(ctx context.Context, s console.Streams, args []string) error {
	j, err := f.job.job(ctx, "render", args[0], s.Err)
	if err != nil {
		return err
	}
	rendered, err := j.Write(ctx, args[1:])
	if err != nil {
		return err
	}
	if f.output != "" {
		if err := f.save(rendered.Files); err != nil {
			return err
		}
	}
	switch {
	case f.json:
		out := rendering{
			Version: 1, Launcher: args[0], Format: cmp.Or(j.File.Format, known.Formats(args[0])[0]),
			App: j.File.AppID, Run: j.File.Run,
			Files: map[string]string{}, Unsupported: append([]string{}, rendered.Unsupported...),
		}
		for _, file := range rendered.Files {
			out.Files[file.Name] = file.Text
		}
		return console.PrintJSON(s.Out, out)
	case f.output != "":
		return nil
	}
	return printFiles(s, rendered.Files)
}

// printFiles prints one file as it is, several with their names above, as systemctl cat does.
func printFiles(s console.Streams, files []render.File) error {
	for i, file := range files {
		text := file.Text
		if len(files) > 1 {
			text = "# " + file.Name + "\n" + text
		}
		if i > 0 {
			text = "\n" + text
		}
		if _, err := fmt.Fprint(console.File(s.Out), text); err != nil {
			return exit.With(exit.Internal, fmt.Errorf("print: %w", err))
		}
	}
	return nil
}

// save writes the files, none over another; several go into a folder.
func (f *renderFlags) save(files []render.File) error {
	texts := map[string]string{}
	for _, file := range files {
		path := f.output
		if len(files) > 1 {
			path = filepath.Join(f.output, file.Name)
		}
		texts[path] = file.Text
	}
	return writeNew("render", texts)
}
