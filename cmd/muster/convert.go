package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/convert"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
)

type convertFlags struct {
	app    flags.App
	to     string
	output string
	strict bool
	json   bool
}

func newConvert(s console.Streams) *cobra.Command {
	f := convertFlags{}
	cmd := &cobra.Command{
		Use: "convert APP --to slider|pai|hbox", DisableFlagsInUseLine: true,
		Short: "Write a definition in the words of another system", Args: exactly("APP"),
		Long: `Reads APP, in any dialect, and writes it as the documents of a Slider package, as a job file of PAI,
or as an hbox-submit command. What the other system cannot express is listed on stderr, one line each,
beginning with "unsupported:". With --strict any such line is an error (65), and nothing is written.`,
		Example: `  muster convert job.json --to slider -o mine
  muster convert catalog:handwriting --to hbox
  muster convert mine --to pai -o job.json`,
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.convert(cmd.Context(), s, args[0])
		},
	}
	set := cmd.Flags()
	f.app.Register(set)
	set.StringVar(&f.to, "to", "", "the other system: "+strings.Join(convert.Targets(), ", "))
	set.StringVarP(&f.output, "output", "o", "", "new `FILE` to write, for slider a new folder (default: stdout)")
	set.BoolVar(&f.strict, "strict", false, "exit 65 if anything cannot be expressed in the target format")
	set.BoolVar(&f.json, "json", false, "print {dialect, files, unsupported} as JSON")
	return cmd
}

func (f *convertFlags) convert(ctx context.Context, s console.Streams, ref string) error {
	if !slices.Contains(convert.Targets(), f.to) {
		return exit.Usagef("convert: --to %q: want one of %s", f.to, strings.Join(convert.Targets(), ", "))
	}
	if f.to == convert.Slider && f.output == "" && !f.json {
		return exit.Usagef("convert: --to slider writes three files: give -o FOLDER for them, or --json")
	}
	l, found, err := f.app.Read(ctx, ref)
	if err != nil {
		return err
	}
	defer l.Close()
	if bad := exit.OfProblems(found); bad != nil {
		return bad
	}
	out := convert.To(f.to, l.App, l.Package.FS)
	if f.json {
		err = console.PrintJSON(s.Out, out)
	}
	for _, line := range out.Unsupported {
		fmt.Fprintln(s.Err, "unsupported: "+line)
	}
	switch {
	case err != nil:
		return err
	case f.strict && len(out.Unsupported) > 0:
		return exit.With(exit.Definition, fmt.Errorf("convert %s: %s does not support %s", ref, f.to,
			appdef.Counted(len(out.Unsupported), "thing")))
	case f.output != "":
		return f.save(out.Files)
	case !f.json:
		for _, text := range out.Files {
			_, err = fmt.Fprint(console.File(s.Out), text)
		}
	}
	return err
}

// save writes the files, none over another.
func (f *convertFlags) save(files map[string]string) error {
	paths := map[string]string{}
	for name, text := range files {
		paths[f.output] = text
		if f.to == convert.Slider {
			delete(paths, f.output)
			paths[filepath.Join(f.output, name)] = text
		}
	}
	return writeNew("convert", paths)
}

// writeNew writes texts to their paths, none over what is there: then nothing is written at all.
func writeNew(verb string, texts map[string]string) error {
	paths := slices.Sorted(maps.Keys(texts))
	for _, path := range paths {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return exit.Usagef("%s: %s is there already: nothing is written over", verb, path)
		}
	}
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return exit.With(exit.Forbidden, fmt.Errorf("write: %w", err))
		}
		if err := os.WriteFile(path, []byte(texts[path]), 0o644); err != nil {
			return exit.With(exit.Forbidden, fmt.Errorf("write: %w", err))
		}
	}
	return nil
}
