package k8s

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/render"
)

// Retries of a Job's pods, and of a whole JobSet: those are new runs.
const (
	podRetries    = 6
	jobSetRetries = 3
)

// labelPrefix is of our own labels.
const labelPrefix = "muster-agent/"

// Jobs writes JobSets, or indexed Jobs.
var Jobs = render.Launcher{
	Name: "k8s", Formats: []string{"jobset", "jobs"},
	Flags: []string{"--token-secret", "--namespace", "--image", "--user"},
	Write: func(w *render.Writer) ([]render.File, error) { return writer{w}.write() },
}

type writer struct{ *render.Writer }

func (w writer) write() ([]render.File, error) {
	name := render.DNSLabel(w.Options.AppID)
	if strings.ContainsAny(name[:min(1, len(name))], "0123456789") { // a Service's name begins with a letter (RFC 1035)
		name = "app-" + name
	}
	if name == "" {
		return nil, fmt.Errorf("app id %s: Kubernetes wants a letter or digit in a name", appdef.Quote(w.Options.AppID))
	}
	if len(w.Groups) == 0 {
		return nil, errors.New("no instances: there is nothing for Kubernetes to start")
	}
	if render.Remote(w.Options.Binary) {
		return nil, fmt.Errorf("binary %s: want its path in the pods' image", w.Options.Binary)
	}
	if err := w.checkNames(); err != nil {
		return nil, err
	}
	seen := map[string]string{}
	for _, g := range w.Groups {
		label := render.DNSLabel(g.Name)
		if other, taken := seen[label]; taken || label == "" {
			return nil, fmt.Errorf("components %s and %s: Kubernetes wants names that differ in more than case and "+
				"signs", other, g.Name)
		}
		seen[label] = g.Name
		// A pod is called JOBSET-COMPONENT-0-INDEX, which must be a host's name.
		if long := len(name) + len(label) + len(strconv.Itoa(g.Count)) + 4; long > 63 {
			return nil, fmt.Errorf("app id %s and component %s: a pod's name would have %d characters, want at "+
				"most 63", w.Options.AppID, g.Name, long)
		}
		local := g.Image == "" || g.Image == appdef.HostRoot || strings.HasPrefix(g.Image, "oci:")
		if w.Options.Image == "" && local {
			return nil, fmt.Errorf("component %s: want --image, or muster.image in the definition: a pod has no "+
				"host's root", g.Name)
		}
	}
	w.loseAll()
	var docs []*yaml.Node
	if w.Options.Format == "jobs" {
		docs = w.jobs(name)
	} else {
		docs = []*yaml.Node{w.jobSet(name)}
	}
	header := w.Header(w.title(),
		append([]string{"  kubectl apply -f " + name + ".yaml", ""}, render.CodeLines()...)...)
	var text strings.Builder
	text.WriteString(render.Comment(header))
	for _, doc := range docs {
		one, err := yamlDocument(doc)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n" + one)
	}
	return []render.File{{Name: name + ".yaml", Text: text.String()}}, nil
}

func (w writer) title() string {
	if w.Options.Format == "jobs" {
		return "Indexed Jobs of Kubernetes 1.29 and later with their Service, written by muster render k8s."
	}
	return "A JobSet (jobset.sigs.k8s.io) of Kubernetes 1.29 and later, written by muster render k8s."
}

func (w writer) loseAll() {
	if w.Options.Format == "jobs" {
		w.Cannot("elsewhere, for a whole run: plain Jobs name no new run; a run that ended with %s stays ended until "+
			"it is rendered again", render.Joined(launcher.CodesOf(launcher.Elsewhere), ", "))
	}
	for _, g := range w.Groups {
		if g.GPUType != "" {
			w.Cannot("%s: GPU model %s: add a nodeSelector for nvidia.com/gpu.product, whose values are exact; the "+
				"agent refuses others", g.Name, g.GPUType)
		}
		if g.Label != "" && !labelsValue.MatchString(g.Label) {
			w.Cannot("%s: node label %s: no label of Kubernetes has such a value; add a nodeSelector or an affinity",
				g.Name, g.Label)
		}
		if !g.Hard && g.VCores > 0 {
			w.Cannot("%s: vcores as a share: asked for as a request, without a limit", g.Name)
		}
	}
	if w.Options.Queue != "" {
		w.Cannot("queue %s: it is Kueue's label kueue.x-k8s.io/queue-name, which has no effect where Kueue is not",
			w.Options.Queue)
	}
	if w.Options.User != "" && !wholeNumber.MatchString(w.Options.User) {
		w.Cannot("user %s: a pod knows numbers only", w.Options.User)
	}
	if w.Options.TimeLimit > 0 && w.Options.Format != "jobs" {
		w.Cannot("time limit %s: of each start; a set that restarts after another failure has it again",
			render.SpanText(w.Options.TimeLimit))
	}
	w.Cannot("folders: those of a pod end with it; checkpoints that are to outlive one belong into a store " +
		"(muster.checkpoint.sync)")
}

// What Kubernetes takes for a name: of a namespace (RFC 1123), of a Secret or a PriorityClass, of a Secret's key; and
// for the value of a label.
var (
	dnsName     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	dnsDomain   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	secretKey   = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	labelsValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
)

// checkNames refuses names of other owners and names that Kubernetes cannot have; those of our own are made fit.
func (w writer) checkNames() error {
	secret, key, hasKey := strings.Cut(w.Options.TokenSecret, "/")
	for _, name := range []struct {
		what, text string
		form       *regexp.Regexp
	}{
		{"namespace", w.Options.Namespace, dnsName},
		{"token secret", secret, dnsDomain},
		{"queue", w.Options.Queue, labelsValue},
		{"priority", priorityClass(w.Options.Priority), dnsDomain},
	} {
		if name.text != "" && !name.form.MatchString(name.text) {
			return fmt.Errorf("%s %s: Kubernetes has no such name, want one like %s",
				name.what, appdef.Quote(name.text), name.form)
		}
	}
	if hasKey && !secretKey.MatchString(key) {
		return fmt.Errorf("token secret: key %s: want letters, digits, . _ and -", appdef.Quote(key))
	}
	if most := render.LongestRun; w.Options.Format != "jobs" && len(w.Options.Run) > most {
		return fmt.Errorf("run id %s: want %d characters at most: the number of a set's restart comes behind it",
			w.Options.Run, most)
	}
	return nil
}

// priorityClass is the class's name; the words of HBox's become one.
func priorityClass(text string) string {
	if slices.Contains([]string{"DEFAULT", "VERY_LOW", "LOW", "NORMAL", "HIGH", "VERY_HIGH"}, strings.ToUpper(text)) {
		return render.DNSLabel(text)
	}
	return text
}

// labelValue is a name of ours as a label's value; the true one is in the agents' arguments.
func labelValue(name string) string {
	return strings.TrimRight(strings.ReplaceAll(name, "~", "-"), "._-")
}

var wholeNumber = regexp.MustCompile(`^[0-9]+$`)

// object begins one of Kubernetes' objects.
func (w writer) object(version, kind, name string) *yaml.Node {
	meta := yamlMap("name", yamlText(name))
	if w.Options.Namespace != "" {
		put(meta, "namespace", yamlText(w.Options.Namespace))
	}
	labels := yamlMap(labelPrefix+"app", yamlText(labelValue(w.Options.AppID)), labelPrefix+"run",
		yamlText(labelValue(w.Options.Run)))
	if w.Options.Queue != "" {
		put(labels, "kueue.x-k8s.io/queue-name", yamlText(w.Options.Queue))
	}
	put(meta, "labels", labels)
	return yamlMap("apiVersion", yamlText(version), "kind", yamlText(kind), "metadata", meta)
}

func (w writer) jobSet(name string) *yaml.Node {
	rule := yamlMap("name", yamlText("donotretry"), "action", yamlText("FailJobSet"), "onJobFailureReasons",
		yamlTexts("PodFailurePolicy", "DeadlineExceeded"))
	policy := yamlMap("maxRestarts", yamlNumber(jobSetRetries), "rules", yamlList(rule))
	jobs := yamlList()
	for _, g := range w.Groups {
		jobs.Content = append(jobs.Content, yamlMap(
			"name", yamlText(render.DNSLabel(g.Name)), "replicas", yamlNumber(1), "template", yamlMap("spec",
				w.job(name, g))))
	}
	spec := yamlMap("failurePolicy", policy, "replicatedJobs", jobs)
	note(spec, "failurePolicy", "What is not to be retried fails the set, as the end of its time does; any other "+
		"failure restarts it, as a new run.")
	doc := w.object("jobset.x-k8s.io/v1alpha2", "JobSet", name)
	put(doc, "spec", spec)
	return doc
}

func (w writer) jobs(name string) []*yaml.Node {
	service := w.object("v1", "Service", name)
	put(service, "spec", yamlMap("clusterIP", yamlText("None"), "publishNotReadyAddresses", yamlBool(true),
		"selector", yamlMap(labelPrefix+"name", yamlText(name))))
	docs := []*yaml.Node{service}
	for _, g := range w.Groups {
		job := w.object("batch/v1", "Job", name+"-"+render.DNSLabel(g.Name))
		put(job, "spec", w.job(name, g))
		docs = append(docs, job)
	}
	return docs
}

func (w writer) job(name string, g render.Group) *yaml.Node {
	never := yamlMap("action", yamlText("FailJob"), "onExitCodes", yamlMap(
		"containerName", yamlText("muster"), "operator", yamlText("In"), "values",
		yamlNumbers(launcher.CodesOf(launcher.Never))))
	taken := yamlMap("action", yamlText("Ignore"), "onPodConditions", yamlList(yamlMap("type",
		yamlText("DisruptionTarget"), "status", yamlText("True"))))
	spec := yamlMap(
		"completionMode", yamlText("Indexed"), "completions", yamlNumber(g.Count), "parallelism", yamlNumber(g.Count),
		"backoffLimit", yamlNumber(podRetries), "podReplacementPolicy", yamlText("Failed"),
		"podFailurePolicy", yamlMap("rules", yamlList(taken, never)),
	)
	note(spec, "completionMode", "The index of an instance is the pod's.")
	note(spec, "podReplacementPolicy", "A pod is followed by another when it is gone, never beside it.")
	note(spec, "podFailurePolicy", "Who was taken away is replaced and not counted; of exit codes, those that say "+
		"so fail the job; all others are replaced.")
	if w.Options.TimeLimit > 0 {
		put(spec, "activeDeadlineSeconds", yamlNumber(render.WholeSeconds(w.Options.TimeLimit)))
	}
	put(spec, "template", yamlMap(
		"metadata", yamlMap("labels", w.podLabels(name, g)),
		"spec", w.pod(name, g)))
	return spec
}

func (w writer) podLabels(name string, g render.Group) *yaml.Node {
	return yamlMap(labelPrefix+"name", yamlText(name), labelPrefix+"app",
		yamlText(labelValue(w.Options.AppID)), labelPrefix+"component", yamlText(labelValue(g.Name)))
}

// workVolume is where agents work and log.
const workVolume = "/var/lib/muster"

func (w writer) pod(name string, g render.Group) *yaml.Node {
	shm := yamlMap("medium", yamlText("Memory"))
	if size := shmOf(g); size > 0 {
		put(shm, "sizeLimit", yamlText(strconv.Itoa(size)+"Mi"))
	}
	pod := yamlMap(
		"restartPolicy", yamlText("Never"),
		"terminationGracePeriodSeconds", yamlNumber(render.WholeSeconds(g.Window)),
		"enableServiceLinks", yamlBool(false),
	)
	note(pod, "restartPolicy", "Each attempt is a pod of its own: exit codes count for those only.")
	note(pod, "terminationGracePeriodSeconds", "From SIGTERM to SIGKILL; the agent is told as --kill-window.")
	if w.Options.Format == "jobs" {
		put(pod, "subdomain", yamlText(name))
	}
	if w.Options.Priority != "" {
		put(pod, "priorityClassName", yamlText(priorityClass(w.Options.Priority)))
	}
	if labelsValue.MatchString(g.Label) {
		put(pod, "nodeSelector", yamlMap(labelPrefix+"node-label", yamlText(g.Label)))
		note(pod, "nodeSelector", "yarn.label.expression")
	}
	if g.Spread {
		selector := yamlMap("matchLabels", w.podLabels(name, g))
		term := yamlMap("labelSelector", selector, "topologyKey", yamlText("kubernetes.io/hostname"))
		put(pod, "affinity", yamlMap("podAntiAffinity", yamlMap("requiredDuringSchedulingIgnoredDuringExecution",
			yamlList(term))))
		note(pod, "affinity", "Each on a host of its own.")
	}
	if wholeNumber.MatchString(w.Options.User) {
		put(pod, "securityContext", yamlMap("runAsUser", plainNumber(w.Options.User), "runAsGroup",
			plainNumber(w.Options.User), "fsGroup", plainNumber(w.Options.User)))
	}
	put(pod, "containers", yamlList(w.podContainer(g)))
	put(pod, "volumes", yamlList(
		yamlMap("name", yamlText("shm"), "emptyDir", shm),
		yamlMap("name", yamlText("work"), "emptyDir", yamlMap())))
	return pod
}

// shmOf is the size of /dev/shm in MB; 0: the node decides.
func shmOf(g render.Group) int {
	if g.ShmMB > 0 {
		return g.ShmMB
	}
	return max(0, g.MemoryMB-plan.AgentMemoryMB) / 2
}

func (w writer) podContainer(g render.Group) *yaml.Node {
	image := w.Options.Image
	if image == "" {
		image = g.Image
	}
	if !strings.Contains(image, "@sha256:") {
		w.Cannot("image %s: a tag, whose image others may replace; name it by its digest, NAME@sha256:HEX", image)
	}
	c := yamlMap("name", yamlText("muster"), "image", yamlText(image), "command",
		w.podCommand(), "args", w.podArgs(g), "env", w.podEnv())
	note(c, "image", "It has muster at the path below.")
	note(c, "env", "What the agent knows this pod by.")
	put(c, "resources", w.podResources(g))
	put(c, "volumeMounts", yamlList(
		yamlMap("name", yamlText("shm"), "mountPath", yamlText("/dev/shm")),
		yamlMap("name", yamlText("work"), "mountPath", yamlText(workVolume))))
	return c
}

// podCommand starts the agent. The image's digest covers its muster; another one is checked at the start.
func (w writer) podCommand() *yaml.Node {
	words := w.Start(w.Local(""), workVolume+"/.muster-bin")
	for i := range words {
		words[i] = podText(words[i])
	}
	return yamlTexts(words...)
}

// podText keeps `$(NAME)` from being filled in.
func podText(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func (w writer) podArgs(g render.Group) *yaml.Node {
	words := append(slices.Clone(g.Command), w.inPods()...)
	if !slices.Contains(w.Options.AgentFlags, "--work-dir") {
		words = append(words, "--work-dir", path.Join(workVolume, w.Options.AppID))
	}
	args := yamlList()
	for i, word := range words {
		text := podText(word)
		if i == render.RunAt && w.Options.Format != "jobs" {
			text += "-$(RESTART_ATTEMPT)" // a set that restarts is a new run
		}
		args.Content = append(args.Content, yamlText(text))
	}
	return args
}

// inPods says that a pod is in its image already. All agents say it of all components: the definition is part of the
// gang's digest.
func (w writer) inPods() []string {
	var out []string
	for i := range w.App.Components {
		if c := &w.App.Components[i]; c.Limits.Image != "" && c.Limits.Image != appdef.HostRoot {
			out = append(out, "--set", c.Name+":muster.image="+appdef.HostRoot)
		}
	}
	return out
}

// podEnv is what shim/launcher reads; the index is the Job's own JOB_COMPLETION_INDEX.
func (w writer) podEnv() *yaml.Node {
	field := func(name, from string) *yaml.Node {
		return yamlMap("name", yamlText(name), "valueFrom", yamlMap("fieldRef", yamlMap("fieldPath", yamlText(from))))
	}
	env := yamlList(field("POD_NAME", "metadata.name"), field("POD_IP", "status.podIP"),
		yamlMap("name", yamlText("POD_WORK_VOLUME"), "value", yamlText(workVolume)))
	if w.Options.Format != "jobs" {
		env.Content = append(env.Content,
			field("REPLICATED_JOB_NAME", "metadata.annotations['jobset.sigs.k8s.io/replicatedjob-name']"),
			field("RESTART_ATTEMPT", "metadata.annotations['jobset.sigs.k8s.io/restart-attempt']"))
	}
	if w.Options.TokenFile != "" {
		env.Content = append(env.Content, yamlMap("name", yamlText("CONSUL_HTTP_TOKEN_FILE"), "value",
			yamlText(podText(w.Options.TokenFile))))
	}
	if w.Options.TokenSecret != "" {
		secret, key, ok := strings.Cut(w.Options.TokenSecret, "/")
		if !ok {
			key = "token"
		}
		env.Content = append(env.Content, yamlMap("name", yamlText("CONSUL_HTTP_TOKEN"),
			"valueFrom", yamlMap("secretKeyRef", yamlMap("name", yamlText(secret), "key", yamlText(key)))))
	}
	return env
}

func (w writer) podResources(g render.Group) *yaml.Node {
	requests, limits := yamlMap(), yamlMap()
	if g.VCores > 0 {
		put(requests, "cpu", yamlText(strconv.Itoa(g.VCores)))
		if g.Hard {
			put(limits, "cpu", yamlText(strconv.Itoa(g.VCores)))
		}
	}
	if g.MemoryMB > 0 {
		put(requests, "memory", yamlText(strconv.Itoa(g.MemoryMB)+"Mi"))
		put(limits, "memory", yamlText(strconv.Itoa(g.MemoryMB)+"Mi"))
	}
	if g.GPUs > 0 {
		put(limits, "nvidia.com/gpu", yamlText(strconv.Itoa(g.GPUs)))
	}
	out := yamlMap()
	if len(requests.Content) > 0 {
		put(out, "requests", requests)
	}
	if len(limits.Content) > 0 {
		put(out, "limits", limits)
		note(out, "limits", fmt.Sprintf("Memory: the process's limit, and %d MB for the agent.", plan.AgentMemoryMB))
	}
	return out
}
