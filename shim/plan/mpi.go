package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// MPI is an instance's part in a job whose processes mpirun starts, by one instance in all of them.
type MPI struct {
	Launches bool `json:"launches"` // it is the one that runs mpirun; the others wait
	// Slots are the processes in each container, by component.
	Slots map[string]int `json:"slots"`
}

// Files of the instance that launches, under its folder.
const (
	// MPIHostFile lists the instances and their slots.
	MPIHostFile = "mpi/hostfile"
	// MPIProgram is muster itself: mpirun finds it there whatever the root holds.
	MPIProgram = "app/bin/muster"
)

// parking waits for the end by nothing but the shell: it reads a pipe that it also holds open for writing. A shell that
// is asked to end while it waits does so at once.
const parking = `: | { exec 3<>/proc/self/fd/0; read -r _ <&3; }`

// atHome begins each process in its own instance's folder: mpirun would have all of them in the folder that it was
// started in, which other hosts do not have.
const atHome = `cd "$MUSTER_WORK_DIR" && exec "$@"`

// heedingExitFile runs a command and ends with the first line of exit.code, or of the file that hbox.custom.exit names, by
// which a process of HBox's MPI family says how the job ended, if there is one that is a number.
const heedingExitFile = `file=${HBOX_CUSTOM_EXIT:-exit.code}
[ ! -e "$file" ] || : >"$file"
"$@" & job=$!
trap 'kill -TERM $job' TERM
trap 'kill -INT $job' INT
while wait $job; code=$?; [ $code -gt 128 ] && kill -0 $job 2>/dev/null; do :; done
said=; [ -s "$file" ] && read -r said <"$file"
case $said in '' | *[!0-9]*) exit $code ;; *) exit "$said" ;; esac`

// mpi is the instance's part; nil where mpirun starts nothing.
func (b *builder) mpi() *MPI {
	if !appdef.MPIFamily(b.app.Settings.Framework) || !runsUnderMPI(b.component) {
		return nil
	}
	m := &MPI{Slots: map[string]int{}}
	for _, c := range Order(b.app) {
		if runsUnderMPI(c) && c.Instances > 0 {
			m.Slots[c.Name] = max(1, c.Settings.Processes)
		}
	}
	for _, role := range []appdef.Role{appdef.RoleChief, appdef.RoleWorker} {
		for _, c := range Order(b.app) {
			if c.Settings.Role == role && c.Instances > 0 {
				m.Launches = c.Name == b.req.Component && b.req.Index == 0
				return m
			}
		}
	}
	return m
}

func runsUnderMPI(c *appdef.Component) bool {
	return c.Settings.Role == appdef.RoleChief || c.Settings.Role == appdef.RoleWorker
}

// parked tells whether the instance only waits for processes that mpirun starts there.
func (b *builder) parked() bool {
	m := b.mpi()
	return m != nil && !m.Launches
}

// MPIMembers are the instances that processes of an MPI job run in, the one that launches them first.
func MPIMembers(r registry.Roster) []registry.Row {
	var chiefs, workers []registry.Row
	for _, row := range r.Rows {
		switch row.Role {
		case roleChief:
			chiefs = append(chiefs, row)
		case roleWorker:
			workers = append(workers, row)
		}
	}
	return append(chiefs, workers...)
}

// underMPI makes one command the job's: mpirun starts it in every instance, from the first. One that calls mpirun itself
// is run there as it is, and finds the same hosts.
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

// eachAtHome leaves the folders in the text of an MPI job's command to the shell: it is planned once, and run in every
// instance.
func (b *builder) eachAtHome(scope *appdef.Resolver) {
	if b.mpi() != nil {
		scope.WorkRoot, scope.LogRoot = "${MUSTER_WORK_DIR}", "${MUSTER_LOG_DIR}"
	}
}

// launchesItself tells whether a command begins with a program that launches MPI jobs.
func launchesItself(text string) bool {
	fields := strings.Fields(text)
	if len(fields) > 1 && fields[0] == "exec" {
		fields = fields[1:]
	}
	return len(fields) > 0 && slices.Contains([]string{"mpirun", "mpiexec", "orterun", "horovodrun"}, path.Base(fields[0]))
}

// quoteShell makes one word of a text for a shell.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
