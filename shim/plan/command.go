package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// command is the process's argument vector: muster.command, else metainfo's commands, both run by the shell; else START
// of the commandScript, or the framework's built-in command if muster.start asks for it or the package lacks the
// script. An image's entrypoint precedes it.
func (b *builder) command(s *Script) []string {
	if b.component.Limits.Image == "" {
		return b.times(b.ownCommand(s))
	}
	if c := b.component; c.Settings.Command == "" && c.CommandScript == nil && s == nil {
		own := b.inImage([]string{})
		all := b.times(own)
		b.verbatim += len(all) - len(own) // the starter precedes the command, and has no placeholders
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
		text := s.Command
		if s.CommandFrom == "commands" {
			text = b.withNames(text)
		}
		text = b.shellText("muster.command", text)
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

// underMPI makes one command the whole job's: mpirun starts it in every instance, from the first. A command that calls
// mpirun itself runs there unchanged, and finds the same hosts.
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
		if dir := b.cwd(nil); dir != b.req.root() { // an image's, the same in each instance
			home = "cd " + quoteShell(dir) + ` && exec "$@"`
		}
		command = append([]string{"mpirun", "-wdir", "/", b.shell(), "-c", home, "-"}, command...)
	}
	if b.app.Settings.HBox.Type != "" {
		command = append([]string{b.shell(), "-c", heedingExitFile, "-"}, command...)
	}
	return command
}

// parking waits for the end with the shell alone: it reads a pipe that it also holds open for writing. A shell that
// gets a signal while it waits ends at once.
const parking = `: | { exec 3<>/proc/self/fd/0; read -r _ <&3; }`

// atHome starts each process in the folder of its own instance. mpirun would start all of them in its own current
// folder, which other hosts do not have.
const atHome = `cd "$MUSTER_WORK_DIR" && exec "$@"`

// heedingExitFile runs a command and ends with the first line of exit.code, or of the file that hbox.custom.exit names,
// if that is a number: processes of HBox's MPI types report the end of the job in that file.
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
