package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// command is the process's argument vector: muster.command, else metainfo's commands, both run by
// the shell; else START of the commandScript, or the framework's built-in command where that is
// asked for or the package has no such script. An image's entrypoint comes before it.
func (b *builder) command(s *Script) []string {
	if b.component.Limits.Image == "" {
		return b.times(b.ownCommand(s))
	}
	if c := b.component; c.Settings.Command == "" && c.CommandScript == nil && s == nil {
		own := b.inImage([]string{})
		all := b.times(own)
		b.verbatim += len(all) - len(own) // what starts them comes first, and has nothing to fill in
		return all
	}
	return b.inImage(b.times(b.ownCommand(s)))
}

func (b *builder) ownCommand(script *Script) []string {
	s := b.component.Settings
	switch {
	case b.serves():
		return []string{b.python(), "-c", tfServer}
	case script != nil && script.Has(CommandStart):
		return script.Argv(CommandStart, b.req.log(), b.req.root())
	case s.Command != "":
		text := b.shellText("muster.command", s.Command)
		return b.underMPI([]string{b.shell(), "-c", text}, text)
	case b.app.Settings.Framework == "tensorflow" && b.component.CommandScript != nil:
		return b.tensorflow()
	}
	got := "nothing that says what to run"
	if b.component.CommandScript != nil {
		got = "commandScript " + appdef.Quote(b.component.CommandScript.Script)
	}
	b.problem(b.at("command_script"), got, "muster.command",
		"set muster.command for component "+b.component.Name+" in appConfig")
	return []string{}
}

// underMPI makes one command the job's: mpirun starts it in every instance, from the first. One that calls mpirun
// itself is run there as it is, and finds the same hosts.
func (b *builder) underMPI(command []string, text string) []string {
	m := b.mpi()
	switch {
	case m == nil:
		return command
	case !m.Launches:
		return []string{b.shell(), "-c", parking}
	}
	if !launchesItself(text) {
		home := atHome
		if dir := b.cwd(nil); dir != b.req.root() { // an image's, the same in each
			home = "cd " + quoteShell(dir) + ` && exec "$@"`
		}
		command = append([]string{"mpirun", "-wdir", "/", b.shell(), "-c", home, "-"}, command...)
	}
	if b.app.Settings.HBox.Type != "" {
		command = append([]string{b.shell(), "-c", heedingExitFile, "-"}, command...)
	}
	return command
}

// parking waits for the end by nothing but the shell: it reads a pipe that it also holds open for writing. A shell that
// is asked to end while it waits does so at once.
const parking = `: | { exec 3<>/proc/self/fd/0; read -r _ <&3; }`

// atHome begins each process in its own instance's folder: mpirun would have all of them in the folder that it was
// started in, which other hosts do not have.
const atHome = `cd "$MUSTER_WORK_DIR" && exec "$@"`

// heedingExitFile runs a command and ends with the first line of exit.code, or of the file that hbox.custom.exit names,
// by which a process of HBox's MPI family says how the job ended, if there is one that is a number.
const heedingExitFile = `file=${HBOX_CUSTOM_EXIT:-exit.code}
[ ! -e "$file" ] || : >"$file"
"$@" & job=$!
trap 'kill -TERM $job' TERM
trap 'kill -INT $job' INT
while wait $job; code=$?; [ $code -gt 128 ] && kill -0 $job 2>/dev/null; do :; done
said=; [ -s "$file" ] && read -r said <"$file"
case $said in '' | *[!0-9]*) exit $code ;; *) exit "$said" ;; esac`

// launchesItself tells whether a command begins with a program that launches MPI jobs.
func launchesItself(text string) bool {
	fields := strings.Fields(text)
	if len(fields) > 1 && fields[0] == "exec" {
		fields = fields[1:]
	}
	return len(fields) > 0 && slices.Contains([]string{"mpirun", "mpiexec", "orterun", "horovodrun"},
		path.Base(fields[0]))
}

// quoteShell makes one word of a text for a shell.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
