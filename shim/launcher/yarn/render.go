package yarn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/render"
)

// What YARN is asked for where the definition does not say.
const (
	usualMemoryMB = 1024 // MB, for a component without a number
	// maxFailures of one component, beside one of each of its instances, end a service. An agent that is started
	// after the verdict is one; a host that is lost is none.
	maxFailures = 5
	// retries are the distributed shell's in one container, so far apart in milliseconds.
	retries, retryPause = 3, 5000
)

// A service as YARN's service API takes it (Hadoop 3.1 and later: Service, Component, Resource, PlacementPolicy).
type (
	service struct {
		Name          string      `json:"name"`
		Version       string      `json:"version"`
		Description   string      `json:"description"`
		Lifetime      string      `json:"lifetime,omitempty"`
		Queue         string      `json:"queue,omitempty"`
		Configuration config      `json:"configuration"`
		Components    []component `json:"components"`
	}
	component struct {
		Name               string     `json:"name"`
		NumberOfContainers int        `json:"number_of_containers"`
		LaunchCommand      string     `json:"launch_command"`
		RestartPolicy      string     `json:"restart_policy"`
		Resource           resource   `json:"resource"`
		PlacementPolicy    *placement `json:"placement_policy,omitempty"`
		Configuration      config     `json:"configuration"`
	}
	resource struct {
		CPUs       int               `json:"cpus"`
		Memory     string            `json:"memory"`
		Additional map[string]amount `json:"additional,omitempty"`
	}
	amount struct {
		Value int    `json:"value"`
		Unit  string `json:"unit"`
	}
	placement struct {
		Constraints []constraint `json:"constraints"`
	}
	constraint struct {
		Type           string   `json:"type"`
		Scope          string   `json:"scope"`
		TargetTags     []string `json:"target_tags,omitempty"`
		NodePartitions []string `json:"node_partitions,omitempty"`
	}
	config struct {
		Properties map[string]string `json:"properties,omitempty"`
		Env        map[string]string `json:"env,omitempty"`
		Files      []file            `json:"files,omitempty"`
	}
	file struct {
		Type     string `json:"type"`
		SrcFile  string `json:"src_file"`
		DestFile string `json:"dest_file"`
	}
)

const (
	// usualWindow is the usual yarn.nodemanager.sleep-delay-before-sigkill.ms.
	usualWindow = 250 * time.Millisecond
	// agentMemoryMB is what the agent and its guard take as YARN's memory monitor sees it: it counts the resident
	// pages of all processes of a container, those of the agent's binary too, and kills the container that has one
	// more than was asked for.
	agentMemoryMB = 64
)

// Jobs writes services of YARN, or scripts for its distributed shell.
var Jobs = render.Launcher{
	Name: "yarn", Formats: []string{"service", "shell"}, // shell: the command line of the distributed shell
	Flags:         []string{"--driver-memory", "--driver-cores"},
	AgentMemoryMB: agentMemoryMB, Window: render.ClusterWindow(usualWindow),
	Write: func(w *render.Writer) ([]render.File, error) { return writer{w}.write() },
}

type writer struct{ *render.Writer }

func (w writer) write() ([]render.File, error) {
	if len(w.Groups) == 0 {
		return nil, errors.New("no instances: there is nothing for YARN to start")
	}
	if binary := w.Local(""); !render.Remote(w.Options.Binary) && !path.IsAbs(binary) {
		return nil, fmt.Errorf("binary %s: want its absolute path on the nodes, or a URL", binary)
	}
	// The distributed shell's client writes it into its master's command line as it is.
	if token := w.Options.TokenFile; w.Options.Format == "shell" && token != "" &&
		!render.PlainWord.MatchString(token) {
		return nil, fmt.Errorf("token file %s: want a path without blanks and signs that a shell reads",
			appdef.Quote(token))
	}
	if err := w.FetchedBinary(); err != nil {
		return nil, err
	}
	w.loseAll()
	if w.Options.Format == "shell" {
		return w.shell()
	}
	return w.service()
}

func (w writer) loseAll() {
	for _, g := range w.Groups {
		if g.GPUType != "" {
			w.Cannot("%s: GPU model %s: YARN grants GPUs by number; give the nodes that have it a label "+
				"(yarn.label.expression)", g.Name, g.GPUType)
		}
		if g.VCores == appdef.Max {
			w.Cannot("%s: vcores max: YARN grants what it is asked for, 1 here", g.Name)
		}
		if g.MemoryMB == 0 {
			w.Cannot("%s: memory: %d MB, for want of a number", g.Name, usualMemoryMB)
		}
	}
	w.loseImages()
	w.Cannot("kill time-out: %s of the cluster's yarn.nodemanager.sleep-delay-before-sigkill.ms; a stop by YARN "+
		"leaves no grace to speak of", w.LongestWindow())
}

// loseImages says which images will not run as they are to: agents are ordinary users, whoever YARN runs them as.
func (w writer) loseImages() {
	engine := ""
	for i, word := range w.Options.AgentFlags {
		if before := w.Options.AgentFlags[max(i-1, 0)]; before == "--engine" {
			engine = word
		}
	}
	for i := range w.App.Components {
		c := &w.App.Components[i]
		if l := c.Limits; c.Instances == 0 || l.Image == "" || l.Image == appdef.HostRoot {
			continue
		}
		if engine != "" && engine != "auto" && engine != "container" {
			w.Cannot("%s: muster.image %s: --engine %s runs none, and the agent ends with 77; leave it out, or say "+
				"--engine container", c.Name, c.Limits.Image, engine)
		}
		if user, _, _ := strings.Cut(c.Limits.User, ":"); user != "" && user != "0" && user != "root" {
			w.Cannot("%s: muster.user %s: YARN's containers are an ordinary user's, and an image runs as 0 there, who "+
				"is that user outside; leave it out, or the agent ends with 77", c.Name, c.Limits.User)
		}
	}
}

// ServiceName is a name of a service or a component: lower case, a letter first.
func ServiceName(name string) string {
	name = render.DNSLabel(name)
	if name == "" || name[0] < 'a' {
		return "m-" + name
	}
	return name
}

func (w writer) service() ([]render.File, error) {
	name := ServiceName(w.Options.AppID)
	service := service{
		Name: name, Version: w.Options.Run, Queue: w.Options.Queue, Lifetime: "-1",
		Configuration: config{Properties: map[string]string{
			"yarn.service.container-failure.retry.max": "0",
		}},
	}
	if w.Options.TimeLimit > 0 {
		service.Lifetime = strconv.Itoa(render.WholeSeconds(w.Options.TimeLimit))
	}
	if w.Options.MasterMemoryMB > 0 {
		service.Configuration.Properties["yarn.service.am-resource.memory"] = strconv.Itoa(w.Options.MasterMemoryMB)
	}
	w.logPatterns(service.Configuration.Properties)
	if w.Options.MasterVCores > 0 {
		w.Cannot("vcores of the ApplicationMaster: YARN's service framework takes its memory alone")
	}
	seen := map[string]string{}
	for _, g := range w.Groups {
		c, err := w.component(g)
		if err != nil {
			return nil, err
		}
		if other, taken := seen[c.Name]; taken {
			return nil, fmt.Errorf("components %s and %s: YARN wants names that differ in more than case and signs",
				other, g.Name)
		}
		seen[c.Name] = g.Name
		service.Components = append(service.Components, c)
	}
	var err error
	if w.Priority, err = priorityOf(w.Options.Priority); err != nil {
		return nil, err
	}
	if w.Priority != "" && !w.Options.Starts {
		w.Cannot("priority %s: a service's definition has none: yarn application -appId ID -updatePriority %s says it "+
			"after the launch, and muster submit by itself", w.Options.Priority, w.Priority)
	}
	w.Cannot("exit codes: YARN's services start an agent again after any but 0, until a component has failed as "+
		"often as it has instances, and %d times more; one that is started after the verdict ends with it at once",
		maxFailures)
	service.Description = strings.Join(nonEmpty(w.Header("A service of YARN, written by muster render yarn.",
		"yarn app -launch "+name+" "+name+".json")), " | ")
	text, err := indented(service)
	return []render.File{{Name: name + ".json", Text: text}}, err
}

// logPatterns say which files of the log folders YARN gathers at the end. Slider's packages say it for each component;
// YARN takes one word for the whole service, so that what the components do not agree on is gathered. YARN reads the
// patterns as Java's regular expressions, as it did of Slider.
func (w writer) logPatterns(properties map[string]string) {
	include, exclude := map[string]bool{}, map[string]bool{}
	for i := range w.App.Components {
		l := w.App.Components[i].Limits
		include[l.LogInclude], exclude[l.LogExclude] = true, true
	}
	if !include[""] {
		properties["yarn.service.log.include-pattern"] = strings.Join(slices.Sorted(maps.Keys(include)), "|")
	} else if len(include) > 1 {
		w.Cannot("yarn.log.include.patterns: of some components alone; YARN gathers the logs of all")
	}
	switch {
	case len(exclude) > 1:
		w.Cannot("yarn.log.exclude.patterns: they differ between components; YARN excludes none")
	case !exclude[""]:
		properties["yarn.service.log.exclude-pattern"] = slices.Sorted(maps.Keys(exclude))[0]
	}
}

func nonEmpty(lines []string) []string {
	var out []string
	for _, line := range lines {
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

// indented is JSON for people: `<` and `&` stay as they are.
func indented(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.String(), err
}

func (w writer) component(g render.Group) (component, error) {
	c := component{
		Name: ServiceName(g.Name), NumberOfContainers: g.Count, RestartPolicy: "ON_FAILURE",
		LaunchCommand: command(w.start(g)),
		Resource:      resource{CPUs: max(g.VCores, 1), Memory: strconv.Itoa(memoryMB(g))},
	}
	failures := strconv.Itoa(g.Count + maxFailures)
	c.Configuration.Properties = map[string]string{
		"yarn.service.container-failure-per-component.threshold": failures,
		// A run that is over ends each agent at once: a master that avoided hosts for it, after three failures by
		// default, would find none at last. The next master, which inherits what is avoided, would wait for ever. No
		// number of failures that ends the service is high enough: more of them come in while the master goes.
		"yarn.service.node-blacklist.threshold": strconv.Itoa(math.MaxInt32),
	}
	if render.Remote(w.Options.Binary) {
		for _, one := range w.fetched() {
			c.Configuration.Files = append(c.Configuration.Files, file{"STATIC", one[0], one[1]})
		}
	}
	if g.GPUs > 0 {
		c.Resource.Additional = map[string]amount{"yarn.io/gpu": {Value: g.GPUs}}
	}
	if w.Options.TokenFile != "" {
		if strings.Contains(w.Options.TokenFile, "${") {
			return c, fmt.Errorf("token file %s: YARN's services would fill in ${…}", w.Options.TokenFile)
		}
		c.Configuration.Env = map[string]string{"CONSUL_HTTP_TOKEN_FILE": w.Options.TokenFile}
	}
	var constraints []constraint
	if g.Spread {
		constraints = append(constraints, constraint{
			Type: "ANTI_AFFINITY", Scope: "NODE", TargetTags: []string{c.Name},
		})
	}
	if g.Label != "" {
		constraints = append(constraints, constraint{
			Type: "AFFINITY", Scope: "NODE", NodePartitions: []string{g.Label},
		})
	}
	if len(constraints) > 0 {
		c.PlacementPolicy = &placement{constraints}
	}
	return c, nil
}

func memoryMB(g render.Group) int {
	if g.MemoryMB == 0 {
		return usualMemoryMB
	}
	return g.MemoryMB
}

// command is a command as a container's launch script runs it: between double quotes of one shell, by another. Before
// that a NodeManager fills in `{{NAME}}`, `<LOG_DIR>` and the like, and services fill in `${NAME}`: none of them is
// left whole.
func command(words []string) string { return inDoubleQuotes(shellText(words)) }

// brokenUp parts what is filled in by an empty pair of quotes, inside a word between single ones.
var brokenUp = strings.NewReplacer("{{", "{''{", "}}", "}''}", "<LOG_DIR>", "<''LOG_DIR>", "<CPS>", "<''CPS>",
	"<ADD_OPENS>", "<''ADD_OPENS>", "${", "$''{")

func shellText(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = word
		if !render.PlainWord.MatchString(word) {
			parts := strings.Split(word, "'")
			for i, part := range parts {
				parts[i] = brokenRuns(part)
			}
			out[i] = "'" + strings.Join(parts, `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// brokenRuns breaks up all of a text: of `{{{` the replacer takes the first two, and what it leaves must not meet the
// third.
func brokenRuns(text string) string {
	for {
		next := brokenUp.Replace(text)
		if next == text {
			return text
		}
		text = next
	}
}

func inDoubleQuotes(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text)
}

// shellTimeout is how long the distributed shell's client lets the application live, in milliseconds: the most it can
// be told.
const shellTimeout = math.MaxInt32

// shell is a script that submits one application, or one for each component where they are of different sizes: the
// distributed shell knows one kind of container.
func (w writer) shell() ([]render.File, error) {
	parts := w.Groups
	if w.OneSize() {
		one := w.Groups[0]
		one.Name, one.Count = "", w.Instances()
		one.Window = w.LongestWindow()
		one.Command = w.Command("", one.Window)
		parts = []render.Group{one}
	}
	priority, err := priorityOf(w.Options.Priority)
	if err != nil {
		return nil, err
	}
	var commands []string
	for _, g := range parts {
		if g.Spread {
			w.Cannot("%s: each on a host of its own: the distributed shell places containers anywhere", g.Name)
		}
		commands = append(commands, w.application(g, priority, len(parts) > 1))
	}
	if w.Options.TimeLimit == 0 {
		w.Cannot("time: the client ends an application after %d days at the latest",
			shellTimeout/int(24*time.Hour/time.Millisecond))
	}
	how := []string{
		"  bash " + w.Options.AppID + ".yarn.sh", "",
		"Its clients follow their applications, and end with 0 where all containers did.", "",
	}
	header := w.Header("Applications of YARN's distributed shell, written by muster render yarn.",
		append(how, render.CodeLines()...)...)
	text := "#!/bin/bash\n" + render.Comment(header) + scriptHead
	if w.Options.TimeLimit > 0 {
		text += fmt.Sprintf(scriptLimited, render.WholeSeconds(w.Options.TimeLimit))
	}
	if render.Remote(w.Options.Binary) {
		var lines strings.Builder
		for _, one := range w.fetched() {
			words := []string{"hdfs", "dfs", "-get", one[0], ""}
			lines.WriteString(render.ShellLines("  ", words, map[int]string{4: `"$brought"/` + one[1]}) + "\n")
		}
		text += scriptBring + lines.String()
	}
	text += strings.Join(commands, "")
	if len(parts) > 1 {
		text += "\nstatus=0\nfor client in \"${clients[@]}\"; do\n\twait \"$client\" || status=$?\ndone\nexit " +
			"\"$status\"\n"
	}
	return []render.File{{Name: w.Options.AppID + ".yarn.sh", Text: text}}, nil
}

// shellTime is how long an application may take, in milliseconds.
func (w writer) shellTime() string {
	if w.Options.TimeLimit > 0 {
		return strconv.FormatInt(min(w.Options.TimeLimit.Milliseconds(), shellTimeout), 10)
	}
	return strconv.Itoa(shellTimeout)
}

const scriptHead = `set -euo pipefail

# The distributed shell comes with Hadoop, and so do its clients.
if [ -n "${HADOOP_HOME:-}" ]; then
	PATH=$HADOOP_HOME/bin:$PATH
fi
if [ -z "${DISTRIBUTED_SHELL_JAR:-}" ]; then
	for jar in "${HADOOP_HOME:?}"/share/hadoop/yarn/hadoop-yarn-applications-distributedshell-[0-9]*.jar; do
		DISTRIBUTED_SHELL_JAR=$jar
	done
fi
clients=()
`

// scriptLimited tells YARN of the time limit before the client reports the application: a user who follows its output
// may end the client then.
const scriptLimited = `
# A client holds the time for as long as it lives; the ResourceManager holds it to the end.
limited() {
	local line id
	"$@" 2>&1 | while IFS= read -r line; do
		case $line in *"Submitted application application_"*)
			id=application_${line##*Submitted application application_}
			id=${id%%%%[!a-z0-9_]*}
			yarn application -appId "$id" -updateLifetime %d </dev/null >&2 ` +
	`|| yarn application -kill "$id" </dev/null >&2
			;;
		esac
		printf '%%s\n' "$line"
	done
}
`

// scriptBring finds Hadoop's commands. A container's PATH may lack them: bash has its own there, whatever the
// NodeManager's is.
const scriptBring = `
# The client takes files of this host along to the containers, and of no other place.
brought=$(mktemp -d)
trap 'rm -rf "$brought"' EXIT
`

// priorityOf is a number as YARN has it; HBox's words are those of its own table.
func priorityOf(text string) (string, error) {
	if n, ok := map[string]string{
		"DEFAULT": "0", "VERY_LOW": "0", "LOW": "1", "NORMAL": "2", "HIGH": "3",
		"VERY_HIGH": "4",
	}[strings.ToUpper(text)]; ok {
		return n, nil
	}
	if n, err := strconv.Atoi(text); text != "" && (err != nil || n < 0) {
		return "", fmt.Errorf("priority %s: want a number, or DEFAULT, VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH",
			appdef.Quote(text))
	}
	return text, nil
}

func (w writer) application(g render.Group, priority string, several bool) string {
	name := w.Options.AppID
	if g.Name != "" {
		name += "-" + g.Name
	}
	w.Applications = append(w.Applications, name)
	words := []string{
		"yarn", "jar", "", "org.apache.hadoop.yarn.applications.distributedshell.Client",
		"-jar", "", "-appname", name, "-num_containers", strconv.Itoa(g.Count),
		"-container_resources", resources(g), "-timeout", w.shellTime(),
		"-container_retry_policy", "2", "-container_retry_error_codes",
		render.Joined(exits(launcher.CodesOf(launcher.Again, launcher.Elsewhere)), ","),
		"-container_max_retries", strconv.Itoa(retries), "-container_retry_interval", strconv.Itoa(retryPause),
		// A master that is lost with its host is no reason to end the others.
		"-keep_containers_across_application_attempts",
	}
	filled := map[int]string{2: `"$DISTRIBUTED_SHELL_JAR"`, 5: `"$DISTRIBUTED_SHELL_JAR"`}
	option := func(name, value string) {
		if value != "" {
			words = append(words, name, value)
		}
	}
	option("-queue", w.Options.Queue)
	option("-priority", priority)
	option("-node_label_expression", g.Label)
	if w.Options.MasterMemoryMB > 0 {
		option("-master_memory", strconv.Itoa(w.Options.MasterMemoryMB))
	}
	if w.Options.MasterVCores > 0 {
		option("-master_vcores", strconv.Itoa(w.Options.MasterVCores))
	}
	if w.Options.TokenFile != "" {
		option("-shell_env", "CONSUL_HTTP_TOKEN_FILE="+w.Options.TokenFile)
	}
	if render.Remote(w.Options.Binary) {
		var brought []string
		for _, one := range w.fetched() {
			brought = append(brought, `"$brought"/`+one[1])
		}
		filled[len(words)+1] = strings.Join(brought, ",")
		words = append(words, "-localize_files", "")
	}
	// The container ends as the agent does.
	words = append(words, "-shell_command", "exec "+command(w.start(g)))
	text := "\n"
	if w.Options.TimeLimit > 0 {
		text += "limited "
	}
	text += render.ShellLines("  ", words, filled)
	if several {
		text += " &\nclients+=($!)"
	}
	return text + "\n"
}

// fetched are the programs that are brought from a store, by their URL and their name in the container's folder.
func (w writer) fetched() [][2]string {
	all := [][2]string{{w.Options.Binary, render.BinaryName}}
	if render.Remote(w.Options.Helper) {
		all = append(all, [2]string{w.Options.Helper, render.HelperName})
	}
	return all
}

// start is what a container runs. Files of a store are checked in the container: YARN knows no digests.
func (w writer) start(g render.Group) []string {
	binary := w.Local("")
	if render.Remote(w.Options.Binary) {
		binary = "./" + binary
	}
	return append(w.Start(binary, `"$PWD/.muster-bin"`), g.Command...)
}

// resources are those of one container of the distributed shell.
func resources(g render.Group) string {
	text := "memory-mb=" + strconv.Itoa(memoryMB(g)) + ",vcores=" + strconv.Itoa(max(g.VCores, 1))
	if g.GPUs > 0 {
		text += ",yarn.io/gpu=" + strconv.Itoa(g.GPUs)
	}
	return text
}

// exits are those codes of an agent that a program ends with by itself, no signal.
func exits(list []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(n int) bool { return n > 128 })
}
