package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/oneline"
	"github.com/muster-agent/muster/shim/dryrun"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

type validateFlags struct {
	app    flags.App
	policy flags.Policy
	work   string
	json   bool
}

// validation is the answer of muster validate --json.
type validation struct {
	Version  int             `json:"version"`
	OK       bool            `json:"ok"`
	Problems appdef.Problems `json:"problems"`
}

func newValidate(s console.Streams) *cobra.Command {
	f := validateFlags{}
	line := oneline.Line{}
	cmd := &cobra.Command{
		Use: "validate {APP | -n N -- COMMAND…}", Short: "Report everything that is wrong in a definition, at once",
		DisableFlagsInUseLine: true, Args: appOrLine(&line),
		Example: `  muster validate catalog:tensorflow
  muster validate DIR --set site.global.user.data.dir=/data --instances worker=8`,
		Long: `Reads APP (a folder, .zip, .tar.gz, .tgz, .tar.zst, its URL or catalog:NAME), validates it and plans
the first instance of each component. Problems are printed one per line as FILE#POINTER: got WHAT,
want WHAT, or with FILE:LINE where no pointer names the place; warnings begin with "warning:". Exits
with 65 when there are errors. A definition is for any host: only with --policy, --userns or --work-dir
it is judged as an agent of this host would, which exits with 77 for what the policy refuses.`,
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withLine(s, "validate", &f.app, &line, args[0], func(ref string) error {
				return f.validate(cmd.Context(), s, ref)
			})
		},
	}
	f.app.Register(cmd.Flags())
	f.policy.Register(cmd.Flags())
	cmd.Flags().StringVar(&f.work, "work-dir", "", "folder for package, checkpoints and instances")
	line.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print {ok, problems} as JSON")
	return cmd
}

func (f *validateFlags) validate(ctx context.Context, s console.Streams, ref string) error {
	judged := f.policy.Given() || f.work != ""
	o := dryrun.Options{Engine: "auto", WorkDir: f.work}
	if judged {
		var err error
		if o.Policy, err = f.policy.Read(); err != nil {
			return err
		}
		f.app.Policy = &o.Policy
	}
	l, found, err := f.app.Validate(ctx, ref)
	if err != nil {
		if !f.json {
			return err
		}
		unreadable := appdef.Place{File: ref}.Problem(err.Error(), "an app package", "")
		return f.print(s.Out, nil, appdef.Problems{unreadable}, exit.CodeOf(err))
	}
	defer l.Close()
	code := 0
	if bad := exit.OfProblems(found); bad != nil {
		code = exit.CodeOf(bad)
	} else if judged {
		warnings, err := judge(ctx, l, o)
		found, code = append(append(found, warnings...).Sort(), refusals(ref, err)...), exit.CodeOf(err)
	}
	return f.print(s.Out, l, found, code)
}

// judge refuses what an agent of this host would, and has its plans' warnings.
func judge(ctx context.Context, l *openapp.App, o dryrun.Options) (warnings appdef.Problems, err error) {
	p, err := dryrun.New(ctx, l, o)
	if err != nil {
		return nil, err
	}
	list, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range list.Plans {
		warnings = append(warnings, one.Warnings...)
	}
	return warnings, nil
}

// refusals are an error, or the errors that it joins, as problems.
func refusals(ref string, err error) appdef.Problems {
	all := []error{err}
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		all = joined.Unwrap()
	}
	var found appdef.Problems
	for _, one := range all {
		if one != nil {
			found = append(found, appdef.Place{File: ref}.Problem(one.Error(), "what this host permits", ""))
		}
	}
	return found
}

func (f *validateFlags) print(out io.Writer, l *openapp.App, found appdef.Problems, code int) error {
	ok := len(found.Errors()) == 0
	if f.json {
		if found == nil {
			found = appdef.Problems{}
		}
		if err := console.PrintJSON(out, validation{Version: 1, OK: ok, Problems: found}); err != nil {
			return err
		}
	} else {
		found.Print(out)
		if ok {
			if note := l.Note(); note != "" {
				fmt.Fprintln(out, note)
			}
			instances := 0
			for _, c := range l.Components {
				instances += c.Instances
			}
			fmt.Fprintf(out, "ok: %s, %s, %s\n", l.Name, appdef.Counted(len(l.Components), "component"),
				appdef.Counted(instances, "instance"))
		}
	}
	if code != 0 {
		return exit.Silent{Code: code}
	}
	return nil
}
