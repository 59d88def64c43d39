package plan

import (
	"slices"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// RisingVariable names, with blanks between, the variables that rise by one from each process of a container to the
// next. A framework sets it; the values of the variables hold for the first process.
const RisingVariable = "MUSTER_PROC_RANKS"

// several starts a command several times at once and represents these processes to the agent. $1 is their number, the
// rest is the command; MUSTER_PROC tells each process its own number, MUSTER_PROCS the total. It ends with 0 when all
// have ended with 0. When one fails it asks the others to end, waits for them and ends with the code of the failed one.
// A side process that runs the same command runs it once.
//
// It is written for any POSIX shell. A shell ignores INT and QUIT in background processes (POSIX, 2.11), so they are
// passed on as TERM. Above each process is a shell of its own, which no signal reaches, because the status of an
// interrupted wait is unreliable: it writes the exit code down, and failed is the first one that is not 0. A process
// writes its number down before it checks whether it is too late to start; the code that stops them all works in the
// other order.
const several = `[ -z "${MUSTER_SIDE-}" ] || { shift; exec "$@"; }
n=$1 at=${MUSTER_WORK_DIR:-.}/.several.$$
shift
rm -f "$at".*
pass() {
	[ "$1" != TERM ] || : >"$at.stop"
	for f in "$at".pid.*; do
		[ -s "$f" ] && read -r p <"$f" && kill -s "$1" "$p"
	done 2>/dev/null
}
one() {
	export MUSTER_PROC=$1 MUSTER_PROCS=$n
	for v in ${MUSTER_PROC_RANKS-}; do eval "export $v=\$((\${$v:-0} + $1))"; done
	shift
	sh -c 'echo $$ >"$0.pid.$MUSTER_PROC" && [ ! -e "$0.stop" ] || exit 143; exec "$@"' "$at" "$@"
	code=$?
	rm -f "$at.pid.$MUSTER_PROC"
	if [ $code -ne 0 ] && (set -C; echo $code >"$at.failed") 2>/dev/null; then
		[ -e "$at.stop" ] || kill -s TERM $$
	fi
	echo $code >"$at.code.$MUSTER_PROC"
}
trap 'pass TERM' TERM INT QUIT
for s in HUP USR1 USR2; do trap "pass $s" $s; done
i=0
while [ $i -lt "$n" ]; do
	(trap : TERM HUP USR1 USR2; one $i "$@") &
	i=$((i + 1))
done
until wait; do :; done
end=0
while [ $i -gt 0 ]; do
	i=$((i - 1))
	[ -s "$at.code.$i" ] || end=1
done
[ ! -s "$at.failed" ] || read -r end <"$at.failed"
rm -f "$at".*
exit "$end"`

// processes is the number in each container that trains; 0 for one. Parameter servers get it too, because they count
// the processes that they serve.
func (b *builder) processes() int {
	if appdef.MPIFamily(b.app.Settings.Framework) { // mpirun starts them, a number of its own for each component
		return b.component.Settings.Processes
	}
	n, first := 1, true
	for i := range b.app.Components {
		c := &b.app.Components[i]
		switch {
		case !trains(c) || c.Instances == 0:
		case first:
			n, first = max(c.Settings.Processes, 1), false
		case max(c.Settings.Processes, 1) != n:
			b.problem(b.keyOf(i, nprocKey), strconv.Itoa(max(c.Settings.Processes,
				1))+" processes in a container of "+c.Name,
				strconv.Itoa(n)+", as in the others that train", "ranks are counted by the container; set it once, "+
					"in the global section")
		}
	}
	if n == 1 {
		return 0
	}
	if f := b.app.Settings.Framework; !slices.Contains(severalRun(), f) {
		b.problem(b.key(nprocKey), strconv.Itoa(n)+" processes in a container with framework "+f, "1",
			"each would need an address of its own; run more instances")
	}
	return n
}

const nprocKey = "muster.nproc"

// severalRun are the frameworks whose processes need no address of their own.
func severalRun() []string {
	return []string{appdef.HorovodGloo, "jax", "mxnet", "none", "pytorch", "xflow", "xgboost"}
}

// times makes a command run as many times at once as the component asks for.
func (b *builder) times(argv []string) []string {
	n := b.component.Settings.Processes
	if n < 2 || len(argv) == 0 || !trains(b.component) || !slices.Contains(severalRun(), b.app.Settings.Framework) {
		return argv
	}
	if b.scripted() {
		b.warn(b.key(nprocKey), strconv.Itoa(n), "1, or muster.command", "the package's own START runs once")
		return argv
	}
	return slices.Concat(b.several(n), argv)
}

func (b *builder) several(n int) []string {
	return []string{b.shell(), "-c", several, "muster", strconv.Itoa(n)}
}
