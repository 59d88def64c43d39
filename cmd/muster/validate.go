package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

type validateFlags struct {
	app  flags.App
	json bool
}

// validation is the answer of muster validate --json.
type validation struct {
	Version  int             `json:"version"`
	OK       bool            `json:"ok"`
	Problems appdef.Problems `json:"problems"`
}

func newValidate(s console.Streams) *cobra.Command {
	f := validateFlags{}
	cmd := &cobra.Command{
		Use: "validate APP", Short: "Report everything that is wrong in a definition, at once", Args: exactly("APP"),
		Example: `  muster validate catalog:tensorflow
  muster validate DIR --set site.global.user.data.dir=/data --instances worker=8`,
		Long: `Reads APP (a folder, .zip, .tar.gz, .tgz, .tar.zst, its URL or catalog:NAME), validates it and plans
the first instance of each component. Problems are printed one per line as FILE#POINTER: got WHAT,
want WHAT, or with FILE:LINE where no pointer names the place; warnings begin with "warning:". Exits
with 65 when there are errors.`,
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.validate(cmd.Context(), s, args[0])
		},
	}
	f.app.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print {ok, problems} as JSON")
	return cmd
}

func (f *validateFlags) validate(ctx context.Context, s console.Streams, ref string) error {
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
	}
	return f.print(s.Out, l, found, code)
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
