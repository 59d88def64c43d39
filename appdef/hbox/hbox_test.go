package hbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
)

// meaning is what of an App says what runs: not where it was written.
func meaning() cmp.Option {
	return cmp.Options{cmpopts.IgnoreFields(appdef.App{}, "Origins", "Places", "Warnings", "Vars"), cmpopts.EquateEmpty()}
}

// parse reads a command line that has no error.
func parse(t testing.TB, args []string) (hbox.Submission, appdef.Problems) {
	t.Helper()
	s, found := hbox.Parse(args, hbox.Site{})
	if bad := found.Errors(); len(bad) > 0 {
		t.Fatalf("%q: %v", args, bad)
	}
	return s, found
}

// submission makes command lines that have no error, of all that there is to say.
func submission(r *rand.Rand) []string {
	var args []string
	say := func(chance float64, name string, values ...string) {
		if r.Float64() < chance {
			args = append(args, name, values[r.IntN(len(values))])
		}
	}
	kinds := []string{"tensorflow", "TENSOR2TENSOR", "mxnet", "distxgboost", "distlightgbm", "distlightlda", "xflow", "disttorch", "pytorch", "mpi", "tensornet", "horovod", "xdl", "vpc", "digits", "caffe", "hbox"}
	kind := kinds[r.IntN(len(kinds))]
	say(0.9, "--app-type", kind)
	say(0.5, "--app-name", "job 1", "tf-test", "hbox")
	say(0.7, "--worker-num", "1", "2", "3", "5")
	say(0.5, "-workerMemory", "512", "2g", "300M")
	say(0.4, "--worker-cores", "1", "4")
	say(0.4, "—workerGpus", "0", "2")
	say(0.5, "--ps-num", "0", "1", "2")
	say(0.3, "--ps-memory", "2G")
	say(0.3, "--ps-cores", "3")
	say(0.3, "--ps-gpus", "1")
	say(0.3, "--tf-evaluator", "true", "false")
	say(0.3, "--chiefworker-memory", "512", "4096")
	say(0.3, "--evaluatorworker-memory", "4096")
	say(0.3, "--duration", "0", "5m", "1.5h", "90")
	say(0.3, "--user-path", "/opt/bin", "/a b:/c; d")
	say(0.2, "--user-ldlibrarypath", "/opt/lib")
	say(0.3, "--input", "hdfs://nn/a,/b#data", "/x")
	say(0.3, "--input", "/c#data", "/y#more")
	say(0.2, "--s3input", "bucket/k#s3")
	say(0.4, "--output", "/out#model", "/out")
	say(0.2, "--output", "/logs#log")
	say(0.3, "--input-strategy", "PLACEHOLDER", "stream", "DOWNLOAD")
	say(0.2, "--output-strategy", "STREAM")
	say(0.2, "--outputformat-enable", "true")
	say(0.2, "--inputformat-shuffle", "true")
	say(0.2, "--stream-epoch", "3")
	say(0.2, "--inputformat", "org.example.Lines")
	say(0.2, "--conf", "hbox.inputmat.cache=true", "hbox.inputformat.cachesize.limit=7", "mapred.line.input.format.linespermap=4",
		"mapreduce.input.keyvaluelinerecordreader.key.value.separator=;")
	say(0.2, "--isRenameInputFile", "true")
	say(0.2, "--create-containerid-dir", "false")
	say(0.2, "--output-index", "-1", "0")
	say(0.3, "--boardEnable", "true")
	say(0.2, "--board-index", "0", "1")
	say(0.2, "--board-logdir", "logs", "hdfs://nn/e", "a dir")
	say(0.2, "--board-modeldb", "m.pb")
	say(0.2, "--board-historydir", "/old", "hdfs://nn/old")
	say(0.2, "--conf", "hbox.container.env.A=b=c|d", "hbox.container.env.EMPTY=")
	say(0.2, "--conf", "hbox.worker.mem.autoscale=0.5")
	say(0.2, "--conf", "xlearning.ps.mem.autoscale=0.25")
	say(0.3, "--conf", "hbox.app.max.attempts=3", "hbox.job.exec.timeout=60000", "hbox.localresource.timeout=1500")
	say(0.3, "--conf", "hbox.container.maxFailures.rate=0.3", "hbox.container.maxFailures.rate=0", "hbox.container.maxFailures.rate=2", "hbox.container.maxFailures.rate=0.5")
	say(0.2, "--conf", "hbox.tf.distribution.strategy=false")
	say(0.2, "--conf", "hbox.tf.board.ps.enable=true", "hbox.tf.input.ps.enable=true", "hbox.placeholder.whole.enable=true", "hbox.failed.upload=true",
		"hbox.interresult.upload.interval=90000", "hbox.interresult.upload.inc=true", "hbox.interresult.dir=/interResult_")
	say(0.2, "--conf", "hbox.horovod.process.num.per.worker=2", "hbox.horovod.timeline=/t.json", "hbox.horovod.extra.ld.lirbary.path=/nccl")
	if r.Float64() < 0.2 { // without an image it is refused
		args = append(args, "--conf", "hbox.container.type=docker", "--docker-image", "reg/img:3")
	}
	say(0.2, "--conf", "hbox.docker.image.name=reg/img:1", "yarn.nodemanager.docker-container-executor.image-name=img:2")
	say(0.2, "--conf", "muster.restart=gang", "muster.complete.minFailed=2", "muster.framework=none")
	say(0.2, "--conf", "worker:muster.checkpoint.dir=/ckpt", "muster.side.board=echo hi", "worker:muster.command=echo $HOME; exit")
	words := []string{"python", "train.py", "a b", "it's", "$HOME", "${USER}", "{{checkpoint}}", "x=1", "", "{$conf:@//site/a/b}", "if", "\n"}
	args = append(args, words[r.IntN(2)])
	for range r.IntN(4) {
		args = append(args, words[r.IntN(len(words))])
	}
	return args
}

// An App that came from a command line gives one of the same meaning.
func TestWriteThenParse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 300 {
		args := submission(r)
		s, found := hbox.Parse(args, hbox.Site{})
		if len(found.Errors()) > 0 {
			continue // an index of nobody, or a conf of a worker that is not there
		}
		seen[s.App.Settings.HBox.Type] = true
		again, unsupported := hbox.Write(s.App)
		if len(unsupported) > 0 {
			t.Fatalf("%q: unsupported %q", args, unsupported)
		}
		back, found := hbox.Parse(again, hbox.Site{})
		if len(found.Errors()) > 0 {
			t.Fatalf("%q\n%q: %v", args, again, found.Errors())
		}
		if diff := cmp.Diff(s.App, back.App, meaning()); diff != "" {
			t.Fatalf("%q\n%q (-first +again):\n%s", args, again, diff)
		}
	}
	if len(seen) < 15 {
		t.Errorf("types %v: the generator makes too few", seen)
	}
}

// A role's own command is not lost, and parameter servers of a type that has none are told.
func TestWriteRolesWithCommandsOfTheirOwn(t *testing.T) {
	role := func(name, command string) appdef.Component {
		c := appdef.Component{Name: name, MaxInstances: -1, Settings: appdef.ComponentSettings{Command: command}}
		c.Instances = 1
		return c
	}
	app := appdef.App{Name: "a", Components: []appdef.Component{role("ps", "echo ps"), role("worker", "echo work")}}
	app.Settings.HBox.Type = "XFLOW"
	args, unsupported := hbox.Write(app)
	if got := strings.Join(args, " "); len(unsupported) > 0 || !strings.Contains(got, "--ps-num 1 ") ||
		!strings.Contains(got, "--conf ps:muster.command=echo ps ") || !strings.HasSuffix(got, " echo work") {
		t.Errorf("got %q, unsupported %q", got, unsupported)
	}
	app.Settings.HBox.Type = "HBOX"
	args, unsupported = hbox.Write(app)
	if !slices.Equal(unsupported, []string{"the component ps: the app type HBOX has no parameter servers"}) || slices.Contains(args, "--ps-num") {
		t.Errorf("got %q, unsupported %q", args, unsupported)
	}
}

// Options of every spelling are the same option.
func TestSpellings(t *testing.T) {
	want, _ := parse(t, []string{"--worker-num", "2", "--board-enable", "true", "--app-name", "n", "--hbox-cmd", "python a.py"})
	for _, line := range []string{
		"-workerNum 2 -boardEnable true -appName n -hboxCmd", "--workerNum 2 --boardEnable true --appName n --hboxCmd",
		"—workerNum 2 —board-enable true –app-name n --launch-cmd", "-worker-num 2 -board-enable TRUE ——app-name n -launchCmd",
		"--conf hbox.worker.num=2 --conf hbox.tf.board.enable=true --app-name n --hbox-cmd", "--conf xlearning.worker.num=2 --conf xlearning.tf.board.enable=true --app-name n --hbox-cmd",
		"--worker-num 7 --conf hbox.worker.num=2 --board-enable true --app-name n --hbox-cmd",
	} {
		got, _ := parse(t, append(strings.Fields(line), "python\n   a.py"))
		if diff := cmp.Diff(want.App, got.App, meaning()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// shape prints who there is: ps:2 worker:3.
func shape(app appdef.App) string {
	var parts []string
	for _, c := range app.Components {
		parts = append(parts, fmt.Sprintf("%s:%d/%d", c.Name, c.Instances, c.Limits.MemoryMB))
	}
	return strings.Join(parts, " ") + " " + app.Settings.Framework
}

// Who there is: compat 1.1.
func TestRoles(t *testing.T) {
	for line, want := range map[string]string{
		"": "worker:1/1024 none", "--app-type tensorflow": "worker:1/1024 none",
		"--app-type tensorflow --worker-num 2":                                                   "worker:2/1024 tensorflow",
		"--app-type tensorflow --worker-num 2 --conf hbox.tf.distribution.strategy=false":        "worker:2/1024 none",
		"--app-type tensorflow --ps-num 1":                                                       "ps:1/1024 worker:1/1024 tensorflow",
		"--app-type tensorflow --ps-num 2 --worker-num 3 --tf-evaluator true":                    "ps:2/1024 worker:2/1024 evaluator:1/1024 tensorflow",
		"--app-type tensorflow --worker-num 3 --chiefworker-memory 2g":                           "chiefworker:1/2048 worker:2/1024 tensorflow",
		"--app-type tensor2tensor --worker-num 3 --worker-memory 2g --chiefworker-memory 2g":     "worker:3/2048 tensor2tensor",
		"--app-type tensorflow --worker-num 2 --tf-evaluator true --chiefworker-memory 2g":       "worker:1/2048 evaluator:1/1024 tensorflow",
		"--app-type tensorflow --worker-num 3 --tf-evaluator true --evaluatorworker-memory 512m": "worker:2/1024 evaluator:1/512 tensorflow",
		"--app-type mxnet --worker-num 2":                                                        "worker:2/1024 none",
		"--app-type mxnet --worker-num 2 --ps-num 1":                                             "ps:1/1024 worker:2/1024 mxnet",
		"--app-type pytorch":                                          "worker:1/1024 none",
		"--app-type pytorch --worker-num 2 --ps-num 2":                "worker:2/1024 pytorch",
		"--app-type disttorch":                                        "worker:1/1024 pytorch",
		"--app-type xfow --worker-num 2 --ps-num 1 --ps-memory 300":   "ps:1/300 worker:2/1024 xflow",
		"--app-type xdl --worker-num 2 --ps-num 2 --ps-memory 2048":   "scheduler:1/2048 ps:2/2048 worker:2/1024 xdl",
		"--app-type horovod --worker-num 2":                           "worker:2/1024 horovod",
		"--app-type tensornet --worker-num 2":                         "worker:2/1024 mpi",
		"--app-type keras --worker-num 4":                             "worker:4/1024 none",
		"--app-type distlightlda --worker-num 2 --conf hbox.ps.num=1": "ps:1/1024 worker:2/1024 lightlda",
		"--app-type caffe --conf hbox.ps.num=3 --tf-evaluator true --worker-num 2 --chiefworker-memory 512": "worker:2/1024 none",
	} {
		s, _ := parse(t, append(strings.Fields(line), "--hbox-cmd", "true"))
		if got := shape(s.App); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// The rules of failure by type: compat 7.
func TestFailureRules(t *testing.T) {
	for line, want := range map[string]string{
		"--app-type tensorflow --ps-num 1": "1 1 0",
		"--app-type tensorflow":            "- 0.5",
		"--app-type tensorflow --ps-num 1 --conf hbox.container.maxFailures.rate=0.2":          "1 1 0",
		"--app-type distlightlda --ps-num 1 --worker-num 2":                                    "1 1 0",
		"--app-type distxgboost --worker-num 3":                                                "1 0",
		"--app-type distxgboost --worker-num 3 --conf hbox.container.maxFailures.rate=0.4":     "- 0.4",
		"--app-type disttorch --worker-num 3":                                                  "- 0.5",
		"--app-type caffe --worker-num 3 --conf hbox.container.maxFailures.rate=0.33":          "- 0.33",
		"--app-type caffe --worker-num 3 --conf hbox.container.maxFailures.rate=0":             "1 0",
		"--app-type caffe --worker-num 3 --conf hbox.container.maxFailures.rate=1.5":           "- 0",
		"--app-type caffe --worker-num 3 --conf muster.complete.minFailed=2":                   "2 0.5",
		"--app-type caffe --conf muster.complete.total.minFailed=3":                            "- 0",
		"--app-type tensorflow --worker-num 4 --tf-evaluator true --conf worker:muster.hold=0": "1 1 0",
	} {
		s, _ := parse(t, append(strings.Fields(line), "--hbox-cmd", "true"))
		var got []string
		for _, c := range s.App.Components {
			n := "-"
			if m := c.Settings.Complete.MinFailed; m != nil {
				n = fmt.Sprint(*m)
			}
			got = append(got, n)
			if c.Settings.Restart.Scope != appdef.ScopeNever {
				t.Errorf("%s: %s restarts by %s, want never", line, c.Name, c.Settings.Restart.Scope)
			}
		}
		got = append(got, fmt.Sprint(s.App.Settings.Total.FailedShare))
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
}

// What an option says, by a key of the worker's that must hold it.
func TestMeanings(t *testing.T) {
	const (
		inner = `tensorboard --host=127.0.0.1 --port="$MUSTER_PORT_SIDE_BOARD_INNER" --reload_interval=1 --logdir=eventLog`
		outer = `tensorboard --host="$MUSTER_HOST" --port="$MUSTER_PORT_SIDE_BOARD" --reload_interval=1 --logdir=eventLog`
	)
	tests := []struct {
		line, component, key, want string
	}{
		{"--hbox-cmd python||a.py|'x'|${USER}", "worker", "muster.command", `python a.py ''\''x'\''' '$''{USER}'`},
		{"--app-type vpc", "worker", "muster.command", "sleep 1d"},
		{"--app-type vpc --duration 0", "worker", "muster.command", "sleep 32767d"},
		{"--app-type digits --duration 10m", "worker", "muster.command", "sleep 10m"},
		{"--app-type digits", "worker", "muster.side.digits", `exec python -m digits -p "$MUSTER_PORT_SIDE_DIGITS"`},
		{"--app-type digits", "worker", "muster.side.digits.http", "true"},
		{"--app-type tensorflow --board-enable true x", "worker", "muster.side.board.http", "true"},
		{"--app-type tensorflow --board-enable true --board-historydir /h x", "worker", "muster.side.board.history", "/h"},
		{"--board-enable true --board-historydir /h --board-logdir l x", "worker", "muster.side.board.folder", "l"},
		{"--board-enable true --board-historydir /h --board-logdir /l x", "worker", "muster.side.board.history", ""},
		{"--board-enable true --board-historydir /h --conf hbox.tf.board.upload=false x", "worker", "muster.side.board.history", ""},
		{"--board-enable true x", "worker", "muster.side.board.history", ""},
		{"--user-path /opt/bin a", "worker", "muster.command", `export PATH="$PATH":/opt/bin; exec a`},
		{"--app-type horovod --conf hbox.horovod.extra.ld.lirbary.path=/n a", "worker", "muster.command", `export LD_LIBRARY_PATH=/n"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; exec a`},
		{"--app-type horovod --conf hbox.horovod.fusion.threshold=64 a", "worker", "muster.env.HOROVOD_FUSION_THRESHOLD", "64"},
		{"--app-type horovod --conf hbox.horovod.cycle.time=-1 a", "worker", "muster.env.HOROVOD_CYCLE_TIME", ""},
		{"--app-type horovod --conf hbox.horovod.hierarchical.allreduce=true a", "worker", "muster.env.HOROVOD_HIERARCHICAL_ALLREDUCE", "1"},
		{"--conf hbox.container.env.A=b=c a", "worker", "muster.env.A", "b=c"},
		{"--input /a,/b#d --input /b#d --input /c#d a", "worker", "muster.input.d", "/a,/b,/c"},
		{"--s3input b/k,s3://c/d a", "worker", "muster.input.input", "s3://b/k,s3://c/d"},
		{"--input /a --inputformat-enable true a", "worker", "muster.inputs.strategy", "stream"},
		{"--input /a --input-strategy STREAM --conf hbox.inputmat.cache=true a", "worker", "muster.inputs.cache", "true"},
		{"--input /a --input-strategy STREAM --conf hbox.inputformat.cache=true a", "worker", "muster.inputs.cache", "true"},
		{"--input /a --conf hbox.inputformat.cache=true a", "worker", "muster.inputs.cache", ""},
		{"--input /a --input-strategy STREAM --conf hbox.inputformat.cachesize.limit=5 a", "worker", "muster.inputs.cache.limit", "5"},
		{"--input /a --input-strategy STREAM --conf mapred.line.input.format.linespermap=9 a", "worker", "muster.inputs.lines", "9"},
		{"--input /a --input-strategy STREAM --inputformat a.B --conf mapreduce.x=y a", "worker", "muster.formats.conf.mapreduce.x", "y"},
		{"--output /a --output-strategy STREAM --outputformat a.B --conf io.x=y a", "worker", "muster.formats.conf.io.x", "y"},
		{"--input /a --input-strategy STREAM --conf mapreduce.x=y a", "worker", "muster.formats.conf.mapreduce.x", ""},
		{"--input /a --input-strategy STREAM --conf key.value.separator.in.input.line=, a", "worker", "muster.inputs.separator", ","},
		{"--input /a --input-strategy STREAM --inputformat x.WholeFileInputFormat a", "worker", "muster.inputs.format", "x.WholeFileInputFormat"},
		{"--output /a --output-strategy STREAM --outputFormatClass x.Mine a", "worker", "muster.outputs.format", "x.Mine"},
		{"--app-type tensorflow --ps-num 1 --input /a a", "ps", "muster.input.input", ""},
		{"--app-type tensorflow --ps-num 1 --input /a --conf hbox.tf.input.ps.enable=true a", "ps", "muster.input.input", "/a"},
		{"--app-type tensorflow --worker-num 3 --tf-evaluator true --input /a a", "evaluator", "muster.input.input", ""},
		{"--app-type tensorflow --worker-num 3 --tf-evaluator true --output /a a", "evaluator", "muster.output.output", "/a"},
		{"--app-type mxnet --ps-num 1 --output /a a", "ps", "muster.output.output", ""},
		{"--app-type tensorflow --ps-num 1 --output /a a", "ps", "muster.output.output", "/a"},
		{"--app-type tensorflow --worker-num 3 --chiefworker-memory 2g --output /a --output-index 2 a", "worker", "muster.outputs.index", "1"},
		{"--app-type tensorflow --worker-num 3 --chiefworker-memory 2g --output /a --output-index 2 a", "chiefworker", "muster.output.output", ""},
		{"--output /a --create-containerid-dir false a", "worker", "muster.outputs.flat", "true"},
		{"--worker-num 2 --output /a --create-containerid-dir false a", "worker", "muster.outputs.flat", ""},
		{"--app-type tensorflow --board-enable true --board-logdir l a", "worker", "muster.side.board", `tensorboard --host=127.0.0.1 --port="$MUSTER_PORT_SIDE_BOARD_INNER" --reload_interval=1 --logdir=l`},
		{"--app-type tensorflow --board-enable true --board-logdir /tmp/l a", "worker", "muster.side.board", `tensorboard --host=127.0.0.1 --port="$MUSTER_PORT_SIDE_BOARD_INNER" --reload_interval=1 --logdir="$MUSTER_DEFAULT_FS"/tmp/l`},
		{"--board-enable true --board-modeldb m a", "worker", "muster.side.board", `if command -v visualDL >/dev/null; then ` +
			`exec visualDL --host=127.0.0.1 --port="$MUSTER_PORT_SIDE_BOARD_INNER" --logdir=eventLog --cache_timeout=20 --model_pb=m; else ` +
			`exec visualdl --host=127.0.0.1 --port="$MUSTER_PORT_SIDE_BOARD_INNER" --logdir=eventLog --cache-timeout=20 --model=m; fi`},
		{"--app-type tensorflow --worker-num 3 --chiefworker-memory 2g --board-enable true --board-index 2 a", "worker", "muster.side.board.index", "1"},
		{"--app-type tensorflow --board-enable true --conf muster.side.board.key=true a", "worker", "muster.side.board", inner},
		{"--app-type tensorflow --board-enable true --conf muster.side.board.key=false a", "worker", "muster.side.board", outer},
		{"--app-type tensorflow --board-enable true --conf muster.side.board.key=false a", "worker", "muster.side.board.key", "false"},
		{"--app-type tensorflow --board-enable true --conf worker:muster.side.board.key=true --conf muster.side.board.key=false a", "worker", "muster.side.board", inner},
		{"--app-type tensorflow --board-enable true --conf muster.side.board.key=true --conf muster.side.board.key=false a", "worker", "muster.side.board", outer},
		{"--conf hbox.app.max.attempts=3 a", "worker", "muster.retry", "2"},
		{"--conf hbox.job.exec.timeout=1500 a", "worker", "muster.timeout", "1500ms"},
		{"--conf muster.checkpoint.dir=/c a", "worker", "muster.checkpoint.dir", "/c"},
		{"--conf worker:muster.stop.signal=INT a", "worker", "muster.stop.signal", "INT"},
	}
	for _, test := range tests {
		args := strings.Fields(test.line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "|", " ")
		}
		s, _ := parse(t, args)
		if got := s.App.Component(test.component).Config[test.key]; got != test.want {
			t.Errorf("%s: %s of %s is %q, want %q", test.line, test.key, test.component, got, test.want)
		}
	}
}

func TestImages(t *testing.T) {
	const executor, image = "yarn.nodemanager.container-executor.type=docker", "yarn.nodemanager.docker-container-executor.image-name="
	for _, tt := range []struct {
		line string
		site []string
		want string
	}{
		{"--conf " + executor + " --conf " + image + "a", nil, "a"},
		{"--conf hbox.container.type=docker --conf hbox.docker.image.name=b", nil, "b"},
		{"--conf hbox.container.type=docker --conf hbox.docker.image=b", nil, "b"}, // as HBox's manual has it
		{"--conf hbox.container.type=docker --conf hbox.docker.image.name=b --conf " + image + "a", nil, "b"},
		{"--conf " + executor + " --conf hbox.docker.image.name=b --conf " + image + "a", nil, "a"},
		{"--container-type docker --docker-image c", nil, "c"},
		{"--app-type vpc --conf " + image + "d", nil, "d"},
		{"--app-type digits --conf hbox.digits.image-name=e", nil, "e"},
		{"--conf hbox.docker.image.name=f", nil, ""},
		{"--conf hbox.container.type=yarn --conf hbox.digits.image-name=g", nil, ""},
		{"--app-type vpc", nil, ""},
		{"--conf hbox.container.type=docker --conf muster.image=host", nil, ""},
		// The administrator's default.
		{"--conf " + executor, []string{image + "s"}, "s"},
		{"--app-type vpc", []string{image + "s"}, "s"},
		{"--app-type digits", []string{image + "s", "hbox.digits.image-name=d"}, "d"},
		{"--app-type digits --conf " + image + "a", []string{"hbox.digits.image-name=d"}, "a"},
		{"--conf " + executor + " --conf hbox.docker.image.name=b", []string{image + "s"}, "b"},
		{"", []string{image + "s"}, ""},
		{"", []string{image + "s", executor}, "s"},
		{"--conf " + executor, []string{"muster.image=host"}, ""},
		{"--conf " + executor + " --conf " + image + "a", []string{"muster.image=host"}, "a"},
	} {
		s, found := hbox.Parse(append(strings.Fields(tt.line), "--hbox-cmd", "true"), siteOf(t, tt.site...))
		if got := s.App.Components[0].Limits.Image; got != tt.want || len(found.Errors()) > 0 {
			t.Errorf("%s with %v: image %q, want %q (%v)", tt.line, tt.site, got, tt.want, found)
		}
	}
}

// What means nothing here is carried and can be told.
func TestCarried(t *testing.T) {
	s, _ := parse(t, []string{
		"--queue", "root.ml", "-driverMemory", "2g", "--cluster", "safe", "--priority", "HIGH", "--launcher", "none",
		"--conf", "hbox.task.timeout=1", "--conf", "yarn.x=y", "--conf", "hbox.commom.cache.archive.hdfs=h", "--cacheFile", "/a#b, file:/l/c#d", "--cacheArchive", "file:/m.tgz",
		"--files", "a.py, dir/b/", "--archiveFiles", "/x/t.tgz#tf,u.zip", "--jars", "j.jar", "true",
	})
	want := []string{"--cluster", "--driver-memory", "--priority", "--queue", "hbox.common.cache.archive.hdfs", "hbox.task.timeout", "yarn.x"}
	got := s.CarriedNames()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("carried %q, want %q", got, want)
	}
	if got := s.App.Config["muster.file.b"]; got != "/a" {
		t.Errorf("the cached file comes from %q", got)
	}
	if s.Launcher != "none" {
		t.Errorf("launcher %q", s.Launcher)
	}
	if diff := cmp.Diff([][]hbox.Local{
		{{"--files", "a.py", "a.py"}, {"--files", "dir/b/", "b"}, {"--cacheFile", "file:/l/c", "d"}},
		{{"--archiveFiles", "/x/t.tgz", "tf"}, {"--archiveFiles", "u.zip", "u.zip"}, {"--cacheArchive", "file:/m.tgz", "m.tgz"}},
		{{"--jars", "j.jar", "j.jar"}},
	}, [][]hbox.Local{s.Files, s.Archives, s.Jars}); diff != "" {
		t.Error(diff)
	}
}

// What lies on a store comes to every instance by a key; what is the client's own is brought along.
func TestFilesOfStores(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--cacheFile hdfs://n/a/x.txt,/b/y#z", "muster.file.x.txt=hdfs://n/a/x.txt muster.file.z=/b/y"},
		{"--cacheArchive hdfs://n/a/m.tgz,https://h/b.zip?v=1,rel/c.jar#c/", "muster.archive.b.zip=https://h/b.zip?v=1 muster.archive.c=rel/c.jar muster.archive.m.tgz=hdfs://n/a/m.tgz"},
		{"--files hdfs://n/run.sh,local.sh --jars hdfs://n/a.jar --archiveFiles hdfs://n/m.tgz#m,own.tgz", "muster.archive.m=hdfs://n/m.tgz muster.file.a.jar=hdfs://n/a.jar muster.file.run.sh=hdfs://n/run.sh"},
		{"--cacheFile /a --conf hbox.cachefile.check.enable=false", "muster.file.a=/a muster.files.check=false"},
		{"--cacheFile file:/a --conf hbox.cachefile.check.enable=false", ""},
		{"--cacheFile /a#x,/a#x", "muster.file.x=/a"},
	} {
		args := append(strings.Fields(tt.args), "true")
		s, found := hbox.Parse(args, hbox.Site{})
		if bad := found.Errors(); len(bad) > 0 {
			t.Errorf("%s: %v", tt.args, bad)
		}
		if got := filesOf(s.App); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.args, got, tt.want)
		}
		words, unsupported := hbox.Write(s.App)
		again, _ := hbox.Parse(words, hbox.Site{})
		if got := filesOf(again.App); got != tt.want || len(unsupported) > 0 {
			t.Errorf("%s: written as %q, which is %s; unsupported %v", tt.args, words, got, unsupported)
		}
	}
	for args, want := range map[string]string{
		"--cacheFile /a/x,/b/x true":         `"/b/x" with the name "x", which /a/x has`,
		"--cacheFile /a#app true":            "muster.file.",
		"--cacheArchive hdfs://n/a#x/y true": "muster.archive.",
	} {
		if _, found := hbox.Parse(strings.Fields(args), hbox.Site{}); !strings.Contains(fmt.Sprint(found.Errors()), want) {
			t.Errorf("%s: got %v, want %s", args, found, want)
		}
	}
}

func filesOf(app appdef.App) string {
	var all []string
	for key, text := range app.Config {
		if strings.HasPrefix(key, "muster.file") || strings.HasPrefix(key, "muster.archive.") {
			all = append(all, key+"="+text)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// The numbers of inputs that confs have come back as the same confs.
func TestNumbersOfInputs(t *testing.T) {
	confs := []string{
		"--conf", "hbox.chief.worker.minimum.data=true", "--conf", "hbox.chief.worker.minimum.file.num=3", "--conf", "hbox.env.maxlength=102400",
		"--conf", "hbox.download.file.thread.nums=4", "--conf", "hbox.download.file.retry=0", "--conf", "hbox.upload.file.thread.nums=2",
	}
	s, found := hbox.Parse(append(slices.Concat([]string{"--worker-num", "3", "--input", "/in#data", "--output", "/out#model"}, confs), "true"), hbox.Site{})
	if len(found) > 0 {
		t.Fatal(found)
	}
	in := s.App.Component("worker").Settings.Inputs
	if in.Chief != 3 || in.ListLength != 102400 || in.Parallel != 4 || in.Retries == nil || *in.Retries != 0 {
		t.Errorf("got %+v", in)
	}
	if out := s.App.Component("worker").Settings.Outputs; out.Parallel != 2 {
		t.Errorf("got %+v", out)
	}
	words, unsupported := hbox.Write(s.App)
	if text := strings.Join(words, " "); !strings.Contains(text, strings.Join(confs, " ")) || len(unsupported) > 0 {
		t.Errorf("written as %s, unsupported %v", text, unsupported)
	}
	for _, line := range []string{
		"--worker-num 3 --input /in#data --conf hbox.chief.worker.minimum.file.num=3 true",
		"--app-type tensorflow --worker-num 3 --ps-num 1 --input /in#data --conf hbox.chief.worker.minimum.data=true --conf hbox.tf.input.ps.enable=true true",
	} {
		s, _ := hbox.Parse(strings.Fields(line), hbox.Site{})
		if in := s.App.Component("worker").Settings.Inputs; in.Chief != 0 {
			t.Errorf("%s: the chief gets %d", line, in.Chief)
		}
	}
}

func TestVerbs(t *testing.T) {
	for line, want := range map[string]string{"": hbox.VerbHelp, "--help": hbox.VerbHelp, "-help --nonsense": hbox.VerbHelp, "--version": hbox.VerbVersion, "true": hbox.VerbRun} {
		if s, _ := hbox.Parse(strings.Fields(line), hbox.Site{}); s.Verb != want {
			t.Errorf("%q: %s, want %s", line, s.Verb, want)
		}
	}
}
