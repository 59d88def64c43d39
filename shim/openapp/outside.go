package openapp

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/policy"
)

// allowed is a setting that may come from outside a signed package, and why it names nothing that runs.
type allowed struct{ Name, Why string }

// allowedKeys are the keys that --set may set where packages must be signed. Any other key is refused, also one that
// this table does not know yet.
func allowedKeys() []allowed {
	var all []allowed
	for _, group := range []struct{ why, names string }{
		{"a count", "yarn.component.instances muster.nproc"},
		{"a size, enforced by the agent", "yarn.memory yarn.vcores yarn.io/gpu muster.gpu.memory muster.shm " +
			"muster.pids muster.cpu.hard muster.memory.swap muster.memory.high muster.memory.autoscale"},
		{"where the launcher places an instance", "muster.gpu.type muster.spread yarn.label.expression " +
			"yarn.component.placement.policy yarn.role.priority muster.pai.virtual.cluster"},
		{"how long and how often to try", "muster.restart.budget muster.restart.window muster.restart.backoff " +
			"muster.retry muster.barrier.timeout muster.stage.timeout muster.timeout muster.duration " +
			"muster.silence muster.status.interval muster.stop.grace yarn.container.failure.threshold " +
			"yarn.container.failure.window.days yarn.container.failure.window.hours " +
			"yarn.container.failure.window.minutes yarn.container.failure.window.seconds"},
		{"when the job counts as done", "muster.complete.minFailed muster.complete.minSucceeded " +
			"muster.complete.total.minFailed muster.complete.total.minSucceeded"},
		{"how many transfers and checkpoints", "muster.inputs.parallel muster.inputs.retries " +
			"muster.inputs.epochs muster.outputs.parallel muster.outputs.interval muster.checkpoint.keep"},
		{"a switch for ports", "muster.ports.exact"},
		{"which log files are collected", "yarn.log.include.patterns yarn.log.exclude.patterns"},
		{"where muster submit puts files; the agents read it nowhere", "muster.store"},
	} {
		for name := range strings.FieldsSeq(group.names) {
			all = append(all, allowed{name, group.why})
		}
	}
	return all
}

// allowedEnv are the variables that --env may give to the process where packages must be signed.
func allowedEnv() []allowed {
	return []allowed{
		{"LANG", "language of messages"},
		{"LC_ALL", "language of messages"},
		{"OMP_NUM_THREADS", "a count of threads"},
		{"TF_CPP_MIN_LOG_LEVEL", "how much TensorFlow logs"},
		{"TF_CPP_MAX_VLOG_LEVEL", "how much TensorFlow logs"},
		{"NCCL_DEBUG", "how much NCCL logs"},
		{"NCCL_DEBUG_SUBSYS", "what NCCL logs"},
		{"GLOG_v", "how much glog logs"},
		{"GLOG_minloglevel", "how much glog logs"},
	}
}

var (
	// amount is a value of site.*: a number or a port that the agent takes. Neither can name a program or a file.
	amount = regexp.MustCompile(
		`^(-?[0-9]+(\.[0-9]+)?|\$\{[A-Za-z0-9_-]+\.ALLOCATED_PORT\}(\{DEFAULT_[0-9]+\}|\{PER_CONTAINER\})*)$`)
	// address is a value of a client's name: hosts and ports, which no shell reads as anything else.
	address = regexp.MustCompile(`^[A-Za-z0-9\[][A-Za-z0-9._:,\[\]-]*$`)
	// word is the value of a variable of allowedEnv.
	word        = regexp.MustCompile(`^[A-Za-z0-9_.,@-]*$`)
	imageDigest = regexp.MustCompile(`^[^:@]+(:[^@]*)?@sha256:[0-9a-f]{64}$`)
)

// mustSign tells that nothing may run here but what a key of the policy has signed.
func (f *Choices) mustSign() bool { return f.Policy != nil && f.Policy.Packages.RequireSignature }

// admitChoices refuses what comes from outside a signed package and runs, or names what runs.
func (f *Choices) admitChoices() error {
	if !f.mustSign() {
		return nil
	}
	for _, document := range []struct{ flag, path, instead string }{
		{"--template", f.Template, "put it into the package as appConfig.json and sign the package"},
		{"--resources", f.Resources, "--instances and --set of counts and sizes are permitted, or put it into the " +
			"package as resources.json and sign the package"},
	} {
		if document.path != "" {
			return f.refuseOutside(document.flag+" "+document.path, "it replaces a document that was signed",
				document.instead)
		}
	}
	for _, set := range f.Set {
		if err := f.admitSet(set); err != nil {
			return err
		}
	}
	return nil
}

func (f *Choices) admitSet(set string) error {
	c, ok, _ := appdef.ParseSet(set, nil)
	if !ok {
		// Components are not known yet, so that COMPONENT:KEY is read as far as it is written.
		name, value, whole := strings.Cut(set, "=")
		_, key, qualified := strings.Cut(name, ":")
		if !whole || !qualified || key == "" {
			return nil // the definition's loader refuses it
		}
		c = appdef.Change{Key: key, Value: appdef.Value{Text: value}}
	}
	instead := "set it in the package and sign the package; from outside only counts, sizes, times, placement and " +
		"log settings are permitted"
	switch {
	case c.Client && address.MatchString(c.Text):
		return nil
	case c.Client:
		return f.refuseOutside("--set "+c.Key, "its value may name what runs",
			"give hosts and ports, such as h1:2181,h2:2181, or set it in the package and sign the package")
	case strings.HasPrefix(c.Key, "site.") && amount.MatchString(c.Text):
		return nil
	case strings.HasPrefix(c.Key, "site."):
		return f.refuseOutside("--set "+c.Key, "commands and scripts read it, and only a number or a port is "+
			"permitted from outside", "set it in the package and sign the package")
	case slices.ContainsFunc(allowedKeys(), func(a allowed) bool { return a.Name == c.Key }):
		return nil
	}
	return f.refuseOutside("--set "+c.Key, "it may change what runs", instead)
}

// admitDefinition refuses a definition that has files from elsewhere run: a signature does not cover them unless the
// definition has their digest.
func (f *Choices) admitDefinition(app appdef.App) error {
	if !f.mustSign() {
		return nil
	}
	const pack = "put it into the package and sign the package"
	for i := range app.Components {
		c := &app.Components[i]
		if image := c.Limits.Image; image != "" && image != appdef.HostRoot && !fixedImage(image) {
			return f.refuseOutside(fmt.Sprintf("%s: muster.image %s", c.Name, appdef.Quote(image)),
				"a tag or folder may hold another image by tomorrow", "name the image by its digest, "+
					"NAME@sha256:HEX, and sign the package")
		}
		for prefix, from := range map[string]map[string]string{
			"muster.file.": c.Settings.Files, "muster.archive.": c.Settings.Archives,
		} {
			for name := range from {
				return f.refuseOutside(c.Name+": "+prefix+name, "the signature does not cover what is there",
					pack+", or name it in application.resources with #sha256=HEX")
			}
		}
	}
	for _, name := range app.AppResources {
		if !appdef.InPackage(name) && !strings.Contains(name, Pin) {
			return f.refuseOutside("application.resources "+appdef.Quote(name),
				"the signature does not cover what is there", "append #sha256=HEX and sign the package")
		}
	}
	if dir := app.Settings.PAI.CodeDir; dir != "" {
		return f.refuseOutside("muster.pai.code.dir "+appdef.Quote(dir), "the signature does not cover what is there",
			pack)
	}
	return nil
}

// fixedImage tells that an image is named by its digest. What oci: names is a folder, whatever it is called.
func fixedImage(image string) bool {
	return !strings.HasPrefix(image, "oci:") && imageDigest.MatchString(image)
}

// AdmitEnv refuses variables of the command line (NAME or NAME=VALUE) that may change what a signed package runs.
func AdmitEnv(p policy.Policy, env, environ []string) error {
	f := Choices{Policy: &p}
	if !f.mustSign() {
		return nil
	}
	for _, text := range env {
		name, value, given := strings.Cut(text, "=")
		if !given {
			for _, e := range environ {
				if rest, ok := strings.CutPrefix(e, name+"="); ok {
					value = rest
				}
			}
		}
		if !AllowsEnv(name, value) {
			var names []string
			for _, a := range allowedEnv() {
				names = append(names, a.Name)
			}
			return f.refuseOutside("--env "+name, "a variable may change what an interpreter or a loader runs",
				"set muster.env."+name+" in the package and sign the package; from outside only plain words for "+
					strings.Join(names, ", ")+" are permitted")
		}
	}
	return nil
}

// AllowsEnv tells whether a variable may come from outside a signed package.
func AllowsEnv(name, value string) bool {
	return word.MatchString(value) && slices.ContainsFunc(allowedEnv(), func(a allowed) bool { return a.Name == name })
}

// AdmitFile refuses a file that a flag names, and that changes what a signed package runs.
func AdmitFile(p policy.Policy, flag, path string) error {
	f := Choices{Policy: &p}
	if !f.mustSign() || path == "" {
		return nil
	}
	return f.refuseOutside(flag+" "+path, "scripts read it", "put it into the package and sign the package")
}

func (f *Choices) refuseOutside(what, why, instead string) error {
	return exit.With(exit.Forbidden, fmt.Errorf("the policy of this host (%s) takes what runs from signed packages "+
		"only, and refuses %s: %w; %s", f.Policy.File, what, errors.New(why), instead))
}
