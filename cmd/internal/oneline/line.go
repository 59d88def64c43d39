package oneline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/program"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/madeapp"
	"github.com/muster-agent/muster/shim/exit"
)

// Line is what a command line says of one program.
type Line struct {
	Words []string // behind --
	Image string   // that the command runs in; "": this machine's own root
	// OtherPath says that the processes are given a PATH that is not this shell's.
	OtherPath bool
	// HostRoot says that the processes see what this shell sees: they run without a container.
	HostRoot bool
	// Container says that they surely run in one.
	Container bool
	// Seen are folders of this machine that a policy has every container see.
	Seen []string

	framework  string
	files      []string
	dir        string
	memory     string
	gpus       int
	checkpoint string
	save       string

	app     appdef.App
	program program.Program
	sources sources
}

// Register adds the flags.
func (l *Line) Register(set flags.Set) {
	l.RegisterBare(set)
	set.StringVar(&l.Image, "image", "", "`IMAGE` that the command runs in (default: this machine's own root)")
}

// RegisterBare adds the flags but for --image.
func (l *Line) RegisterBare(set flags.Set) {
	set.StringVar(&l.framework, "framework", "",
		"the framework's `NAME` (default: by what the program imports)")
	set.StringArrayVar(&l.files, "file", nil, "`FILE` that the command needs, beside those that it names; repeatable")
	set.StringVar(&l.dir, "dir", "", "`DIR` that is the command's working folder as a whole (default: the files alone)")
	set.StringVar(&l.memory, "memory", "",
		"`SIZE` of memory for each instance, in MB: 512, 512M, 2G (default: all that there is)")
	set.IntVar(&l.gpus, "gpus", 0, "`N` GPUs for each instance but parameter servers")
	set.StringVar(&l.checkpoint, "checkpoint", "", "`DIR` or URL of checkpoints (default: one in the work folder)")
	set.StringVar(&l.save, "save", "", "write the app package of this line into the new folder `DIR`, and run nothing")
}

// Refuse refuses the flags of a line beside an APP.
func (l *Line) Refuse(verb string, set *pflag.FlagSet) error {
	for _, name := range []string{"framework", "file", "dir", "memory", "gpus", "checkpoint", "save"} {
		if set.Changed(name) {
			return exit.Usagef("%s: --%s goes with a command behind --, as in muster %[1]s -n 3 -- python train.py; "+
				"an APP says it in its own files, which --set changes", verb, name)
		}
	}
	if l.Image != "" {
		return exit.Usagef("%s: --image goes with a command behind --; an APP has muster.image", verb)
	}
	return nil
}

// Read reads the program's files, makes the App of them, and prints what is guessed and what is brought. counts are the
// values of --instances.
func (l *Line) Read(verb string, counts []string, out io.Writer) (appdef.App, error) {
	err := l.read(counts, verb == "run", out)
	if err != nil {
		err = fmt.Errorf("%s: %w", verb, err)
	}
	return l.app, err
}

func (l *Line) read(counts []string, here bool, out io.Writer) (err error) {
	p := &l.program
	memory, ok := megabytes(l.memory)
	if !ok {
		return exit.Usagef("--memory %q: want a number of MB, or one with M, MiB, G or GiB behind it, as in 512M or 2G",
			l.memory)
	}
	*p = program.Program{
		Words: slices.Clone(l.Words), MemoryMB: memory, GPUs: l.gpus, Image: l.Image, Framework: l.framework,
		Checkpoint: l.checkpoint,
	}
	text := cmp.Or(strings.Join(counts, ","), "1")
	if !p.Count(text) {
		return exit.Usagef("-n %q: want a number of workers, or COMPONENT=N,… as in ps=1,worker=3", text)
	}
	if l.gpus < 0 {
		return exit.Usagef("--gpus %d: want a number of 0 or more", l.gpus)
	}
	if l.checkpoint != "" && !strings.Contains(l.checkpoint, "://") && !strings.HasPrefix(l.checkpoint, "file:") {
		p.Checkpoint = flags.Absolute(l.checkpoint)
	}
	if l.sources, err = gather(l); err != nil {
		return err
	}
	note, err := l.find(here)
	if err := cmp.Or(err, l.noScript()); err != nil {
		return err
	}
	notes := append([]string{note}, l.unseenFiles()...)
	p.Files = len(l.sources.files)+len(l.sources.far) > 0 || l.dir != ""
	p.Name = l.sources.name()
	if err := l.guess(out); err != nil {
		return err
	}
	fmt.Fprintln(out, l.sources.brought(l.dir))
	for _, note := range notes {
		if note != "" {
			fmt.Fprintln(out, note)
		}
	}
	app, found := p.App()
	found.Warnings().Print(out)
	if bad := found.Errors(); len(bad) > 0 {
		return exit.With(exit.Usage, bad)
	}
	l.app = app
	return nil
}

// guess finds the framework, unless it was said.
func (l *Line) guess(out io.Writer) error {
	known := program.Frameworks()
	if f := l.program.Framework; f != "" {
		if f == "horovod" {
			l.program.Framework, f = "horovod-gloo", "horovod-gloo"
		}
		if !slices.Contains(known, f) {
			hint := appdef.DidYouMean(f, known)
			if hint != "" {
				hint = "; " + hint
			}
			return exit.Usagef("--framework %q: want one of %s%s", f, strings.Join(known, ", "), hint)
		}
		return nil
	}
	f, by := program.Guess(l.sources.imports)
	switch {
	case f != "":
		fmt.Fprintf(out, "framework: %s, for %s imports %s (--framework says another)\n", f, l.sources.script, by)
	case by != "":
		return exit.Usagef("%s imports %s: say --framework, one of %s", l.sources.script, by, strings.Join(known, ", "))
	default:
		f = "none"
		fmt.Fprintln(out, "framework: none, for nothing tells of another (--framework says one)")
	}
	l.program.Framework = f
	return nil
}

// Write makes the package in a new folder below dir, which remove takes away again.
func (l *Line) Write(dir string) (_ string, remove func() error, err error) {
	return madeapp.Make(dir, func(dir string) error {
		if l.program.Files {
			if err := l.sources.copyTo(filepath.Join(dir, "package", program.Folder), l.dir); err != nil {
				return err
			}
		}
		return madeapp.Documents(dir, l.app)
	})
}

// Saves tells whether the package is only to be written.
func (l *Line) Saves() bool { return l.save != "" }

// Save writes the package into the folder of --save, which must not exist.
func (l *Line) Save(out io.Writer) error {
	dir, remove, err := l.Write(filepath.Dir(flags.Absolute(l.save)))
	if err != nil {
		return err
	}
	if err := madeapp.Keep(dir, l.save); err != nil {
		return errors.Join(exit.With(exit.Usage, fmt.Errorf("--save %w", err)), remove())
	}
	fmt.Fprintf(out, "saved: %s; muster run %[1]s runs it\n", l.save)
	return nil
}

// megabytes reads a size of memory: a number of MB, which an M may follow, or of G, which are 1024 of them.
func megabytes(text string) (mb int, ok bool) {
	if text == "" {
		return 0, true
	}
	number, factor := text, 1
	for unit, of := range map[string]int{"M": 1, "MB": 1, "MiB": 1, "G": 1 << 10, "GB": 1 << 10, "GiB": 1 << 10} {
		if before, found := strings.CutSuffix(text, unit); found {
			number, factor = before, of
		}
	}
	n, err := strconv.Atoi(number)
	return n * factor, err == nil && n >= 0 && n <= math.MaxInt/factor
}
