package plan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// sides are the side processes of the instance.
func (b *builder) sides(p Plan) []Side {
	for _, s := range b.component.Settings.Sides {
		at := b.key("muster.side." + s.Name + ".index")
		switch {
		case s.Name == appdef.FrameworkSide(b.app.Settings.Framework):
			if s.Index > 0 {
				b.warn(at, strconv.Itoa(s.Index), "no value",
					"the "+s.Name+" runs beside the first of those that train")
			}
		case s.Index >= b.component.Instances:
			b.warn(at, strconv.Itoa(s.Index), "0 to "+strconv.Itoa(b.component.Instances-1),
				"the side process "+s.Name+" runs nowhere")
		}
	}
	var out []Side
	for _, s := range sidesOf(b.app, b.component.Name, b.req.Index) {
		out = append(out, b.side(p, s))
	}
	return out
}

func (b *builder) side(p Plan, s beside) Side {
	key := "muster.side." + s.Name
	out := Side{Name: s.Name, Restart: s.Restart, Finishes: s.framework && s.Name != SideRendezvous, Why: key}
	if s.Port {
		out.Port, out.HTTP = appdef.SidePort(s.Name), s.HTTP
	}
	switch {
	case s.Key && s.framework:
		b.problem(b.key(key+".key"), key+".key=true of the framework's own", "no value", "its processes know no key")
	case s.Key && !s.Port:
		b.problem(b.key(key+".key"), key+".key=true without a port", key+".port=true, too", "")
	case s.Key:
		out.Inner = appdef.SideInnerPort(s.Name)
	}
	b.behindKey(s, key)
	b.withoutPort(s, key)
	if s.HTTP && !s.Port {
		b.problem(b.key(key+".http"), key+".http=true without a port", key+".port=true, too", "")
	}
	b.history(s, &out)
	if s.framework {
		out.Why = "muster.framework=" + b.app.Settings.Framework
	}
	switch {
	case s.Command != "":
		out.Argv, out.Why = []string{b.shell(), "-c", b.shellText(key, s.Command)}, key
	case s.framework && s.Name == SideTracker:
		out.Argv = []string{b.python(), "-c", trackerProgram}
	case s.framework && s.Name == SideRendezvous:
		out.Argv = []string{b.python(), "-c", rendezvousProgram}
	case s.framework:
		out.Argv, out.Verbatim, out.Literal = slices.Clone(p.Process.Argv), p.Process.Verbatim, p.Process.Literal
	default:
		out.Argv = []string{}
		b.problem(b.key(key), "no command of the side process "+s.Name, key, "give "+key+" the text that a shell runs")
	}
	if s.framework && s.Name == SideScheduler {
		out.Env = map[string]string{"DMLC_ROLE": SideScheduler}
	}
	return out
}

// behindKey reports a command that would listen where the agent does, or at a port that is not there.
func (b *builder) behindKey(s beside, key string) {
	port, inner := portToken+appdef.SidePort(s.Name)+"}}", portToken+appdef.SideInnerPort(s.Name)+"}}"
	portVar, innerVar := portVariable(appdef.SidePort(s.Name)), portVariable(appdef.SideInnerPort(s.Name))
	const listens = ", at which the agent asks for a key"
	switch {
	case s.Key && (strings.Contains(s.Command, inner) || namesVariable(s.Command, innerVar)):
	case s.Key && strings.Contains(s.Command, port):
		b.problem(b.key(key), port+" in "+key+listens, inner+", at 127.0.0.1", "")
	case s.Key && namesVariable(s.Command, portVar):
		b.problem(b.key(key), portVar+" in "+key+listens, innerVar+", at 127.0.0.1", "")
	case !s.Key && strings.Contains(s.Command, inner):
		b.problem(b.key(key), inner+" in "+key, port+", or "+key+".key=true", "without a key there is no second port")
	}
}

// namesVariable tells whether the text of a shell, or of a program in it, names a variable of the environment: whole,
// as that of one port may begin that of another.
func namesVariable(text, name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(text)
}

// withoutPort reports a command that names the port of a side process that has none: the program would get the text.
func (b *builder) withoutPort(s beside, key string) {
	for _, other := range b.component.Settings.Sides {
		name := appdef.SidePort(other.Name)
		has := other.Port || other.Name == appdef.FrameworkSide(b.app.Settings.Framework) ||
			slices.ContainsFunc(b.ports, func(p Port) bool { return p.Name == name })
		if token := portToken + name + "}}"; !has && strings.Contains(s.Command, token) {
			b.problem(b.key(key), token+" in "+key, "muster.side."+other.Name+".port=true",
				"without it there is no port")
		}
	}
}

// history is where the folder of a side process is kept.
func (b *builder) history(s beside, out *Side) {
	key := "muster.side." + s.Name
	if s.History == "" {
		return
	}
	own := key + ".history"
	switch {
	case s.Folder == "":
		b.problem(b.key(own), own+" without a folder", key+".folder, too", "")
	case s.Index == appdef.EveryIndex && b.component.Instances > 1:
		b.problem(b.key(own), own+" of each instance", key+".index, too", "one place is for one folder")
	}
	url, ok := b.location(own, b.text(own, s.History))
	if scheme := schemeOf(url); ok && slices.Contains(Stores(), scheme) && !slices.Contains(writable(), scheme) {
		b.cannot(b.key(own), scheme+": in "+appdef.Quote(url), strings.Join(writable(), ": or ")+": or a path",
			"nothing is left on a web server")
	}
	out.Folder, out.History = s.Folder, url
}

// trackerProgram runs the tracker of the installed xgboost: up to 2.0 it gets the number of its workers at the start
// and is joined, from 2.1 on it is waited for.
const trackerProgram = `import os
from xgboost.tracker import RabitTracker
workers = int(os.environ["DMLC_NUM_WORKER"])
tracker = RabitTracker(n_workers=workers, host_ip=os.environ["MUSTER_HOST"], ` +
	`port=int(os.environ["MUSTER_PORT_SIDE_TRACKER"]))
if hasattr(tracker, "wait_for"):
    tracker.start()
    tracker.wait_for()
else:
    tracker.start(workers)
    tracker.join()
`

// rendezvousProgram runs the rendezvous of the installed Horovod, as its own launcher does, at our port. It listens
// before it loads Horovod: the processes try to connect for a second and a half. It has no authentication, so it
// listens at the instance's own address, but not where that is a name, which may mean another address here, or is
// translated.
const rendezvousProgram = `import os, socket
host, port = os.environ["MUSTER_HOST"], int(os.environ["MUSTER_PORT_SIDE_RENDEZVOUS"])
try:
    socket.inet_pton(socket.AF_INET, host)
    listener = socket.create_server((host, port), backlog=1024)
except OSError:
    listener = socket.create_server(("", port), backlog=1024)
from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer
class Server(RendezvousHTTPServer):
    def server_bind(self):
        self.socket.close()
        self.socket = listener
        self.server_address = listener.getsockname()
    def server_activate(self):
        pass
server = Server(("", 0), RendezvousHandler, 0)
hosts = parse_hosts(os.environ["MUSTER_HOROVOD_HOSTS"])
server.init(get_host_assignments(hosts, int(os.environ["HOROVOD_SIZE"])))
server.serve_forever()
`
