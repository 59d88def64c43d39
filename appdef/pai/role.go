package pai

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// roleForm is the form of a task role's name and of a port's label. The examples of the first PAI and of QIZHI have
// roles with a dash, which later versions refuse.
var (
	roleForm   = regexp.MustCompile(`^[A-Za-z0-9._~]+$`)
	dashedForm = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)
)

const wantName = "a name of letters, digits and . _ ~"

// The defaults and the least values of a task role. The least values are those of PAI's manual; its server does not
// enforce them.
const (
	defaultMemory = 100
	leastMemory   = 100
	defaultShm    = 64 // of 0.14; 0.5 gave Docker's own, which is the same
)

// role reads one task role. A role without a name of its own is checked and left out.
func (l *loading) role(c cursor) {
	c.knows(roleKeys())
	name := l.roleName(c)
	tasks := c.wholeOr("taskNumber", 1, mostNumber, 1)
	cores := c.wholeOr("cpuNumber", 1, mostNumber, 1)
	memory := c.wholeOr("memoryMB", leastMemory, mostNumber, defaultMemory)
	gpus := c.wholeOr("gpuNumber", 0, mostNumber, 0)
	shm := c.wholeOr("shmMB", 1, mostNumber, defaultShm)
	if _, given := c.get("shmMB"); given && shm > memory {
		c.badAt("shmMB", strconv.Itoa(shm), "at most memoryMB, "+strconv.Itoa(memory), "")
	}
	command := c.required("command")
	l.openNotebook(c.at("command"), command)
	ports := l.portList(c)
	failed, succeeded := l.count(c, "minFailedTaskCount", tasks), l.count(c, "minSucceededTaskCount", tasks)
	if name == "" {
		return
	}
	l.tasks += tasks
	l.add(name, c, amount{tasks, c.at("taskNumber")}, share{
		cores: amount{cores, c.at("cpuNumber")}, memory: amount{memory, c.at("memoryMB")},
		gpus: amount{gpus, c.at("gpuNumber")}, shm: amount{shm, c.at("shmMB")},
	})
	l.draft.Set(name, commandKey, cmp.Or(command, ":"), c.at("command")) // the missing command was reported
	l.setCount(name, minFailedKey, failed)
	l.setCount(name, minSuccessKey, succeeded)
	if l.version == appdef.PAI1 && (succeeded.node == nil || succeeded.node.Kind == appdef.JSONNull) {
		// the count of the file, not of the command line: counts are no part of a definition
		l.draft.Set(name, minSuccessKey, strconv.Itoa(tasks), c.at("minSucceededTaskCount"))
	}
	if l.version == appdef.PAI1 && failed.node != nil && failed.node.Kind == appdef.JSONNull {
		l.draft.Set(name, minFailedKey, "1", failed.at)
	}
	l.setPorts(name, ports, c.at("portList"))
	if n, given := c.whole("storageGB", 0, mostNumber); given {
		l.draft.Resource(name, storageKey, strconv.Itoa(n), c.at("storageGB"))
	}
}

// amount is a number of the file and its place.
type amount struct {
	n  int
	at appdef.Place
}

// share is what each task of a role gets of its host.
type share struct{ cores, memory, gpus, shm amount }

// add makes a component of a role.
func (l *loading) add(name string, c cursor, tasks amount, s share) {
	named := c.place()
	if !l.second {
		named = c.at("name")
	}
	component := l.draft.Add(name, tasks.n, named)
	component.Limits.VCores, component.Limits.MemoryMB = s.cores.n, s.memory.n
	number := strconv.Itoa(len(l.draft.App.Components) - 1)
	l.draft.App.Places[appdef.Pointer("components", number, "instances")] = tasks.at
	for key, a := range map[string]amount{
		"yarn.memory": s.memory, "yarn.vcores": s.cores, gpuKey: s.gpus, shmKey: s.shm,
	} {
		l.draft.Resource(name, key, strconv.Itoa(a.n), a.at)
	}
	l.draft.App.Places[appdef.Pointer("components", number)] = c.place()
}

// roleName is the role's name; empty if it has none of its own.
func (l *loading) roleName(c cursor) string {
	name := c.required("name")
	first, twice := l.roles[name]
	switch {
	case name == "":
		return ""
	case !dashedForm.MatchString(name):
		c.badAt("name", appdef.Quote(name), wantName, "")
		return ""
	case twice:
		c.badAt("name", "a second task role "+appdef.Quote(name), "a name of its own",
			"the first is at "+first.String())
		return ""
	}
	if !roleForm.MatchString(name) {
		c.warnAt("name", appdef.Quote(name), wantName,
			"later versions of PAI refuse the dash; variables have _ for it too")
	}
	l.roles[name] = c.at("name")
	return name
}

// count is minFailedTaskCount or minSucceededTaskCount in the file.
type count struct {
	node *appdef.JSONNode // nil: missing, or to be ignored
	n    int
	at   appdef.Place
}

func (l *loading) count(c cursor, name string, tasks int) count {
	m := c.Member(name)
	if m == nil {
		return count{}
	}
	if l.version == appdef.PAI05 {
		l.draft.App.Kept[keptPrefix+c.pointer+appdef.Pointer(name)] = m.Value()
		c.warnAt(name, "the key "+name, "killAllOnCompletedTaskNumber",
			"PAI 0.5 has no such count: it is kept, without effect")
		return count{}
	}
	if m.Kind == appdef.JSONNull {
		return count{node: m, at: c.at(name)}
	}
	n, ok := c.whole(name, 1, mostNumber)
	switch {
	case !ok:
		return count{}
	case n > tasks:
		c.badAt(name, strconv.Itoa(n), "at most taskNumber, "+strconv.Itoa(tasks), "")
		return count{}
	}
	return count{node: m, n: n, at: c.at(name)}
}

func (l *loading) setCount(role, key string, n count) {
	switch {
	case n.node == nil:
	case n.node.Kind == appdef.JSONNull:
		l.draft.SetNull(role, key, n.at)
	default:
		l.draft.Set(role, key, strconv.Itoa(n.n), n.at)
	}
}

// completion reads killAllOnCompletedTaskNumber of 0.5: that many succeeded tasks end the job, and then a single failed
// one does too. With 0 no task ends it.
func (l *loading) completion(c cursor) {
	const name = "killAllOnCompletedTaskNumber"
	n, given := c.whole(name, 0, mostNumber)
	if l.version != appdef.PAI05 {
		if m := c.Member(name); m != nil && given {
			l.draft.App.Kept[keptPrefix+appdef.Pointer(name)] = m.Value()
			c.warnAt(name, "the key "+name, "minFailedTaskCount and minSucceededTaskCount of a task role",
				"PAI "+l.version+" ignores it: it is kept, without effect")
		}
		return
	}
	if !given {
		n = 1
	}
	l.draft.Set("", totalKey, strconv.Itoa(n), c.at(name))
	switch {
	case n == 0:
		l.draft.SetNull("", minFailedKey, c.at(name))
	case given && n > l.tasks && l.tasks > 0:
		c.warnAt(name, strconv.Itoa(n), "at most the "+strconv.Itoa(l.tasks)+" tasks of the job", "it is never reached")
	}
}

// open finds a notebook's option that removes its token.
var open = regexp.MustCompile(
	`--(?:NotebookApp|ServerApp|IdentityProvider)\.token(?:=|\s+)(?:\\?["']){2}|` +
		`--(?:NotebookApp|ServerApp|IdentityProvider)\.token=(?:\s|$)`,
)

// openNotebook warns about a notebook without a token; it runs as its owner wrote it.
func (l *loading) openNotebook(at appdef.Place, command string) {
	if found := open.FindString(command); found != "" {
		option, _, _ := strings.Cut(strings.ReplaceAll(found, "=", " "), " ")
		l.found = append(l.found, at.Warning(option+" without a token", "a token",
			"whoever reaches the port runs commands there; it is run as written"))
	}
}
