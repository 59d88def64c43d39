package appdef

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// at makes a value at a place of its own.
func at(level, key, text string) Value {
	return Value{Text: text, Place: Place{File: "f", Pointer: Pointer(level, key)}}
}

func section(level string, pairs ...string) Section {
	s := Section{}
	for i := 0; i < len(pairs); i += 2 {
		s[pairs[i]] = at(level, pairs[i], pairs[i+1])
	}
	return s
}

// The order is appConfig component, resources component, appConfig global, resources global.
func TestPrecedence(t *testing.T) {
	const key = "muster.restart.budget"
	for _, test := range []struct {
		name   string
		levels string // which of the four have the key
		want   int
	}{
		{"none", "", 5},
		{"resources global", "4", 4},
		{"appConfig global", "3", 3},
		{"resources component", "2", 2},
		{"resources component over appConfig global", "23", 2},
		{"appConfig component", "1", 1},
		{"appConfig component over all global", "14", 1},
		{"resources component over resources global", "24", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := twoRoles()
			src := Sources{ComponentConfig: map[string]Section{}, ComponentResources: map[string]Section{}}
			for _, level := range test.levels {
				s := section("l", key, string(level))
				switch level {
				case '1':
					src.ComponentConfig["ps"] = s
				case '2':
					src.ComponentResources["ps"] = s
				case '3':
					src.Config = s
				case '4':
					src.Resources = s
				}
			}
			if found := Settle(&a, src); len(found) > 0 {
				t.Fatal(found)
			}
			if got := a.Components[0].Settings.Restart.Budget; got != test.want {
				t.Errorf("budget: got %d, want %d", got, test.want)
			}
		})
	}
}

// Each row is one key with a value that does and one that does not.
func TestEveryKeyTakesGoodAndRefusesBad(t *testing.T) {
	values := map[string]struct {
		good, bad []string
	}{
		"muster.framework":                   {[]string{"auto", "none", "tensorflow", "xgboost"}, []string{"", "Tensorflow", "tf"}},
		"muster.cluster.export":              {[]string{"ps-host_port"}, []string{"", "ps-url", "worker-host_port"}},
		"muster.role":                        {[]string{"chief", "worker", "ps", "server", "evaluator", "service"}, []string{"", "PS", "wroker"}},
		"muster.restart":                     {[]string{"instance", "gang", "never"}, []string{"", "always", "Gang"}},
		"muster.restart.budget":              {[]string{"0", "5", "-1"}, []string{"", "-2", "x", "1.5", "99999999999"}},
		"muster.restart.window":              {[]string{"0", "90", "5m"}, []string{"", "-1", "5w"}},
		"muster.restart.backoff":             {[]string{"1s..1m", "0", "5s"}, []string{"", "1m..1s", "1s..", "x"}},
		"muster.restart.refill":              {[]string{"checkpoint", "never"}, []string{"", "always"}},
		"muster.retry":                       {[]string{"0", "3", "-1", "-2"}, []string{"", "-3", "x"}},
		"muster.complete.minFailed":          {[]string{"1", "null"}, []string{"", "0", "-1", "all"}},
		"muster.complete.minSucceeded":       {[]string{"2", "null"}, []string{"", "0", "1.0"}},
		"muster.stop.signal":                 {[]string{"TERM", "SIGINT", "2"}, []string{"", "TREM", "0", "99"}},
		"muster.stop.grace":                  {[]string{"1s", "30"}, []string{"", "0", "soon"}},
		"muster.checkpoint.dir":              {[]string{"/ckpt", "hdfs://nn/x/${USER}"}, []string{"", " "}},
		"muster.checkpoint.pattern":          {[]string{"ckpt-*.json", "model.[0-9]*"}, []string{"", "ckpt-[", "a\\"}},
		"muster.checkpoint.reach":            {[]string{"auto", "process", "muster"}, []string{"", "me"}},
		"muster.checkpoint.whole":            {[]string{"files=*.bin files=state.json", "size=10 steady=5s", "steady=90"}, []string{"", "sums", "size=-1", "steady=x", "steady=-5s", "files=["}},
		"muster.checkpoint.marker":           {[]string{"DONE", "{}.done", "done/{}"}, []string{"", "/DONE", "../DONE"}},
		"muster.checkpoint.sync":             {[]string{"hdfs://nn/x"}, []string{""}},
		"muster.checkpoint.keep":             {[]string{"0", "3"}, []string{"", "-1", "all"}},
		"muster.address":                     {[]string{"host", "dns"}, []string{"", "name"}},
		"muster.checkpoint.ranks":            {[]string{"auto", "all", "some", "each"}, []string{"", "none"}},
		"muster.checkpoint.signal":           {[]string{"USR1"}, []string{"", "USR3"}},
		"muster.barrier.timeout":             {[]string{"30m", "1"}, []string{"", "0", "never"}},
		"muster.stage.timeout":               {[]string{"1h30m"}, []string{"", "0s"}},
		"muster.timeout":                     {[]string{"0", "2h"}, []string{"", "-1"}},
		"muster.duration":                    {[]string{"0", "90"}, []string{"", "1y"}},
		"muster.store":                       {[]string{"hdfs://nn/muster", "file:///srv/muster", "/srv/muster"}, []string{"", "https://host/muster", "s3://x/y", "here"}},
		"muster.silence":                     {[]string{"0", "10m"}, []string{"", "never"}},
		"muster.hold":                        {[]string{"0", "90", "10m", "2d"}, []string{"", "yes"}},
		"muster.hold.gang":                   {[]string{"wait", "end"}, []string{"", "yes"}},
		"muster.command":                     {[]string{"exec python3 train.py"}, []string{"", "\n"}},
		"muster.start":                       {[]string{"script"}, []string{"", "native"}},
		"muster.status.interval":             {[]string{"0", "5s"}, []string{"", "-1", "often"}},
		"muster.up":                          {[]string{"auto", "start", "process", "status"}, []string{"", "yes", "STATUS"}},
		"muster.resume.args":                 {[]string{"", "--resume {{checkpoint}}"}, nil},
		"muster.env.A_1":                     {[]string{"", "x"}, nil},
		"muster.env.1A":                      {nil, []string{"x"}},
		"muster.secret.TOKEN":                {[]string{"file:/run/t", "env:T", "keyring:t"}, []string{"", "hunter2", "file:"}},
		"muster.secrets.form":                {[]string{"both", "file", "env"}, []string{"", "files"}},
		"muster.secret.a b":                  {nil, []string{"env:T"}},
		"muster.complete.total.minFailed":    {[]string{"0", "3", "50%", "12.5%"}, []string{"", "-1", "0%", "101%", "x%"}},
		"muster.complete.total.minSucceeded": {[]string{"0", "2"}, []string{"", "-1", "x"}},
		"muster.dialect":                     {[]string{"slider", "pai", "hbox"}, []string{"", "tony"}},
		"muster.pai.version":                 {[]string{"0.5", "0.14", "1"}, []string{"", "2"}},
		"muster.pai.data.dir":                {[]string{"", "hdfs://a/b"}, nil},
		"muster.pai.output.dir":              {[]string{"", "${NN_URI}/Output/j"}, nil},
		"muster.pai.code.dir":                {[]string{"", "file:/c"}, nil},
		"muster.pai.virtual.cluster":         {[]string{"", "default"}, nil},
		"muster.pai.debug":                   {[]string{"true", "false"}, []string{"", "1"}},
		"muster.memory.autoscale.at":         {[]string{"oom", "retry"}, []string{"", "always"}},
		"muster.hbox.jars":                   {[]string{"first", "last"}, []string{"", "true"}},
		"muster.hbox.login":                  {[]string{"true", "false"}, []string{"", "1"}},
		"muster.hbox.type":                   {[]string{"TENSORFLOW", "vpc"}, []string{"", " "}},
		"muster.nproc":                       {[]string{"1", "8"}, []string{"", "0", "auto"}},
		"muster.side.board":                  {[]string{"tensorboard"}, []string{"", " "}},
		"muster.side.board.index":            {[]string{"-1", "0", "3"}, []string{"", "-2"}},
		"muster.side.board.port":             {[]string{"true"}, []string{"", "6006"}},
		"muster.side.board.folder":           {[]string{"runs", "a/b"}, []string{"", ".", "/a", "../a", "a/../.."}},
		"muster.side.board.history":          {[]string{"/h", "hdfs://nn/h"}, []string{"", " "}},
		"muster.side.board.restart":          {[]string{"false"}, []string{"", "never"}},
		"muster.side.a/b":                    {nil, []string{"x"}},
		"muster.side.board.other":            {nil, []string{"x"}},
		"muster.ports.exact":                 {[]string{"true", "false"}, []string{"", "yes"}},
		"muster.ssh":                         {[]string{"true", "false"}, []string{"", "yes"}},
		"muster.env.inherit":                 {[]string{"hbox"}, []string{"", "all"}},
		"muster.tensorflow.mode":             {[]string{"between-graph", "in-graph"}, []string{"", "ingraph"}},
		"muster.input.data":                  {[]string{"/a", "hdfs://n/a/*,/b"}, []string{"", " "}},
		"muster.input.a/b":                   {nil, []string{"/a"}},
		"muster.inputs.splits":               {[]string{"1", "7"}, []string{"0", "-1", "x"}},
		"muster.inputs.lines":                {[]string{"1", "1000"}, []string{"0", "x"}},
		"muster.formats.conf.io.x-y":         {[]string{"z", ""}, nil},
		"muster.formats.conf.a b":            {nil, []string{"x"}},
		"muster.inputs.separator":            {[]string{",", "\t", `\t`, " "}, []string{"", "ab", "é"}},
		"muster.inputs.cache":                {[]string{"true", "false"}, []string{"yes", ""}},
		"muster.inputs.cache.limit":          {[]string{"1", "102400"}, []string{"0", "1g"}},
		"muster.inputs.strategy":             {[]string{"download", "placeholder", "stream"}, []string{"", "copy"}},
		"muster.inputs.rename":               {[]string{"true", "false"}, []string{"", "1"}},
		"muster.inputs.whole":                {[]string{"true", "false"}, []string{"", "1"}},
		"muster.file.run.sh":                 {[]string{"/a/run.sh", "hdfs://n/a"}, []string{"", " "}},
		"muster.file.app":                    {nil, []string{"/a"}},
		"muster.archive.model":               {[]string{"/a.tgz", "https://h/a.zip"}, []string{""}},
		"muster.archive.a/b":                 {nil, []string{"/a.zip"}},
		"muster.files.check":                 {[]string{"true", "false"}, []string{"", "1"}},
		"muster.inputs.chief":                {[]string{"0", "3"}, []string{"", "-1", "true"}},
		"muster.inputs.list.length":          {[]string{"1", "120240"}, []string{"", "0"}},
		"muster.inputs.parallel":             {[]string{"1", "10"}, []string{"", "0"}},
		"muster.inputs.retries":              {[]string{"0", "3"}, []string{"", "-1"}},
		"muster.inputs.shuffle":              {[]string{"true", "false"}, []string{"", "1"}},
		"muster.inputs.epochs":               {[]string{"1", "10"}, []string{"", "0"}},
		"muster.inputs.format":               {[]string{"org.apache.hadoop.mapred.TextInputFormat"}, []string{""}},
		"muster.output.model":                {[]string{"/out"}, []string{""}},
		"muster.output...":                   {nil, []string{"/out"}},
		"muster.outputs.parallel":            {[]string{"1", "10"}, []string{"", "0"}},
		"muster.outputs.strategy":            {[]string{"upload", "stream"}, []string{"", "move"}},
		"muster.outputs.index":               {[]string{"-1", "0", "2"}, []string{"", "-2"}},
		"muster.outputs.flat":                {[]string{"true", "false"}, []string{"", "1"}},
		"muster.outputs.failed":              {[]string{"true", "false"}, []string{"", "1"}},
		"muster.outputs.interval":            {[]string{"0", "10m", "500ms"}, []string{"", "-1s", "often"}},
		"muster.outputs.incremental":         {[]string{"true", "false"}, []string{"", "1"}},
		"muster.outputs.interim":             {[]string{"interResult_", "/saves/save_"}, []string{"", "/", "../a", "a/../b", "_temporary/x", "a//b"}},
		"muster.outputs.format":              {[]string{"org.apache.hadoop.mapred.TextOutputFormat"}, []string{""}},
		"muster.python":                      {[]string{"/opt/py/bin/python3"}, []string{""}},
		"muster.tensorflow.args":             {[]string{"", "--fast"}, nil},
		"yarn.io/gpu":                        {[]string{"0", "4"}, []string{"", "-1", "two"}},
		"muster.gpu.type":                    {[]string{"V100"}, []string{""}},
		"muster.gpu.memory":                  {[]string{"8000"}, []string{"", "0", "8g"}},
		"muster.image":                       {[]string{"docker.io/x:1", "oci:/img"}, []string{""}},
		"muster.image.auth":                  {[]string{"file:/etc/auth.json"}, []string{"", "bob:secret"}},
		"muster.user":                        {[]string{"1000", "1000:1000", "ann:users", "${USER}"}, []string{"", "a b", "1:2:3"}},
		"muster.shm":                         {[]string{"64"}, []string{"", "0", "64m"}},
		"muster.storage":                     {[]string{"0", "5"}, []string{"", "-1", "5g"}},
		"muster.pids":                        {[]string{"0", "4096"}, []string{"", "-1"}},
		"muster.cpu.hard":                    {[]string{"true", "false"}, []string{"", "yes", "True"}},
		"muster.memory.high":                 {[]string{"1", "900"}, []string{"", "0", "1g"}},
		"muster.memory.autoscale":            {[]string{"0", "0.5", "2"}, []string{"", "-1", "x", "NaN", "1e9"}},
		"muster.root":                        {[]string{"read-only", "overlay"}, []string{"", "rw"}},
		"muster.memory.swap":                 {[]string{"0", "512"}, []string{"", "-1"}},
		"muster.ulimit.nofile":               {[]string{"1024", "1024:2048", "unlimited"}, []string{"", "x", "1:2:3", "-1"}},
		"muster.ulimit.files":                {nil, []string{"1"}},
		"muster.rdma":                        {[]string{"true"}, []string{"", "1"}},
		"muster.spread":                      {[]string{"any", "host"}, []string{"", "Host", "rack"}},
	}
	tested := map[string]bool{}
	for name, test := range values {
		key, ok := keys().of(name)
		if !ok {
			t.Fatalf("%s is no key", name)
		}
		tested[key.Name] = true
		judge := func(text string) Problems {
			a := twoRoles()
			if key.Global {
				return Settle(&a, Sources{Config: section("global", name, text)})
			}
			return Settle(&a, Sources{ComponentConfig: map[string]Section{"ps": section("ps", name, text)}})
		}
		for _, text := range test.good {
			found := judge(text)
			if len(found.Errors()) > 0 || name != "muster.framework" && len(found) > 0 {
				t.Errorf("%s=%q: got %v, want it accepted", name, text, found)
			}
		}
		for _, text := range test.bad {
			found := judge(text).Errors()
			if len(found) != 1 || found[0].Severity != SeverityError || found[0].Want == "" {
				t.Errorf("%s=%q: got %v, want one problem", name, text, found)
			}
		}
	}
	for _, key := range Keys() {
		if !tested[key.Name] {
			t.Errorf("%s is in the table and not in this test", key.Name)
		}
		for _, text := range key.Values {
			a := twoRoles()
			if found := Settle(&a, Sources{Config: section("global", key.Name, text)}); len(found.Errors()) > 0 {
				t.Errorf("%s: %q is one of its values and refused: %v", key.Name, text, found)
			}
		}
		if a := twoRoles(); len(key.Values) > 0 && len(Settle(&a, Sources{Config: section("global", key.Name, "no such value")}).Errors()) == 0 {
			t.Errorf("%s takes what is not among its values", key.Name)
		}
		if key.Meaning == "" || (key.app == nil) == (key.component == nil) || key.Global != (key.app != nil) {
			t.Errorf("%s: want a meaning and one parser of its scope", key.Name)
		}
	}
}

func TestSecretsAreNotRepeated(t *testing.T) {
	a := twoRoles()
	found := Settle(&a, Sources{Config: section("global", "muster.secret.T", "hunter2", "muster.image.auth", "bob:hunter2")})
	if len(found.Sort().Errors()) != 2 || strings.Contains(found.Error(), "hunter2") {
		t.Errorf("got %v, want two problems without the secret", found)
	}
}

func TestNullMeansNeverForCountsOnly(t *testing.T) {
	a := twoRoles()
	null := Value{Text: "null", Null: true}
	if found := Settle(&a, Sources{Config: Section{"muster.complete.minFailed": null}}); len(found) > 0 || a.Components[1].Settings.Complete.MinFailed != nil {
		t.Errorf("minFailed null: got %v and %v", found, a.Components[1].Settings.Complete.MinFailed)
	}
	if found := Settle(&a, Sources{Config: Section{"muster.stop.grace": null}}); len(found.Sort()) != 1 {
		t.Errorf("grace null: got %v, want a problem", found)
	}
}

// A key that reads as one of a family is none of it: muster.env.inherit is no variable, at whatever level it stands.
func TestAKeyIsNoneOfItsFamily(t *testing.T) {
	a := App{Components: []Component{{Name: "worker"}}}
	if found := Settle(&a, Sources{Config: section("appConfig global", "muster.env.inherit", "hbox", "muster.env.A", "b")}); len(found) > 0 {
		t.Fatal(found)
	}
	if env := a.Components[0].Settings.Env; len(env) != 1 || env["A"] != "b" || a.Settings.InheritEnv != InheritHBox {
		t.Errorf("variables %v, inherits %q", env, a.Settings.InheritEnv)
	}
}

func TestKeysInTheWrongPlace(t *testing.T) {
	a := twoRoles()
	found := Settle(&a, Sources{
		Config:          section("global", "muster.restart.buget", "1", "muster.stop.grace", "1"),
		Resources:       section("resources", "muster.stop.grace", "2"),
		ComponentConfig: map[string]Section{"ps": section("ps", "muster.timeout", "1")},
	}).Sort()
	want := strings.Join([]string{
		`f#/global/muster.restart.buget: got unknown key "muster.restart.buget", want a key that muster knows; did you mean muster.restart.budget?`,
		`f#/global/muster.stop.grace: got a second value of muster.stop.grace, "1", beside f#/resources/muster.stop.grace, "2", want one value at this level; keep one of the two`,
		`f#/ps/muster.timeout: got the key muster.timeout in a component, want it in global; it holds for the whole app`,
	}, "\n")
	if diff := cmp.Diff(found.Error(), want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
	if len(found.Warnings()) != 1 || len(found.Errors()) != 2 {
		t.Errorf("got %d warnings and %d errors, want 1 and 2", len(found.Warnings()), len(found.Errors()))
	}
}

func TestRestartDefault(t *testing.T) {
	for _, test := range []struct {
		name, framework, dialect string
		counts                   map[string]int
		want                     [3]scope // ps, worker, board
	}{
		{"tensorflow with a ps", "tensorflow", "slider", nil, [3]scope{"instance", "instance", "instance"}},
		{"tensorflow without a ps", "tensorflow", "slider", map[string]int{"ps": 0}, [3]scope{"gang", "gang", "instance"}},
		{"none", "none", "slider", map[string]int{"ps": 0}, [3]scope{"instance", "instance", "instance"}},
		{"all-reduce without mpirun", "horovod-gloo", "slider", nil, [3]scope{"gang", "gang", "instance"}},
		{"all-reduce", "horovod", "slider", nil, [3]scope{"gang", "gang", "instance"}},
		{"mxnet", "mxnet", "slider", nil, [3]scope{"instance", "instance", "instance"}},
		{"pai", "tensorflow", "pai", nil, [3]scope{"never", "never", "never"}},
		{"hbox", "none", "hbox", nil, [3]scope{"never", "never", "never"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := twoRoles()
			a.Dialect = test.dialect
			a.Components = append(a.Components, Component{Name: "Jupyter", Instances: 1})
			if problems := Settle(&a, Sources{Config: section("global", "muster.framework", test.framework)}).Errors(); len(problems) > 0 {
				t.Fatal(problems)
			}
			a = a.WithCounts(test.counts)
			for i, want := range test.want {
				if got := a.Components[i].Settings.Restart.Scope; got != want {
					t.Errorf("%s: got %s, want %s", a.Components[i].Name, got, want)
				}
			}
		})
	}
}

func TestFrameworkAuto(t *testing.T) {
	for _, test := range []struct{ name, roles, want, why string }{
		{"tensorflow", "ps worker", "tensorflow", "the application's name"},
		{"PyTorch", "ps worker", "pytorch", "the application's name"},
		{"mine", "ps worker", "tensorflow", "a ps and a worker export host:port"},
		{"mine", "worker worker", "none", "the application's name is no known framework, and no ps and worker export host:port"},
	} {
		a := twoRoles()
		a.Name = test.name
		roles := strings.Fields(test.roles)
		src := Sources{ComponentConfig: map[string]Section{"ps": section("ps", "muster.role", roles[0]), "worker": section("worker", "muster.role", roles[1])}}
		if found := Settle(&a, src); len(found) > 0 {
			t.Errorf("%s: got %v, want none", test.name, found)
		}
		if a.Settings.Framework != test.want || a.Settings.FrameworkWhy != test.why {
			t.Errorf("%s %s: got %s (%s), want %s (%s)", test.name, test.roles, a.Settings.Framework, a.Settings.FrameworkWhy, test.want, test.why)
		}
	}
}

func TestDefaultRole(t *testing.T) {
	for name, want := range map[string]Role{
		"ps": RolePS, "server": RolePS, "PS": RolePS, "worker": RoleWorker, "chief": RoleChief, "chiefworker": RoleChief, "master": RoleChief,
		"evaluator": RoleEvaluator, "tensorboard": RoleService, "jupyter": RoleService, "notebook": RoleService, "HBASE_MASTER": RoleWorker, "x": RoleWorker,
	} {
		if got := roleByName(name); got != want {
			t.Errorf("DefaultRole(%q) = %s, want %s", name, got, want)
		}
	}
}

func TestHostPort(t *testing.T) {
	for template, want := range map[string]bool{
		"${ps_HOST}:${site.global.ps.port}": true, "${PS_HOST}:2222": true, " ${ps_HOST}:${@//site/global/p} ": true,
		"http://${tb_HOST}:${site.global.p}": false, "${ps_HOST}": false, "${ps_HOST}:": false, "${ps_HOST}:${site.global.p}/x": false,
		"${ps_HOST}:x": false, "host:1": false, "": false, "${USER}:1": false, "${ps_HOST}:${USER}": false,
	} {
		if got := isHostPort(template); got != want {
			t.Errorf("HostPort(%q) = %v", template, got)
		}
	}
}

func TestExportRefSplitsAtTheDashThatYieldsAGroup(t *testing.T) {
	a := App{ExportGroups: []ExportGroup{
		{Name: "a", Exports: []Export{{Name: "x"}}}, {Name: "a-b", Exports: []Export{{Name: "c-d"}, {Name: "y"}}},
	}}
	for text, want := range map[string]ExportRef{
		"a-x": {"a", "x"}, "a-b-c-d": {"a-b", "c-d"}, "a-b-y": {"a-b", "y"}, "a-b-z": {"a", "b-z"}, "q-r-s": {"q", "r-s"}, "plain": {"plain", ""},
	} {
		if got := a.ParseExportRef(text); got != want {
			t.Errorf("ParseExportRef(%q) = %+v, want %+v", text, got, want)
		}
	}
}
