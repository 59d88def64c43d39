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

	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

type convertFlags struct {
	app    appFlags
	to     string
	output string
	strict bool
	json   bool
}

// conversion is the answer of muster convert --json.
type conversion struct {
	Version int               `json:"version"`
	Dialect string            `json:"dialect"`
	Files   map[string]string `json:"files"` // by name; of hbox one, called command
	Lost    []string          `json:"lost"`
}

func newConvert(s streams) *cobra.Command {
	f := convertFlags{}
	cmd := &cobra.Command{
		Use: "convert APP --to slider|pai|hbox", DisableFlagsInUseLine: true, Short: "Write a definition in the words of another system", Args: exactly("APP"),
		Long: `Reads APP whatever its dialect and writes it as a Slider package's documents, as a job file of PAI, or as an
hbox-submit command. What the other system cannot say is listed on stderr, a line each, beginning with "lost:";
with --strict there being any is an error (65), and nothing is written.`,
		Example: `  muster convert job.json --to slider -o mine
  muster convert catalog:handwriting --to hbox
  muster convert mine --to pai -o job.json`,
		ValidArgsFunction: completeApp,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.convert(cmd.Context(), s, args[0]) },
	}
	flags := cmd.Flags()
	f.app.register(flags)
	flags.StringVar(&f.to, "to", "", "the other system: "+strings.Join(targets(), ", "))
	flags.StringVarP(&f.output, "output", "o", "", "write to this `FILE`, of slider into this folder, in place of stdout; nothing is written over")
	flags.BoolVar(&f.strict, "strict", false, "end with 65 where something is lost")
	flags.BoolVar(&f.json, "json", false, "print {dialect, files, lost} as JSON")
	return cmd
}

func targets() []string { return []string{"slider", "pai", "hbox"} }

func (f *convertFlags) convert(ctx context.Context, s streams, ref string) error {
	if !slices.Contains(targets(), f.to) {
		return exit.Usagef("convert: --to %q: want one of %s", f.to, strings.Join(targets(), ", "))
	}
	if f.to == "slider" && f.output == "" && !f.json {
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
	out := f.written(l)
	if f.json {
		err = printJSON(s.out, out)
	}
	for _, line := range out.Lost {
		fmt.Fprintln(s.err, "lost: "+line)
	}
	switch {
	case err != nil:
		return err
	case f.strict && len(out.Lost) > 0:
		return exit.With(exit.Definition, fmt.Errorf("convert %s: %s cannot say %s", ref, f.to, counted(len(out.Lost), "thing")))
	case f.output != "":
		return f.save(out.Files)
	case !f.json:
		for _, text := range out.Files {
			_, err = fmt.Fprint(s.out, text)
		}
	}
	return err
}

// written is the App in the other system's words.
func (f *convertFlags) written(l *openapp.App) conversion {
	out := conversion{Version: 1, Dialect: f.to, Files: map[string]string{}, Lost: []string{}}
	switch f.to {
	case "pai":
		text, lost := pai.Write(l.App)
		out.Files[openapp.JobFile], out.Lost = string(text), append(out.Lost, lost...)
	case "hbox":
		args, lost := hbox.Write(l.App)
		out.Files["command"], out.Lost = commandLine(append([]string{"hbox-submit"}, args...)), append(out.Lost, lost...)
	default:
		files, lost := slider.Write(l.App)
		for name, text := range files {
			out.Files[name] = string(text)
		}
		out.Lost = append(out.Lost, lost...)
	}
	if beside := filesBeside(l); beside != "" {
		out.Lost = append(out.Lost, beside)
	}
	return out
}

// filesBeside says that a package has files which no definition holds.
func filesBeside(l *openapp.App) string {
	if entries, err := fs.ReadDir(l.Package.FS, "package"); err != nil || len(entries) == 0 {
		return ""
	}
	return "the files of package/: no definition holds them, take them along"
}

// save writes the files, none over another.
func (f *convertFlags) save(files map[string]string) error {
	paths := map[string]string{}
	for name, text := range files {
		paths[f.output] = text
		if f.to == "slider" {
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

// commandLine is a command of hbox-submit as a shell reads it: an option with its value on each line, and what it runs on
// the last.
func commandLine(args []string) string {
	const next = " \\\n  "
	lines, rest := []string{args[0]}, args[1:]
	for len(rest) > 1 && strings.HasPrefix(rest[0], "-") && rest[0] != "--" {
		lines, rest = append(lines, shellWords(rest[:2])), rest[2:]
	}
	if len(rest) > 0 {
		lines = append(lines, shellWords(rest))
	}
	return strings.Join(lines, next) + "\n"
}

func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
	}
	return strings.Join(quoted, " ")
}

// shellWord quotes a word where a shell would read it otherwise.
func shellWord(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+#") == "" && word[0] != '#' {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
