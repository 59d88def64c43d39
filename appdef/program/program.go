package program

import (
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/shellwords"
)

// Program is what a command line says of a job of one program.
type Program struct {
	Name      string   // of the app
	Framework string   // a value of muster.framework
	Words     []string // the command; a shell adds nothing to them
	Files     bool     // the package has the folder Folder, in which the command runs

	MemoryMB   int // of each instance; 0: all that there is
	GPUs       int // of each instance but parameter servers
	Image      string
	Checkpoint string // the folder of checkpoints: a path or a URL; "": muster's

	counts []count
}

// count is how many instances a component has.
type count struct {
	component string
	n         int
}

// Folder is the folder of the package with the program's files.
const Folder = "files"

const (
	worker = "worker"
	server = "ps"
)

// traits are how the job of a framework differs from one of workers that know of each other by host:port.
var traits = map[string]struct {
	portless bool // the processes find each other without exports
	servers  bool // it needs parameter servers
	servable bool // it can have them
}{
	"tensorflow": {servable: true}, "mxnet": {servers: true, servable: true}, "none": {servable: true},
	"mpi": {portless: true}, "horovod-gloo": {portless: true},
}

// Frameworks are those of which a line can be, sorted. Other values of muster.framework need a package.
func Frameworks() []string {
	return []string{"horovod-gloo", "jax", "lightgbm", "mpi", "mxnet", "none", "pytorch", "tensorflow", "xgboost"}
}

// App is the definition. Problems are of the line's options.
func (p Program) App() (appdef.App, appdef.Problems) {
	at := appdef.Place{File: "command line"}
	d := appdef.NewDraft("slider", p.Name, at)
	t := traits[p.Framework]
	names := make([]string, 0, len(p.counts))
	for _, c := range p.counts {
		names = append(names, c.component)
	}
	switch has := slices.Contains(names, server); {
	case has && !t.servable:
		d.Found(at.Problem("ps with the framework "+p.Framework, "worker", "it has no parameter servers"))
	case !has && t.servers:
		d.Found(at.Problem("no ps with the framework "+p.Framework, "ps=1,worker=N", "it has parameter servers"))
	}
	for _, c := range p.counts {
		one := d.Add(c.component, c.n, at)
		one.Limits.MemoryMB = appdef.Max
		if p.MemoryMB > 0 {
			one.Limits.MemoryMB = p.MemoryMB
		}
		if !t.portless {
			port := "site.global." + c.component + ".port"
			d.Set("", port, "${"+c.component+".ALLOCATED_PORT}{PER_CONTAINER}", at)
			d.Export(c.component, "host_port", "${"+c.component+"_HOST}:${"+port+"}")
		}
		if p.GPUs > 0 && c.component != server {
			d.Resource(c.component, "yarn.io/gpu", strconv.Itoa(p.GPUs), at)
		}
	}
	d.Set("", "muster.framework", p.Framework, at)
	d.Set("", "muster.command", p.command(), at)
	for key, value := range map[string]string{"muster.image": p.Image, "muster.checkpoint.dir": p.Checkpoint} {
		if value != "" {
			d.Set("", key, value, at)
		}
	}
	app, found := d.Finish()
	if p.Files {
		app.Packages = []appdef.Package{{Type: "folder", Name: Folder}}
	}
	return app, found
}

// command runs the words where the program's files are.
func (p Program) command() string {
	text := "exec " + shellwords.Text(p.Words)
	if p.Files {
		text = `cd "${AGENT_WORK_ROOT}/app/install" && ` + text
	}
	return text
}

// Count reads how many instances there are: COMPONENT=N,… or N alone, which is that many workers. It tells whether
// the text is one of the two.
func (p *Program) Count(text string) bool {
	all, ok := parseCounts(text)
	p.counts = all
	return ok
}

func parseCounts(text string) ([]count, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return []count{{worker, n}}, n > 0
	}
	var all []count
	for part := range strings.SplitSeq(text, ",") {
		name, number, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		twice := slices.ContainsFunc(all, func(c count) bool { return c.component == name })
		if !ok || err != nil || n < 1 || twice || !appdef.ValidName(name) {
			return nil, false
		}
		all = append(all, count{name, n})
	}
	return all, true
}
