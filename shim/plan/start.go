package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// teller makes the variables and files of one framework; frameworks.Env in production.
type teller func(Plan, registry.Roster) (env, files map[string]string)

// StartFacts are what only one start of the process knows.
type StartFacts struct {
	Generation     int
	Attempt        int
	Host           string         // this host's address; empty: that of the own row, else the plan's
	Ports          map[string]int // by Port.Name; nil: those of the own row; a missing port keeps the plan's
	Checkpoint     string         // newest complete checkpoint; empty: none
	CheckpointStep int64
	StatusSocket   string            // of this host
	Publisher      string            // URL of the exports and configurations, for scripts; empty: none
	Task           int               // number of the command, for a script's files
	Secrets        map[string]string // values of Process.Secrets by name
	SecretDir      string            // where the process finds them as files; empty: nowhere
	RosterText     []byte            // the sealed bytes of the roster; nil: encoded here
}

// Limits of exec (execve(2)): one string with its NUL, in bytes. A variable moves to a file well before that.
const (
	mostString   = 131_071
	mostVariable = 120_000
)

// Finish adds to a plan what the roster and the start decide: the final argument vector, environment and files (by path
// under the instance's folder). Run it on a resolved plan to start, on an unresolved one to print. Problems are those
// that make this start impossible.
func Finish(p Plan, r registry.Roster, facts StartFacts, framework teller) (Start, appdef.Problems) {
	f := finisher{plan: p, roster: r, facts: withRow(facts, p, r)}
	fill := f.filler()
	start := Start{Argv: f.argv(fill), Env: maps.Clone(p.Process.Inherited), Files: map[string]string{}}
	if start.Env == nil {
		start.Env = map[string]string{}
	}
	maps.Copy(start.Env, eachValue(p.Process.Env, fill))
	if p.Process.SecretForm != appdef.SecretsFile {
		maps.Copy(start.Env, facts.Secrets)
	}
	if facts.SecretDir != "" {
		start.Env["MUSTER_SECRET_DIR"] = facts.SecretDir
	}
	env, files := framework(p, r)
	maps.Copy(start.Env, env)
	maps.Copy(start.Files, files)
	f.musterEnv(start.Env)
	f.rosterFile(&start)
	moveLong(&start, p.Process.Folder)
	return start, f.tooLong(start.Argv)
}

// withRow fills missing facts from the instance's own row: that is what the others see.
func withRow(facts StartFacts, p Plan, r registry.Roster) StartFacts {
	i := Place(r.Rows, p.Who.Component, p.Who.Index)
	if i >= 0 && facts.Ports == nil {
		facts.Ports = r.Rows[i].Ports
	}
	if i >= 0 && facts.Host == "" {
		facts.Host = hostOf(r.Rows[i].Addr)
	}
	if facts.Host == "" {
		facts.Host = p.Allocation.Host
	}
	return facts
}

// finisher holds the state of one Finish.
type finisher struct {
	plan   Plan
	roster registry.Roster
	facts  StartFacts
}

// filler replaces every token and placeholder of the start.
func (f finisher) filler() func(string) string {
	pairs := append(portTokens(f.plan.Ports, f.facts.Ports), peerTokens(f.plan.Peers, f.portsOf)...)
	pairs = append(pairs,
		"{{checkpoint}}", f.facts.Checkpoint,
		"{{checkpoint.step}}", f.step(),
		"{{checkpoint.dir}}", f.plan.Checkpoint.Dir,
		taskToken, strconv.Itoa(f.facts.Task),
	)
	for token, value := range tensorflowTokens(f.plan.Who, f.roster) {
		pairs = append(pairs, token, value)
	}
	for _, c := range f.plan.Process.Components {
		hosts := strings.Join(f.hosts(c), ",")
		pairs = append(pairs, "${"+c+"_HOST}", hosts)
		if upper := strings.ToUpper(c); upper != c && !slices.Contains(f.plan.Process.Components, upper) {
			pairs = append(pairs, "${"+upper+"_HOST}", hosts)
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// portsOf are the ports of a component's instance with the lowest index.
func (f finisher) portsOf(component string) map[string]int {
	var first *registry.Row
	for i := range f.roster.Rows {
		row := &f.roster.Rows[i]
		if row.Component == component && (first == nil || row.Index < first.Index) {
			first = row
		}
	}
	if first == nil {
		return nil
	}
	return first.Ports
}

func (f finisher) hosts(component string) []string {
	var hosts []string
	for _, row := range f.roster.Rows {
		if row.Component == component {
			hosts = append(hosts, hostOf(row.Addr))
		}
	}
	return hosts
}

func (f finisher) step() string {
	if f.facts.Checkpoint == "" {
		return ""
	}
	return strconv.FormatInt(f.facts.CheckpointStep, 10)
}

// argv fills the command in. The resume arguments follow if there is a checkpoint, unless the command itself contains a
// placeholder for it.
func (f finisher) argv(fill func(string) string) []string {
	proc := f.plan.Process
	argv := proc.filled(fill)
	own := slices.ContainsFunc(proc.Argv[proc.Verbatim:], func(a string) bool {
		return strings.Contains(a, "{{checkpoint")
	})
	if proc.ResumeArgs == "" || f.facts.Checkpoint == "" || own || len(argv) == 0 {
		return argv
	}
	if proc.Shell {
		argv[len(argv)-1] += " " + fill(proc.ResumeArgs)
		return argv
	}
	args, err := words(proc.ResumeArgs) // Build has reported a text that cannot be split
	if err != nil {
		return argv
	}
	return append(argv, each(args, fill)...)
}

// musterEnv sets muster's own variables of this start.
func (f finisher) musterEnv(env map[string]string) {
	socket := f.facts.StatusSocket
	if f.plan.Root.Kind != RootHost {
		socket = SocketInside
	}
	maps.Copy(env, map[string]string{
		"MUSTER_HOST":          f.facts.Host,
		"MUSTER_GENERATION":    strconv.Itoa(f.facts.Generation),
		"MUSTER_ATTEMPT":       strconv.Itoa(f.facts.Attempt),
		"MUSTER_CHECKPOINT":    f.facts.Checkpoint,
		"MUSTER_STATUS_SOCKET": socket,
	})
	if f.facts.Publisher != "" {
		env["MUSTER_SLIDER_URL"] = f.facts.Publisher
	}
	if len(f.roster.Rows) > 0 {
		env["MUSTER_WORLD_SIZE"] = strconv.Itoa(f.worldSize())
	}
	if i := Place(f.roster.Rows, f.plan.Who.Component, f.plan.Who.Index); i >= 0 {
		env["MUSTER_RANK"] = strconv.Itoa(f.roster.Rows[i].Rank)
	}
}

func (f finisher) worldSize() int {
	n := 0
	for _, row := range f.roster.Rows {
		if row.Role != roleService {
			n++
		}
	}
	return n
}

// rosterFile adds the roster; a service that starts before the first roster gets none.
func (f finisher) rosterFile(start *Start) {
	if len(f.roster.Rows) == 0 {
		delete(start.Env, "MUSTER_ROSTER_FILE")
		return
	}
	text := f.facts.RosterText
	if text == nil {
		var err error
		if text, err = json.Marshal(f.roster); err != nil {
			panic("plan: encode roster: " + err.Error())
		}
	}
	start.Files[rosterFile] = string(text)
}

// moveLong moves each value that is too long for a variable into a file: X is unset, X_FILE names the file.
func moveLong(start *Start, root string) {
	for _, name := range slices.Sorted(maps.Keys(start.Env)) {
		value := start.Env[name]
		// an image may have a variable whose name cannot be a file name
		if len(value) <= mostVariable || path.Base(name) != name || name == ".." {
			continue
		}
		file := path.Join(valuesDir, name)
		start.Files[file] = value
		delete(start.Env, name)
		start.Env[name+"_FILE"] = path.Join(root, file)
	}
}

// tooLong reports arguments that exec would refuse.
func (f finisher) tooLong(argv []string) appdef.Problems {
	var out appdef.Problems
	for i, arg := range argv {
		if len(arg) > mostString {
			where := appdef.Place{File: "plan", Pointer: fmt.Sprintf("/start/argv/%d", i)}
			out = append(out, where.Problem(fmt.Sprintf("%d bytes", len(arg)),
				fmt.Sprintf("at most %d bytes in one argument", mostString),
				"a gang of this size is read from MUSTER_ROSTER_FILE or TF_CONFIG_FILE"))
		}
	}
	return out
}

// sideTeller makes the variables of a side process in addition to those of the main process; frameworks.SideEnv in
// production.
type sideTeller func(p Plan, r registry.Roster, side string) map[string]string

// FinishSide adds to a side process what the start of the main process has decided.
func FinishSide(
	p Plan, s Side, r registry.Roster, facts StartFacts, start Start, framework sideTeller,
) (argv []string, env map[string]string) {
	f := finisher{plan: p, roster: r, facts: withRow(facts, p, r)}
	fill := f.filler()
	env = maps.Clone(start.Env)
	maps.Copy(env, eachValue(s.Env, fill))
	maps.Copy(env, framework(p, r, s.Name))
	env["MUSTER_SIDE"] = s.Name
	return s.filled(fill), env
}

// Filled is the script with everything that the start knows in its configurations and commands. r may be empty: before
// the barrier the other members are unknown.
func (s *Script) Filled(p Plan, r registry.Roster, facts StartFacts) *Script {
	fill := finisher{plan: p, roster: r, facts: withRow(facts, p, r)}.filler()
	return s.each(fill)
}

// tensorflowTokens are the values of the built-in command that come from the roster. Programs that know no chief see it
// as the first worker.
func tensorflowTokens(who Who, r registry.Roster) map[string]string {
	c := ClusterOf(r)
	leading := c.Leading()
	tokens := map[string]string{
		tfPSHosts:     strings.Join(Addresses(c.PS), ","),
		tfWorkerHosts: strings.Join(Addresses(leading), ","),
		tfJobName:     who.Role,
		tfTaskIndex:   "0",
	}
	for job, rows := range map[string][]registry.Row{roleWorker: leading, rolePS: c.PS, roleEvaluator: c.Evaluators} {
		if i := Place(rows, who.Component, who.Index); i >= 0 {
			tokens[tfJobName], tokens[tfTaskIndex] = job, strconv.Itoa(i)
		}
	}
	return tokens
}

// Paths under the instance's folder.
const (
	rosterFile = "roster.json"
	// valuesDir holds the values that are too long for a variable.
	valuesDir = "app/conf/env"
)
