package systemd

import (
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/render"
)

// unitLine is one line of a unit: an assignment, or a comment where name is empty.
type unitLine struct{ name, value string }

// unit is a unit file: sections in order.
type unit struct{ b strings.Builder }

func (u *unit) section(name string, lines ...unitLine) {
	fmt.Fprintf(&u.b, "\n[%s]\n", name)
	for _, l := range lines {
		switch {
		case l.name != "":
			u.b.WriteString(l.name + "=" + l.value + "\n")
		case l.value != "":
			u.b.WriteString(render.Comment([]string{l.value}))
		}
	}
}

// unitUser is what systemd takes for a user: it would start no agent as anybody else.
var unitUser = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?$`)

// unitName is the unit's name. It has the app's, so that several apps can share a host; shim/launcher reads component
// and index behind the @.
func (w writer) unitName() string { return "muster-" + unitEscape(w.Options.AppID) }

func instanceUnit(template, component string, index int) string {
	return template + "@" + unitEscape(component) + "-" + strconv.Itoa(index) + ".service"
}

// unitEscape writes a name as a part of a unit's, as systemd-escape does but for the dash, which may stand.
func unitEscape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == ':':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// Jobs writes units of systemd.
var Jobs = render.Launcher{
	Name: "systemd", Formats: []string{"units"}, Flags: []string{"--user", "--privileged"}, CountsProcesses: true,
	Write: func(w *render.Writer) ([]render.File, error) { return writer{w}.write() },
}

type writer struct{ *render.Writer }

func (w writer) write() ([]render.File, error) {
	binary := w.Local("")
	if render.Remote(w.Options.Binary) || !path.IsAbs(binary) {
		return nil, errors.New("binary: want its absolute path on the hosts, which systemd starts it by")
	}
	if binary != path.Clean(binary) || strings.ContainsAny(binary, "'\"\\$% \t") {
		return nil, fmt.Errorf("binary %s: want a clean path without blanks and quotes", appdef.Quote(binary))
	}
	name := w.unitName()
	longest := 0
	for _, g := range w.Groups {
		longest = max(longest, len(instanceUnit(name, g.Name, g.Count)))
	}
	if longest > 255 {
		return nil, fmt.Errorf("app id %s: a unit's name has at most 255 characters", w.Options.AppID)
	}
	if !w.Options.Privileged && w.Options.TokenFile != "" && !render.PlainWord.MatchString(w.Options.TokenFile) {
		return nil, fmt.Errorf("token file %s: want a path without blanks and quotes",
			appdef.Quote(w.Options.TokenFile))
	}
	if w.Options.User != "" && !unitUser.MatchString(w.Options.User) {
		return nil, fmt.Errorf("--user %s: want a user's name or number", appdef.Quote(w.Options.User))
	}
	w.loseAll()
	files := []render.File{
		{Name: name + "@.service", Text: w.template(name, binary)}, {Name: name + ".target", Text: w.target(name)},
	}
	for _, g := range w.Groups {
		text := w.dropIn(g)
		if text == "" {
			continue
		}
		for i := range g.Count {
			at := path.Join(instanceUnit(name, g.Name, i)+".d", "limits.conf")
			files = append(files, render.File{Name: at, Text: text})
		}
	}
	return files, nil
}

func (w writer) loseAll() {
	for _, g := range w.Groups {
		if g.GPUs > 0 {
			w.Cannot("%s: %d GPUs: systemd grants none; the agent chooses and locks them on the host", g.Name, g.GPUs)
		}
		if g.Spread {
			w.Cannot("%s: each on a host of its own: systemd knows one host; enable one instance on each", g.Name)
		}
		if g.Image != "" && g.Image != appdef.HostRoot && !w.Options.Privileged {
			w.Cannot("%s: muster.image %s: an unprivileged agent has no namespaces here; --privileged runs images",
				g.Name, g.Image)
		}
		if g.Label != "" {
			w.Cannot("%s: node label %s: systemd knows one host; enable the instances where they belong",
				g.Name, g.Label)
		}
	}
	w.Cannot("another host: systemd starts an agent again on this one only")
	if w.Options.Queue != "" || w.Options.Priority != "" {
		w.Cannot("queue and priority: systemd has none")
	}
	if w.Options.Privileged && w.Options.User != "" {
		w.Cannot("--user %s: --privileged has the agents be root", w.Options.User)
	}
	if w.Options.TimeLimit > 0 {
		w.Cannot("time limit %s: RuntimeMaxSec would end one agent, not the run; muster.timeout is the app's own",
			w.Options.TimeLimit)
	}
}

func (w writer) template(name, binary string) string {
	var u unit
	window := w.LongestWindow()
	kind := "unprivileged: limits are kept in the delegated control group, without containers"
	if w.Options.Privileged {
		kind = "privileged: root, which makes containers"
	}
	how := []string{
		"Lay all files into /etc/systemd/system, each host with the instances that it runs; then",
		"  systemctl daemon-reload",
		"  systemctl start " + name + ".target",
		"  systemctl stop " + name + ".target", "",
	}
	header := w.Header("One agent of systemd, written by muster render systemd; "+kind+".",
		append(how, render.CodeLines()...)...)
	u.b.WriteString(render.Comment(header))
	u.section("Unit", []unitLine{
		{"Description", unitText("muster " + w.Options.AppID + " %i")},
		{"Documentation", "https://github.com/muster-agent/muster/blob/main/doc/launchers.md"},
		{"Wants", "network-online.target"},
		{"After", "network-online.target"},
		{"", "The target stops its instances, and is stopped when all of them are. It is there before them: " +
			"neither it nor the host's"},
		{"", "start waits for a gang to come together."},
		{"PartOf", name + ".target"},
		{"After", name + ".target"},
		{"", "What ends at once, again and again, is given up."},
		{"StartLimitIntervalSec", "10min"},
		{"StartLimitBurst", "10"},
	}...)
	u.section("Service", w.service(binary, window)...)
	u.section("Install", unitLine{"WantedBy", name + ".target"})
	return u.b.String()
}

func (w writer) service(binary string, window time.Duration) []unitLine {
	words := append(w.Start(binary, `"$STATE_DIRECTORY/.muster-`+instanceMark+`"`), w.Command("", window)...)
	lines := []unitLine{
		{"", "Ready is who has passed the barrier: that may take as long as the gang needs to come together."},
		{"Type", "notify"},
		{"NotifyAccess", "main"},
		{"TimeoutStartSec", "infinity"},
		{"WatchdogSec", "60"},
		{"", "Component and index are in the instance's name, COMPONENT-INDEX."},
		{"ExecStart", strings.ReplaceAll(unitWords(words), instanceMark, "%i")},
		{"", "Control groups below this one are the agent's: the limits of its process."},
		{"Delegate", "yes"},
		{"", "SIGTERM to the agent, which stops its process in grace; after TimeoutStopSec SIGKILL to all."},
		{"KillMode", "mixed"},
		{"KillSignal", "SIGTERM"},
		{"TimeoutStopSec", unitSpan(window)},
		{"", "The process is to be taken before its agent, and its end is no reason to end the unit."},
		{"OOMScoreAdjust", "-500"},
		{"OOMPolicy", "continue"},
		{"", "Done, or interrupted by a stop; again after a kill, a failed watchdog and the codes that say so; " +
			"never after the others."},
		{"SuccessExitStatus", render.Joined(stopCodes(launcher.Again), " ")},
		{"Restart", "on-failure"},
		{"RestartSec", "5"},
		{"RestartForceExitStatus", render.Joined(answeredBySystemd(launcher.Again, launcher.Elsewhere), " ")},
		{"RestartPreventExitStatus", render.Joined(launcher.CodesOf(launcher.Never), " ")},
		{"", "Folders: work and checkpoints, logs, what is fetched, this host's state."},
		{"StateDirectory", "muster/" + w.Options.AppID},
		{"StateDirectoryMode", "0700"},
		{"LogsDirectory", "muster/" + w.Options.AppID},
	}
	if w.Options.Privileged {
		// Of its own: systemd moves the folder when a unit with DynamicUser and one without share it, under those that
		// run.
		lines = append(lines, unitLine{"CacheDirectory", "muster-privileged"},
			unitLine{"Environment", "XDG_CACHE_HOME=%C/muster-privileged"})
		if w.Options.TokenFile != "" {
			lines = append(lines, unitLine{"Environment", unitWord("CONSUL_HTTP_TOKEN_FILE=" + w.Options.TokenFile)})
		}
		return lines
	}
	lines = append(lines, unitLine{"CacheDirectory", "muster"}, unitLine{"Environment", "XDG_CACHE_HOME=%C"})
	if w.Options.TokenFile != "" {
		lines = append(lines, unitLine{"", "Root reads it, the agents get a copy."},
			unitLine{"LoadCredential", "consul-token:" + strings.ReplaceAll(w.Options.TokenFile, "%", "%%")},
			unitLine{"Environment", "CONSUL_HTTP_TOKEN_FILE=%d/consul-token"})
	}
	return append(lines, w.unprivileged()...)
}

// instanceMark stands for the instance's name until the words are quoted.
const instanceMark = "MUSTER-UNIT-INSTANCE"

// stopCodes are the exit codes that a stop by systemd ends with.
func stopCodes(a launcher.Answer) []int {
	var out []int
	for _, n := range launcher.CodesOf(a) {
		if n == 130 || n == 143 {
			out = append(out, n)
		}
	}
	return out
}

// answeredBySystemd leaves out what only a signal makes: Restart=on-failure has it.
func answeredBySystemd(answers ...launcher.Answer) []int {
	var out []int
	for _, n := range launcher.CodesOf(answers...) {
		if n != 137 {
			out = append(out, n)
		}
	}
	return out
}

// unprivileged is what an agent and a training process have no need of (systemd-analyze security).
func (w writer) unprivileged() []unitLine {
	user := w.Options.User
	if user == "" {
		user = "muster"
	}
	lines := []unitLine{
		{"", "One user for all agents of the host; where there is no such user, one is made for as long as it is " +
			"needed."},
		{"DynamicUser", "yes"},
		{"User", user},
		{"RuntimeDirectory", "muster-agents"},
		{"RuntimeDirectoryPreserve", "yes"},
		{"Environment", "MUSTER_AGENT_STATE_DIR=%t/muster-agents/state"},
		{"", "What neither an agent nor a training process needs."},
		{"NoNewPrivileges", "yes"},
		{"CapabilityBoundingSet", ""},
		{"AmbientCapabilities", ""},
		{"RestrictSUIDSGID", "yes"},
		{"ProtectSystem", "strict"},
		{"ProtectHome", "read-only"},
		{"PrivateTmp", "yes"},
		{"UMask", "0077"},
		{"ProtectKernelTunables", "yes"},
		{"ProtectKernelModules", "yes"},
		{"ProtectKernelLogs", "yes"},
		{"ProtectClock", "yes"},
		{"ProtectHostname", "yes"},
		{"RestrictNamespaces", "yes"},
		{"RestrictRealtime", "yes"},
		{"LockPersonality", "yes"},
		{"RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6 AF_NETLINK"},
		{"SystemCallArchitectures", "native"},
		{"SystemCallFilter", "@system-service"},
		{"SystemCallErrorNumber", "EPERM"},
	}
	if !w.usesGPUs() {
		return append(lines, unitLine{"PrivateDevices", "yes"})
	}
	return append(lines,
		unitLine{"", "GPUs are devices of the host."},
		unitLine{"DevicePolicy", "closed"}, unitLine{"DeviceAllow", "char-nvidia rw"},
		unitLine{"DeviceAllow", "char-nvidia-frontend rw"},
		unitLine{"DeviceAllow", "char-nvidia-uvm rw"}, unitLine{"DeviceAllow", "char-nvidia-caps rw"})
}

func (w writer) usesGPUs() bool {
	for _, g := range w.Groups {
		if g.GPUs > 0 {
			return true
		}
	}
	return false
}

func (w writer) target(name string) string {
	var u unit
	u.b.WriteString(render.Comment([]string{"The instances of " + w.Options.AppID +
		" on this host: leave those that it is to run."}))
	lines := []unitLine{{"Description", unitText("muster " + w.Options.AppID)}}
	for _, g := range w.Groups {
		for i := range g.Count {
			lines = append(lines, unitLine{"Wants", instanceUnit(name, g.Name, i)})
		}
	}
	u.section("Unit", lines...)
	u.section("Install", unitLine{"WantedBy", "multi-user.target"})
	return u.b.String()
}

// dropIn are the limits of one instance, with the agent in them; empty: it has none.
func (w writer) dropIn(g render.Group) string {
	var lines []unitLine
	if g.MemoryMB > 0 {
		note := fmt.Sprintf("The process's limit, and %d MB for the agent.", plan.AgentMemoryMB)
		lines = append(lines, unitLine{"", note},
			unitLine{"MemoryMax", strconv.Itoa(g.MemoryMB) + "M"})
	}
	switch {
	case g.VCores > 0 && g.Hard:
		lines = append(lines, unitLine{"CPUQuota", strconv.Itoa(g.VCores*100) + "%"})
	case g.VCores > 0:
		lines = append(lines, unitLine{"", "A share where cores are short: 100 for each."},
			unitLine{"CPUWeight", strconv.Itoa(min(g.VCores*100, 10000))})
	}
	if g.Pids > 0 {
		lines = append(lines, unitLine{"", "Threads of the process, and those of the agent."},
			unitLine{"TasksMax", strconv.Itoa(g.Pids + agentTasks)})
	}
	if len(lines) == 0 {
		return ""
	}
	var u unit
	u.b.WriteString(render.Comment([]string{"Limits of " + g.Name + " of " + w.Options.AppID + "."}))
	u.section("Service", lines...)
	return u.b.String()
}

// agentTasks is room for the threads of an agent.
const agentTasks = 64

// unitSpan is a duration as systemd.time(7) has it, rounded up to milliseconds.
func unitSpan(d time.Duration) string {
	ms := int64(math.Ceil(float64(d) / float64(time.Millisecond)))
	if ms%1000 == 0 {
		return strconv.FormatInt(ms/1000, 10)
	}
	return strconv.FormatInt(ms, 10) + "ms"
}

// unitText is a text in which only `%i` is filled in.
func unitText(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(render.OneLine(text), "%", "%%"), "%%i", "%i")
}

// unitWords is a command line (systemd.service(5)): an option and its value on a line.
func unitWords(words []string) string {
	var b strings.Builder
	for i, word := range words {
		switch {
		case i == 0:
		case strings.HasPrefix(word, "-"):
			b.WriteString(" \\\n  ")
		default:
			b.WriteByte(' ')
		}
		b.WriteString(unitDollar(unitWord(word)))
	}
	return b.String()
}

// unitDollar keeps variables from being filled in; in Environment= there is nothing to fill in.
func unitDollar(word string) string { return strings.ReplaceAll(word, "$", "$$") }

// unitWord quotes a word as systemd.syntax(7) has it; `%` begins a specifier.
func unitWord(word string) string {
	if render.PlainWord.MatchString(word) {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(word) {
		switch c := word[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '%':
			b.WriteString("%%")
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
