package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/launcher"
)

// What YARN is asked for where the definition does not say.
const (
	yarnMemory = 1024 // MB, for a component without a number
	// yarnFailures of one component, beside one of each of its instances, end a service. An agent that is started after the
	// verdict is one; a host that is lost is none.
	yarnFailures = 5
	// yarnRetries are the distributed shell's in one container, so far apart in milliseconds.
	yarnRetries, yarnPause = 3, 5000
)

// A service as YARN's service API takes it (Hadoop 3.1 and later: Service, Component, Resource, PlacementPolicy).
type (
	yarnService struct {
		Name          string          `json:"name"`
		Version       string          `json:"version"`
		Description   string          `json:"description"`
		Lifetime      string          `json:"lifetime,omitempty"`
		Queue         string          `json:"queue,omitempty"`
		Configuration yarnConfig      `json:"configuration"`
		Components    []yarnComponent `json:"components"`
	}
	yarnComponent struct {
		Name               string         `json:"name"`
		NumberOfContainers int            `json:"number_of_containers"`
		LaunchCommand      string         `json:"launch_command"`
		RestartPolicy      string         `json:"restart_policy"`
		Resource           yarnResource   `json:"resource"`
		PlacementPolicy    *yarnPlacement `json:"placement_policy,omitempty"`
		Configuration      yarnConfig     `json:"configuration"`
	}
	yarnResource struct {
		CPUs       int                   `json:"cpus"`
		Memory     string                `json:"memory"`
		Additional map[string]yarnAmount `json:"additional,omitempty"`
	}
	yarnAmount struct {
		Value int    `json:"value"`
		Unit  string `json:"unit"`
	}
	yarnPlacement struct {
		Constraints []yarnConstraint `json:"constraints"`
	}
	yarnConstraint struct {
		Type           string   `json:"type"`
		Scope          string   `json:"scope"`
		TargetTags     []string `json:"target_tags,omitempty"`
		NodePartitions []string `json:"node_partitions,omitempty"`
	}
	yarnConfig struct {
		Properties map[string]string `json:"properties,omitempty"`
		Env        map[string]string `json:"env,omitempty"`
		Files      []yarnFile        `json:"files,omitempty"`
	}
	yarnFile struct {
		Type     string `json:"type"`
		SrcFile  string `json:"src_file"`
		DestFile string `json:"dest_file"`
	}
)

func (w *writer) yarn() ([]File, error) {
	if len(w.groups) == 0 {
		return nil, errors.New("no instances: there is nothing for YARN to start")
	}
	if binary := w.local(""); !remote(w.o.Binary) && !path.IsAbs(binary) {
		return nil, fmt.Errorf("binary %s: want its absolute path on the nodes, or a URL", binary)
	}
	// The distributed shell's client writes it into its master's command line as it is.
	if token := w.o.TokenFile; w.o.Format == "shell" && token != "" && !plainWord.MatchString(token) {
		return nil, fmt.Errorf("token file %s: want a path without blanks and signs that a shell reads", appdef.Quote(token))
	}
	w.loseOfYARN()
	if w.o.Format == "shell" {
		return w.yarnShell()
	}
	return w.yarnService()
}

func (w *writer) loseOfYARN() {
	for _, g := range w.groups {
		if g.gpuType != "" {
			w.lose("%s: GPU model %s: YARN grants GPUs by number; give the nodes that have it a label (yarn.label.expression)", g.name, g.gpuType)
		}
		if g.vcores == appdef.Max {
			w.lose("%s: vcores max: YARN grants what it is asked for, 1 here", g.name)
		}
		if g.memory == 0 {
			w.lose("%s: memory: %d MB, for want of a number", g.name, yarnMemory)
		}
	}
	w.lose("kill time-out: %s of the cluster's yarn.nodemanager.sleep-delay-before-sigkill.ms; a stop by YARN leaves no grace to speak of", w.longestWindow())
}

// yarnName is a name of a service or a component: lower case, a letter first.
func yarnName(name string) string {
	name = dnsLabel(name)
	if name == "" || name[0] < 'a' {
		return "m-" + name
	}
	return name
}

func (w *writer) yarnService() ([]File, error) {
	name := yarnName(w.o.AppID)
	service := yarnService{
		Name: name, Version: w.o.Run, Queue: w.o.Queue, Lifetime: "-1",
		Configuration: yarnConfig{Properties: map[string]string{
			"yarn.service.container-failure.retry.max": "0",
		}},
	}
	if w.o.TimeLimit > 0 {
		service.Lifetime = strconv.Itoa(wholeSeconds(w.o.TimeLimit))
	}
	if w.o.MasterMemoryMB > 0 {
		service.Configuration.Properties["yarn.service.am-resource.memory"] = strconv.Itoa(w.o.MasterMemoryMB)
	}
	if w.o.MasterVCores > 0 {
		w.lose("vcores of the ApplicationMaster: YARN's service framework takes its memory alone")
	}
	seen := map[string]string{}
	for _, g := range w.groups {
		c, err := w.yarnComponent(g)
		if err != nil {
			return nil, err
		}
		if other, taken := seen[c.Name]; taken {
			return nil, fmt.Errorf("components %s and %s: YARN wants names that differ in more than case and signs", other, g.name)
		}
		seen[c.Name] = g.name
		service.Components = append(service.Components, c)
	}
	if w.o.Priority != "" {
		w.lose("priority %s: YARN's service API has none; that of the queue holds", w.o.Priority)
	}
	w.lose("exit codes: YARN's services start an agent again after any but 0, until a component has failed as often as it has instances, and %d times more; one that is started after the verdict ends with it at once", yarnFailures)
	service.Description = strings.Join(nonEmpty(w.header("A service of YARN, written by muster render yarn.", "yarn app -launch "+name+" "+name+".json")), " | ")
	text, err := indented(service)
	return []File{{name + ".json", text}}, err
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

func (w *writer) yarnComponent(g group) (yarnComponent, error) {
	c := yarnComponent{
		Name: yarnName(g.name), NumberOfContainers: g.count, RestartPolicy: "ON_FAILURE",
		LaunchCommand: yarnCommand(append([]string{w.local(".")}, g.command...)),
		Resource:      yarnResource{CPUs: max(g.vcores, 1), Memory: strconv.Itoa(g.yarnMemory())},
	}
	failures := strconv.Itoa(g.count + yarnFailures)
	c.Configuration.Properties = map[string]string{
		"yarn.service.container-failure-per-component.threshold": failures,
		// A run that is over ends each agent at once: a master that avoided hosts for it, after three failures by default, would
		// find none at last. The next master, which inherits what is avoided, would wait for ever. No number of failures that
		// ends the service is high enough: more of them come in while the master goes.
		"yarn.service.node-blacklist.threshold": strconv.Itoa(math.MaxInt32),
	}
	if remote(w.o.Binary) {
		c.LaunchCommand = "./" + c.LaunchCommand
		c.Configuration.Files = []yarnFile{{"STATIC", w.o.Binary, binaryName}}
	}
	if g.gpus > 0 {
		c.Resource.Additional = map[string]yarnAmount{"yarn.io/gpu": {Value: g.gpus}}
	}
	if w.o.TokenFile != "" {
		if strings.Contains(w.o.TokenFile, "${") {
			return c, fmt.Errorf("token file %s: YARN's services would fill in ${…}", w.o.TokenFile)
		}
		c.Configuration.Env = map[string]string{"CONSUL_HTTP_TOKEN_FILE": w.o.TokenFile}
	}
	var constraints []yarnConstraint
	if g.spread {
		constraints = append(constraints, yarnConstraint{Type: "ANTI_AFFINITY", Scope: "NODE", TargetTags: []string{c.Name}})
	}
	if g.label != "" {
		constraints = append(constraints, yarnConstraint{Type: "AFFINITY", Scope: "NODE", NodePartitions: []string{g.label}})
	}
	if len(constraints) > 0 {
		c.PlacementPolicy = &yarnPlacement{constraints}
	}
	return c, nil
}

func (g group) yarnMemory() int {
	if g.memory == 0 {
		return yarnMemory
	}
	return g.memory
}

// yarnCommand is a command as a container's launch script runs it: between double quotes of one shell, by another. Before
// that a NodeManager fills in `{{NAME}}`, `<LOG_DIR>` and the like, and services fill in `${NAME}`: none of them is left whole.
func yarnCommand(words []string) string { return inDoubleQuotes(shellText(words)) }

// brokenUp parts what is filled in by an empty pair of quotes, inside a word between single ones.
var brokenUp = strings.NewReplacer("{{", "{''{", "}}", "}''}", "<LOG_DIR>", "<''LOG_DIR>", "<CPS>", "<''CPS>", "<ADD_OPENS>", "<''ADD_OPENS>", "${", "$''{")

func shellText(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = word
		if !plainWord.MatchString(word) {
			parts := strings.Split(word, "'")
			for i, part := range parts {
				parts[i] = brokenRuns(part)
			}
			out[i] = "'" + strings.Join(parts, `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// brokenRuns breaks up all of a text: of `{{{` the replacer takes the first two, and what it leaves must not meet the third.
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

// shellTimeout is how long the distributed shell's client lets the application live, in milliseconds: the most it can be told.
const shellTimeout = math.MaxInt32

// yarnShell is a script that submits one application, or one for each component where they are of different sizes: the
// distributed shell knows one kind of container.
func (w *writer) yarnShell() ([]File, error) {
	parts := w.groups
	if w.oneSize() {
		one := w.groups[0]
		one.name, one.count = "", w.instances()
		one.window = w.longestWindow()
		one.command = w.command("", one.window)
		parts = []group{one}
	}
	priority, err := yarnPriority(w.o.Priority)
	if err != nil {
		return nil, err
	}
	var commands []string
	for _, g := range parts {
		if g.spread {
			w.lose("%s: each on a host of its own: the distributed shell places containers anywhere", g.name)
		}
		commands = append(commands, w.yarnApplication(g, priority, len(parts) > 1))
	}
	if w.o.TimeLimit == 0 {
		w.lose("time: the client ends an application after %d days at the latest", shellTimeout/int(24*time.Hour/time.Millisecond))
	}
	how := []string{"  bash " + w.o.AppID + ".yarn.sh", "", "Its clients follow their applications, and end with 0 where all containers did.", ""}
	header := w.header("Applications of YARN's distributed shell, written by muster render yarn.", append(how, codeLines()...)...)
	text := "#!/bin/bash\n" + comment(header) + yarnScriptHead
	if w.o.TimeLimit > 0 {
		text += fmt.Sprintf(yarnScriptLimited, wholeSeconds(w.o.TimeLimit))
	}
	if remote(w.o.Binary) {
		text += yarnScriptBring + shellLines("  ", []string{"hdfs", "dfs", "-get", w.o.Binary, ""}, map[int]string{4: `"$brought"/` + binaryName}) + "\n"
	}
	text += strings.Join(commands, "")
	if len(parts) > 1 {
		text += "\nstatus=0\nfor client in \"${clients[@]}\"; do\n\twait \"$client\" || status=$?\ndone\nexit \"$status\"\n"
	}
	return []File{{w.o.AppID + ".yarn.sh", text}}, nil
}

// shellTime is how long an application may take, in milliseconds.
func (w *writer) shellTime() string {
	if w.o.TimeLimit > 0 {
		return strconv.FormatInt(min(w.o.TimeLimit.Milliseconds(), shellTimeout), 10)
	}
	return strconv.Itoa(shellTimeout)
}

const yarnScriptHead = `set -euo pipefail

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

// yarnScriptLimited tells YARN of the time limit before anybody hears that the application is there: whoever follows by the
// client's words may end the client then.
const yarnScriptLimited = `
# A client holds the time for as long as it lives; the ResourceManager holds it to the end.
limited() {
	local line id
	"$@" 2>&1 | while IFS= read -r line; do
		case $line in *"Submitted application application_"*)
			id=application_${line##*Submitted application application_}
			id=${id%%%%[!a-z0-9_]*}
			yarn application -appId "$id" -updateLifetime %d </dev/null >&2 || yarn application -kill "$id" </dev/null >&2
			;;
		esac
		printf '%%s\n' "$line"
	done
}
`

// A container's PATH need not have Hadoop's commands: bash has its own there, whatever the NodeManager's is.
const yarnScriptBring = `
# The client takes files of this host along to the containers, and of no other place.
brought=$(mktemp -d)
trap 'rm -rf "$brought"' EXIT
`

// yarnPriority is a number as YARN has it; HBox's words are those of its own table.
func yarnPriority(text string) (string, error) {
	if n, ok := map[string]string{"DEFAULT": "0", "VERY_LOW": "0", "LOW": "1", "NORMAL": "2", "HIGH": "3", "VERY_HIGH": "4"}[strings.ToUpper(text)]; ok {
		return n, nil
	}
	if n, err := strconv.Atoi(text); text != "" && (err != nil || n < 0) {
		return "", fmt.Errorf("priority %s: want a number, or DEFAULT, VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH", appdef.Quote(text))
	}
	return text, nil
}

func (w *writer) yarnApplication(g group, priority string, several bool) string {
	name := w.o.AppID
	if g.name != "" {
		name += "-" + g.name
	}
	w.applications = append(w.applications, name)
	words := []string{
		"yarn", "jar", "", "org.apache.hadoop.yarn.applications.distributedshell.Client",
		"-jar", "", "-appname", name, "-num_containers", strconv.Itoa(g.count),
		"-container_resources", g.yarnResources(), "-timeout", w.shellTime(),
		"-container_retry_policy", "2", "-container_retry_error_codes", joined(exits(launcher.CodesOf(launcher.Again, launcher.Elsewhere)), ","),
		"-container_max_retries", strconv.Itoa(yarnRetries), "-container_retry_interval", strconv.Itoa(yarnPause),
		"-keep_containers_across_application_attempts", // a master that is lost with its host is no reason to end the others
	}
	filled := map[int]string{2: `"$DISTRIBUTED_SHELL_JAR"`, 5: `"$DISTRIBUTED_SHELL_JAR"`}
	option := func(name, value string) {
		if value != "" {
			words = append(words, name, value)
		}
	}
	option("-queue", w.o.Queue)
	option("-priority", priority)
	option("-node_label_expression", g.label)
	if w.o.MasterMemoryMB > 0 {
		option("-master_memory", strconv.Itoa(w.o.MasterMemoryMB))
	}
	if w.o.MasterVCores > 0 {
		option("-master_vcores", strconv.Itoa(w.o.MasterVCores))
	}
	if w.o.TokenFile != "" {
		option("-shell_env", "CONSUL_HTTP_TOKEN_FILE="+w.o.TokenFile)
	}
	agent := append([]string{w.local("")}, g.command...)
	run := "exec " // the container ends as the agent does
	if remote(w.o.Binary) {
		filled[len(words)+1] = `"$brought"/` + binaryName
		words = append(words, "-localize_files", "")
		run += "./"
	}
	words = append(words, "-shell_command", run+yarnCommand(agent))
	text := "\n"
	if w.o.TimeLimit > 0 {
		text += "limited "
	}
	text += shellLines("  ", words, filled)
	if several {
		text += " &\nclients+=($!)"
	}
	return text + "\n"
}

// wholeSeconds is a duration in seconds, rounded up.
func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// yarnResources are those of one container of the distributed shell.
func (g group) yarnResources() string {
	text := "memory-mb=" + strconv.Itoa(g.yarnMemory()) + ",vcores=" + strconv.Itoa(max(g.vcores, 1))
	if g.gpus > 0 {
		text += ",yarn.io/gpu=" + strconv.Itoa(g.gpus)
	}
	return text
}
