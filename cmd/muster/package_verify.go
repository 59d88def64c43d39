package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/policy"
)

type packageVerifyFlags struct {
	keys      []string
	policy    string
	signature string
	json      bool
}

// verification is the answer of muster package verify --json.
type verification struct {
	Version   int             `json:"version"`
	OK        bool            `json:"ok"`
	File      string          `json:"file"`
	Signature *sign.Signature `json:"signature"` // null: it does not hold
	Cause     string          `json:"cause"`     // why not
}

func newPackageVerify(s console.Streams) *cobra.Command {
	f := packageVerifyFlags{}
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Check who signed a package", Args: exactly("FILE"),
		Long: `Checks FILE against FILE.minisig, as minisign -V does. The keys are those of --key (a public key RW…,
or its file), else those that this host's policy trusts.

Exits with 0 when one of the keys has signed exactly this file. When FILE is missing, is not signed,
was changed or is signed by another key, it exits with 65 for --key and with 77 for the policy's keys.`,
		Example: "  muster package verify myapp-1.0.0.zip --key release.pub\n  muster package verify myapp-1.0.0.zip " +
			"--policy policy.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.verify(s, args[0], cmd.Flags().Changed("policy"))
		},
	}
	set := cmd.Flags()
	set.StringArrayVar(&f.keys, "key", nil, "trusted public `KEY` (RW…) or its file; repeatable")
	set.StringVar(&f.policy, "policy", policy.DefaultFile, "policy `FILE` whose keys are trusted without --key")
	set.StringVar(&f.signature, "signature", "", "`FILE` of the signature (default: FILE.minisig)")
	set.BoolVar(&f.json, "json", false, "print {ok, file, signature, cause} as JSON")
	return cmd
}

func (f *packageVerifyFlags) verify(s console.Streams, file string, policyNamed bool) error {
	keys, code, err := f.trusted(policyNamed)
	if err != nil {
		return err
	}
	path := f.signature
	if path == "" {
		path = file + sign.Ending
	}
	found, err := sign.Verify(file, path, keys...)
	if !f.json {
		if err != nil {
			return exit.With(code, err)
		}
		fmt.Fprintf(s.Out, "ok: %s: signed by key %s: %s\n", file, found.KeyID, packages.Printable(found.Comment))
		return nil
	}
	return f.print(s.Out, file, found, err, code)
}

// trusted are the keys, and what the exit code is when none of them has signed.
func (f *packageVerifyFlags) trusted(policyNamed bool) ([]sign.PublicKey, int, error) {
	if len(f.keys) > 0 {
		if policyNamed {
			return nil, 0, exit.Usagef("package verify: got --key and --policy, want one of them")
		}
		keys, err := sign.OpenPublicKeys(f.keys)
		return keys, exit.Definition, exit.With(exit.Usage, err)
	}
	p, err := policy.Examine(f.policy, policyNamed)
	if err == nil && len(p.Packages.Trusted) == 0 {
		err = exit.Usagef("package verify: no keys: give --key, or packages.keys in the policy %s", f.policy)
	}
	return p.Packages.Trusted, exit.Forbidden, err
}

func (f *packageVerifyFlags) print(out io.Writer, file string, found sign.Signature, err error, code int) error {
	v := verification{Version: 1, OK: err == nil, File: file}
	if err == nil {
		v.Signature = &found
	} else {
		v.Cause = err.Error()
	}
	if bad := console.PrintJSON(out, v); bad != nil {
		return bad
	}
	if err != nil {
		return exit.Silent{Code: code}
	}
	return nil
}
