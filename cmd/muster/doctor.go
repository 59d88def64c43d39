package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/doctor"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/wording"
)

type doctorFlags struct {
	ask    flags.Ask
	ports  string
	policy flags.Policy
	work   string
	appID  string
	json   bool
}

// checkup is the answer of muster doctor --json.
type checkup struct {
	Version  int            `json:"version"`
	Checks   []doctor.Check `json:"checks"`
	Launcher plan.Launcher  `json:"launcher"`
}

func newDoctor(s console.Streams) *cobra.Command {
	f := doctorFlags{}
	cmd := &cobra.Command{
		Use: "doctor", Short: "Print what this host permits, and how to mend what is missing", Args: exactly(),
		Long: `Tries what an agent needs and looks at what it can use. Exits with 0 when muster can work on this
host, with 1 when something is missing that it needs. Missing options are marked "no". Then it prints
what is known of the launcher: each value with its source, and what the launcher does after an
agent's exit.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.doctor(cmd.Context(), s) },
	}
	f.ask.Register(cmd.Flags())
	cmd.Flags().Lookup("registry").Usage = "registry that must answer (default: CONSUL_HTTP_ADDR, if set)"
	cmd.Flags().StringVar(&f.ports, "ports", ports.Default.String(), "range to take ports from")
	f.policy.Register(cmd.Flags())
	cmd.Flags().StringVar(&f.work, "work-dir", "", "folder for package, checkpoints and instances")
	cmd.Flags().StringVar(&f.appID, "app-id", "", "name of a gang, in whose work folder an agent would work")
	cmd.Flags().BoolVar(&f.json, "json", false, "print {checks, launcher} as JSON")
	return cmd
}

func (f *doctorFlags) doctor(ctx context.Context, s console.Streams) error {
	found, host := member.Surroundings(ctx)
	address, err := f.ask.Registry.Resolve()
	rules, refused := f.policy.Read()
	if exit.CodeOf(refused) == exit.Usage {
		return refused
	}
	if f.appID != "" {
		if err := appdef.CheckName("doctor: --app-id", f.appID); err != nil {
			return exit.With(exit.Usage, err)
		}
	}
	answer := checkup{
		Version: 1, Launcher: known.Describe(found, host),
		Checks: doctor.Look(ctx, found, host, doctor.Options{
			State: f.ask.State.Resolve(), Ports: f.ports, Policy: rules, PolicyErr: refused, WorkDir: f.work,
			AppID: f.appID, Registry: address, RegistryErr: err, Named: f.ask.Registry.Named(),
		}),
	}
	if err := printCheckup(s.Out, answer, f.json); err != nil {
		return err
	}
	for _, c := range answer.Checks {
		if c.Needed && !c.OK {
			return exit.Silent{Code: 1}
		}
	}
	return nil
}

func printCheckup(out io.Writer, answer checkup, asJSON bool) error {
	if asJSON {
		return console.PrintJSON(out, answer)
	}
	width := console.Width(out)
	for _, c := range answer.Checks {
		word := "ok"
		switch {
		case !c.OK && c.Needed:
			word = "MISSING"
		case !c.OK:
			word = "no"
		}
		begin := fmt.Sprintf("%-8s %-16s ", word, c.Name)
		text := console.Color(out, wording.Wrap(begin+wording.Line(c.Found), width, len(begin)), 0, word) + "\n"
		if c.Remedy != "" {
			remedy := fmt.Sprintf("%*s-> %s", len(begin), "", wording.Line(c.Remedy))
			text += wording.Wrap(remedy, width, len(begin)+3) + "\n"
		}
		if err := console.Print(out, text); err != nil {
			return err
		}
	}
	return printLauncher(out, answer.Launcher)
}
