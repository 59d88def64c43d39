package render_test

import (
	"cmp"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/render"
)

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, launcher string
		change         func(*render.Options)
		want           string
	}{
		{"launcher", "mesos", func(*render.Options) {}, `launcher "mesos": want one of k8s, nomad, slurm, systemd, yarn`},
		{"format", "nomad", func(o *render.Options) { o.Format = "yaml" }, `nomad: format "yaml": want hcl or json`},
		{"app id", "nomad", func(o *render.Options) { o.AppID = "-x" }, `app id "-x": want up to 63`},
		{"run", "slurm", func(o *render.Options) { o.Run = "a b" }, `run id "a b": want up to 63`},
		{"zero byte", "k8s", func(o *render.Options) { o.AppFlags = []string{"a\x00b"} }, "want UTF-8 without a zero byte"},
		{"no UTF-8", "yarn", func(o *render.Options) { o.AgentFlags = []string{"\xff"} }, "want UTF-8 without a zero byte"},
		{"two lines", "slurm", func(o *render.Options) { o.Queue = "a\n#SBATCH --uid=0" }, "want one line"},
		{"partition", "slurm", func(o *render.Options) { o.Queue = "a b" }, `"a b": an option of sbatch in a script has no blanks, quotes and #`},
		{"driver", "nomad", func(o *render.Options) { o.Driver = "docker" }, `driver "docker": want raw_exec or exec`},
		{"priority of Nomad", "nomad", func(o *render.Options) { o.Priority = "101" }, `priority "101": want 1 to 100`},
		{"priority of YARN", "yarn", func(o *render.Options) { o.Format, o.Priority = "shell", "urgent" }, `priority "urgent": want a number`},
		{"binary of systemd", "systemd", func(o *render.Options) { o.Binary = "muster" }, "want its absolute path on the hosts"},
		{"binary with blanks", "systemd", func(o *render.Options) { o.Binary = "/opt/my programs/muster" }, "want a clean path without blanks"},
		{"binary of Nomad", "nomad", func(o *render.Options) { o.Binary = "hdfs://nn/muster" }, "Nomad's clients fetch from http"},
		{"binary of Slurm", "slurm", func(o *render.Options) { o.Binary = "https://x/muster" }, "want a path that all nodes see"},
		{"binary of a pod", "k8s", func(o *render.Options) { o.Binary = "https://x/muster" }, "want its path in the pods' image"},
		{"image of a pod", "k8s", func(o *render.Options) { o.Image = "" }, "want --image, or muster.image"},
		{"long name of a pod", "k8s", func(o *render.Options) { o.AppID = strings.Repeat("a", 60) }, "a pod's name would have"},
		{"namespace", "k8s", func(o *render.Options) { o.Namespace = "Team_A" }, `namespace "Team_A": Kubernetes has no such name`},
		{"secret", "k8s", func(o *render.Options) { o.TokenSecret = "my secret" }, `token secret "my secret": Kubernetes has no such name`},
		{"key of a secret", "k8s", func(o *render.Options) { o.TokenSecret = "consul/a b" }, `key "a b": want letters`},
		{"queue of Kueue", "k8s", func(o *render.Options) { o.Queue = "root.ads/x" }, `queue "root.ads/x": Kubernetes has no such name`},
		{"priority class", "k8s", func(o *render.Options) { o.Priority = "Very urgent" }, `priority "Very urgent": Kubernetes has no such name`},
		{"run of a set", "k8s", func(o *render.Options) { o.Run = strings.Repeat("r", 62) }, "want 61 characters at most"},
		{"run of Slurm", "slurm", func(o *render.Options) { o.Run = strings.Repeat("r", 62) }, "want 61 characters at most"},
		{"kill window", "k8s", func(o *render.Options) { o.KillWindow = -1 }, "kill window and time limit: want a positive duration"},
		{"token of Nomad", "nomad", func(o *render.Options) { o.TokenFile = "/x/${HOME}" }, "Nomad would fill in"},
		{"token of the distributed shell", "yarn", func(o *render.Options) { o.Format, o.TokenFile = "shell", "/etc/my token" }, `token file "/etc/my token": want a path without blanks`},
		{"token of the distributed shell's shell", "yarn", func(o *render.Options) { o.Format, o.TokenFile = "shell", "/x/$USER" }, "want a path without blanks"},
		{"token of YARN", "yarn", func(o *render.Options) { o.TokenFile = "/x/${USER}" }, "YARN's services would fill in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options()
			tt.change(&o)
			if _, err := known.Render(tt.launcher, small(t), o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestNamesThatMeet refuses components whose names are one to a launcher.
func TestNamesThatMeet(t *testing.T) {
	app := small(t)
	app.Components[0].Name, app.Components[1].Name = "a.b", "A-b"
	for _, launcher := range []string{"k8s", "yarn"} {
		if _, err := known.Render(launcher, app, options()); err == nil || !strings.Contains(err.Error(), "differ in more than case and signs") {
			t.Errorf("%s: got %v", launcher, err)
		}
	}
}

// TestNamesOfKubernetes has names that agents may have and Kubernetes may not.
func TestNamesOfKubernetes(t *testing.T) {
	app := small(t)
	app.Components[0].Name, app.Components[0].Limits.NodeLabel = "P_s~", "x&&y"
	o := options()
	o.AppID, o.Run, o.Priority, o.User = "7.Up~", "a~b.", "VERY_HIGH", "ada"
	for _, format := range []string{"jobset", "jobs"} {
		o.Format = format
		job, err := known.Render("k8s", app, o)
		if err != nil {
			t.Fatal(err)
		}
		text := job.Files[0].Text
		for _, m := range regexp.MustCompile(`(?m)^ *muster-agent/\S+: (.*)$`).FindAllStringSubmatch(text, -1) {
			if value := strings.Trim(m[1], `"`); !regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`).MatchString(value) {
				t.Errorf("%s: the label %s", format, m[0])
			}
		}
		for _, want := range []string{"name: app-7-up", "priorityClassName: very-high", "- 7.Up~\n", "- P_s~\n", "node label x&&y: no label of Kubernetes has such a value"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", format, want, text)
			}
		}
	}
}

// TestHostileLimits has values of an App that stand in the options of a script.
func TestHostileLimits(t *testing.T) {
	const more = "a\n#SBATCH --uid=0\nrm -rf /"
	app := small(t)
	app.Components[0].Limits.GPUs, app.Components[0].Limits.GPUType = 1, more
	if text := rendered(t, "slurm", "", app, options()); strings.Contains(text, "\nrm") || strings.Contains(text, "\n#SBATCH --uid") {
		t.Errorf("a model of GPUs is an option of its own:\n%s", text)
	}
	app.Components[0].Limits.NodeLabel = more
	if job, err := known.Render("slurm", app, options()); err == nil {
		t.Errorf("a node label is an option of its own:\n%s", job.Files[0].Text)
	}
}

// TestNoInstances writes a job of nothing where a launcher has such, and says so where it has not.
func TestNoInstances(t *testing.T) {
	app := small(t)
	for i := range app.Components {
		app.Components[i].Instances = 0
	}
	for _, launcher := range known.Names() {
		job, err := known.Render(launcher, app, options())
		switch launcher {
		case "nomad", "systemd":
			if err != nil || !strings.Contains(job.Files[0].Text, "no instances") {
				t.Errorf("%s: %v", launcher, err)
			}
		default:
			if err == nil || !strings.Contains(err.Error(), "no instances") {
				t.Errorf("%s: got %v", launcher, err)
			}
		}
	}
}

// TestWindows holds that the launcher waits as long as the agent is told, and long enough for the grace.
func TestWindows(t *testing.T) {
	for _, tt := range []struct {
		name  string
		grace appdef.Seconds
		flag  time.Duration
		texts map[string]string // by launcher: what the job says
	}{
		{"usual", 0, 0, map[string]string{"nomad": `kill_timeout = "30s"`, "systemd": "TimeoutStopSec=35\n", "k8s": "terminationGracePeriodSeconds: 35\n", "slurm": "--kill-window 30s", "yarn": "--kill-window 250ms"}},
		{"long grace", 120, 0, map[string]string{"nomad": `kill_timeout = "2m5s"`, "systemd": "TimeoutStopSec=125\n", "k8s": "terminationGracePeriodSeconds: 125\n", "slurm": "--kill-window 30s", "yarn": "--kill-window 250ms"}},
		{"short grace", 3, 0, map[string]string{"nomad": `kill_timeout = "30s"`, "systemd": "TimeoutStopSec=35\n", "k8s": "terminationGracePeriodSeconds: 35\n"}},
		{"as asked", 0, 1500 * time.Millisecond, map[string]string{"nomad": `kill_timeout = "1.5s"`, "systemd": "TimeoutStopSec=1500ms\n", "k8s": "terminationGracePeriodSeconds: 2\n", "slurm": "--kill-window 1.5s", "yarn": "--kill-window 1.5s"}},
	} {
		app := small(t)
		for i := range app.Components {
			app.Components[i].Settings.Stop.Grace = tt.grace
		}
		for launcher, want := range tt.texts {
			o := options()
			o.KillWindow = tt.flag
			job, err := known.Render(launcher, app, o)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(job.Files[0].Text, want) {
				t.Errorf("%s, %s: want %s in\n%s", tt.name, launcher, want, job.Files[0].Text)
			}
			named := slices.ContainsFunc(job.Unsupported, func(line string) bool {
				return strings.Contains(line, "120s") || strings.Contains(line, "kill_timeout 2m5s")
			})
			if far := tt.grace == 120 && (launcher == "nomad" || launcher == "slurm" || launcher == "yarn"); named != far {
				t.Errorf("%s, %s: told of it: %v, want %v: %q", tt.name, launcher, named, far, job.Unsupported)
			}
		}
	}
}

// TestImagesUnderYARN holds that an image which an agent would refuse there is named before anything runs.
func TestImagesUnderYARN(t *testing.T) {
	for _, tt := range []struct {
		image, user, engine, want string
	}{
		{"lab/train:1", "", "", ""},
		{"lab/train:1", "", "container", ""},
		{"lab/train:1", "0:0", "auto", ""},
		{"lab/train:1", "", "process", "worker: muster.image lab/train:1: --engine process runs none, and the agent ends with 77"},
		{"lab/train:1", "app:50", "", "worker: muster.user app:50: YARN's containers are an ordinary user's, and an image runs as 0 there"},
		{"host", "app", "process", ""},
		{"", "app", "process", ""},
	} {
		app, o := small(t), options()
		for i := range app.Components {
			if c := &app.Components[i]; c.Name == "worker" {
				c.Limits.Image, c.Limits.User = tt.image, tt.user
			}
		}
		if tt.engine != "" {
			o.AgentFlags = []string{"--engine", tt.engine}
		}
		job, err := known.Render("yarn", app, o)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(job.Unsupported, func(line string) bool {
			return strings.HasPrefix(line, "worker: muster.")
		})
		if at < 0 != (tt.want == "") || at >= 0 && !strings.HasPrefix(job.Unsupported[at], tt.want) {
			t.Errorf("%+v: unsupported %q", tt, job.Unsupported)
		}
	}
}

// TestTimeLimit holds that the time which somebody gives a job is said, or told as unsupported.
func TestTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		launcher, format  string
		says, unsupported string
	}{
		{"slurm", "", "#SBATCH --time=90\n", "time limit 1h30m: of each start"},
		{"k8s", "jobset", "          activeDeadlineSeconds: 5400\n", "time limit 1h30m: of each start"},
		{"k8s", "jobs", "  activeDeadlineSeconds: 5400\n", ""},
		{"yarn", "service", `"lifetime": "5400"`, ""},
		{"yarn", "shell", "-timeout 5400000 \\\n", ""},
		{"yarn", "shell", "-updateLifetime 5400 ", ""},
		{"nomad", "", "", "time limit 1h30m"},
		{"systemd", "", "", "time limit 1h30m"},
	} {
		o := options()
		o.Format, o.TimeLimit = tt.format, 90*time.Minute
		job, err := known.Render(tt.launcher, small(t), o)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(job.Files[0].Text, tt.says) {
			t.Errorf("%s %s: no %q in\n%s", tt.launcher, tt.format, tt.says, job.Files[0].Text)
		}
		at := slices.IndexFunc(job.Unsupported, func(line string) bool { return strings.HasPrefix(line, "time") })
		if at < 0 != (tt.unsupported == "") || at >= 0 && !strings.HasPrefix(job.Unsupported[at], tt.unsupported) {
			t.Errorf("%s %s: unsupported %q, want %q", tt.launcher, tt.format, job.Unsupported, tt.unsupported)
		}
	}
}

// TestTimeOfShell has the ResourceManager hold the time of each application: clients may be gone.
func TestTimeOfShell(t *testing.T) {
	app := small(t)
	app.Components[0].Limits.VCores = 3 // two sizes, two applications
	o := options()
	o.TimeLimit = 90 * time.Minute
	words, err := typed(t, rendered(t, "yarn", "shell", app, o), []string{"yarn"}, "DISTRIBUTED_SHELL_JAR=/d.jar",
		"SPY_SAYS=2026-11-22 10:00:00,000 INFO impl.YarnClientImpl: Submitted application application_17_0003")
	if err != nil {
		t.Error(err)
	}
	if n := strings.Count(strings.Join(words, " "), "yarn application -appId application_17_0003 -updateLifetime 5400"); n != 2 {
		t.Errorf("told of the time %d times: %q", n, words)
	}
	words, err = typed(t, rendered(t, "yarn", "shell", app, o), []string{"yarn"}, "DISTRIBUTED_SHELL_JAR=/d.jar", "SPY_CODE=3")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || slices.Contains(words, "application") {
		t.Errorf("a client that fails: got %v and %q", err, words)
	}
}

// TestAllCores has a component that wants all cores of its host.
func TestAllCores(t *testing.T) {
	for _, tt := range []struct {
		launcher, format       string
		change                 func(*appdef.Limits)
		all                    bool // of all components, else of the first
		says, not, unsupported string
	}{
		{"slurm", "", nil, false, "#SBATCH --exclusive\n#SBATCH --ntasks=3\n#SBATCH --mem-per-cpu=0\n", "cpus", "vcores max: the job has its nodes to itself"},
		{"slurm", "", func(l *appdef.Limits) { l.Placement |= appdef.PlacedApart }, true, "#SBATCH --exclusive\n#SBATCH --ntasks=3\n#SBATCH --mem-per-cpu=0\n#SBATCH --ntasks-per-node=1\n", "cpus", ""},
		{"slurm", "", func(l *appdef.Limits) { l.VCores = 2 }, false, "  --het-group=1 \\\n  --ntasks=2 \\\n  --mem-per-cpu=0 bash \\\n", "", "worker: vcores max"},
		{"nomad", "", nil, false, "cpu = 1000\n", "", "vcores max: Nomad grants what it is asked for"},
		{"yarn", "service", nil, false, `"cpus": 1,`, "", "vcores max: YARN grants what it is asked for, 1 here"},
		{"yarn", "shell", nil, false, "vcores=1 ", "", "vcores max: YARN grants what it is asked for, 1 here"},
		{"k8s", "jobset", nil, false, "memory: 288Mi", "cpu:", ""},
	} {
		app := small(t)
		for i := range app.Components {
			app.Components[i].Limits.VCores = appdef.Max
			if change := tt.change; change != nil && (tt.all || i == 0) {
				change(&app.Components[i].Limits)
			}
		}
		o := options()
		o.Format = tt.format
		job, err := known.Render(tt.launcher, app, o)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`(?m)^#([^S].*)?\n`).ReplaceAllString(job.Files[0].Text, "") // without comments
		if !strings.Contains(regexp.MustCompile(` +=`).ReplaceAllString(text, " ="), tt.says) || tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s %s: want %q, and no %q, in\n%s", tt.launcher, tt.format, tt.says, tt.not, text)
		}
		if tt.unsupported != "" != slices.ContainsFunc(job.Unsupported, func(line string) bool { return strings.Contains(line, cmp.Or(tt.unsupported, "vcores max")) }) {
			t.Errorf("%s %s: unsupported %q, want %q", tt.launcher, tt.format, job.Unsupported, tt.unsupported)
		}
	}
}

// TestFlags gives each launcher all flags that only some have a word for: each is in the job, or told as unsupported.
func TestFlags(t *testing.T) {
	said := map[string][]string{ // by what the job says of them
		"nomad":   {`namespace   = "ml"`, `region      = "eu"`, `datacenters = ["dc7"]`, `driver = "exec"`, `user   = "1001"`},
		"k8s":     {"namespace: ml", "name: acl\n", "image: r/m:9", "runAsUser: 1001"},
		"systemd": {"User=1001\n"},
		"slurm":   {},
		"yarn":    {"am-resource.memory\": \"3000\""},
	}
	unsupported := map[string]string{
		"nomad":   "--token-secret --image --privileged --driver-memory --driver-cores",
		"k8s":     "--region --datacenter --driver --privileged --driver-memory --driver-cores",
		"systemd": "--token-secret --namespace --region --datacenter --driver --image --driver-memory --driver-cores",
		"slurm":   "--token-secret --namespace --region --datacenter --driver --image --user --privileged --driver-memory --driver-cores",
		"yarn":    "--token-secret --namespace --region --datacenter --driver --image --user --privileged",
	}
	for _, launcher := range known.Names() {
		plain, err := known.Render(launcher, small(t), options())
		if err != nil {
			t.Fatal(err)
		}
		o := options()
		o.TokenSecret, o.Namespace, o.Region, o.Datacenters, o.Driver, o.Image, o.User = "acl", "ml", "eu", []string{"dc7"}, "exec", "r/m:9", "1001"
		o.Privileged, o.MasterMemoryMB, o.MasterVCores = launcher != "systemd", 3000, 2
		job, err := known.Render(launcher, small(t), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range said[launcher] {
			if !strings.Contains(job.Files[0].Text, want) {
				t.Errorf("%s: no %q in\n%s", launcher, want, job.Files[0].Text)
			}
		}
		var got []string
		for _, line := range job.Unsupported {
			if flag, _, ok := strings.Cut(strings.Replace(line, ":", " ", 1), " "); ok && strings.HasPrefix(flag, "--") {
				got = append(got, flag)
			}
		}
		if strings.Join(got, " ") != unsupported[launcher] {
			t.Errorf("%s: unsupported %q, want %s", launcher, job.Unsupported, unsupported[launcher])
		}
		for _, line := range plain.Unsupported {
			if strings.HasPrefix(line, "--") && !strings.HasPrefix(line, "--image ") { // of options
				t.Errorf("%s: nobody has said %s", launcher, line)
			}
		}
	}
	o := options()
	o.Privileged, o.User = true, "1001"
	if job, err := known.Render("systemd", small(t), o); err != nil || !slices.Contains(job.Unsupported, "--user 1001: --privileged has the agents be root") {
		t.Errorf("root of systemd: got %v, %q", err, job.Unsupported)
	}
}

// TestUnsupportedIsTold holds that all that is unsupported stands in the job itself.
func TestUnsupportedIsTold(t *testing.T) {
	for name, app := range apps(t) {
		for _, launcher := range known.Names() {
			for _, format := range known.Formats(launcher) {
				o := options()
				o.Format, o.Queue, o.Priority, o.User, o.TimeLimit = format, "q", "HIGH", "ada", time.Hour
				job, err := known.Render(launcher, app, o)
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range job.Unsupported {
					if format != "json" && !strings.Contains(job.Files[0].Text, "- "+line) {
						t.Errorf("%s %s %s does not tell of %s", name, launcher, format, line)
					}
				}
			}
		}
	}
}

// TestDigestIsOne holds that all agents of a job load the same definition: each other one would be refused.
func TestDigestIsOne(t *testing.T) {
	o := options()
	o.Image = ""
	app := apps(t)["everything"]
	all, err := podWords(rendered(t, "k8s", "jobset", app, o))
	if err != nil || len(all) != 3 {
		t.Fatalf("got %q, %v", all, err)
	}
	var digests []string
	for _, words := range all {
		var set []string
		for i, word := range words {
			if word == "--set" {
				set = append(set, words[i+1])
			}
		}
		digests = append(digests, strings.Join(set, " "))
	}
	if want := "Chief:muster.image=host worker:muster.image=host board:muster.image=host spare:muster.image=host"; digests[0] != want || len(slices.Compact(digests)) != 1 {
		t.Errorf("got %q, want each %q", digests, want)
	}
	if _, found := slider.Load(osDir("everything"), slider.Options{Set: strings.Fields(digests[0])}); len(found.Errors()) > 0 {
		t.Error(found.Errors())
	}
}

// TestSpread has each instance on a host of its own, by either of the two keys that ask for it, where a launcher knows hosts.
func TestSpread(t *testing.T) {
	words := map[string]string{
		"nomad": `operator = "distinct_hosts"`, "slurm": "--ntasks-per-node=1", "k8s": "topologyKey: kubernetes.io/hostname", "yarn": `"type": "ANTI_AFFINITY"`,
	}
	for _, key := range []string{"", "global:muster.spread=any", "worker:yarn.component.placement.policy=2", "worker:muster.spread=host", "worker:yarn.component.placement.policy=4", "worker:yarn.component.placement.policy=5"} {
		files, err := catalog.Open("handwriting")
		if err != nil {
			t.Fatal(err)
		}
		var set []string
		if key != "" {
			set = []string{key}
		}
		app, problems := slider.Load(files, slider.Options{Set: set})
		if bad := problems.Errors(); len(bad) > 0 {
			t.Fatal(bad)
		}
		asked := strings.HasSuffix(key, "host") || strings.HasSuffix(key, "4") || strings.HasSuffix(key, "5")
		for launcher, word := range words {
			if got := strings.Contains(rendered(t, launcher, "", app, options()), word); got != asked {
				t.Errorf("%s with %q: says %s: %v, want %v", launcher, key, word, got, asked)
			}
		}
	}
}
