package hbox

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// option is one option of hbox-submit. Letter case and dashes of its names do not matter: worker-num and workerNum are
// the same option.
type option struct {
	name    string
	also    []string // other names: XLearning's, and some found in scripts
	conf    string   // the conf with the same meaning; it wins if --conf sets it
	idle    bool     // only YARN or HBox's own services use it
	remote  bool     // idle on this host; a launcher is asked for it
	repeat  bool     // it may be given more than once
	bare    bool     // it takes no value
	meaning string
}

// optionTable lists all options in the order of HBox's own help.
var optionTable = [...]option{
	{name: "app-name", meaning: "name of the job"},
	{name: "app-type", meaning: "the framework: tensorflow, mxnet, distxgboost, …; any other name means single " +
		"processes (default HBOX)"},
	{
		name: "cluster", conf: "hbox.cluster.name",
		meaning: "the cluster: hbox-site.xml names its Hadoop configuration as NAME.conf.path",
	},
	{
		name: "driver-memory", also: []string{"am-memory"}, conf: "hbox.driver.memory", idle: true, remote: true,
		meaning: "memory of the ApplicationMaster",
	},
	{
		name: "driver-cores", also: []string{"am-cores"}, conf: "hbox.driver.cores", idle: true, remote: true,
		meaning: "cores of the ApplicationMaster",
	},
	{
		name: "worker-memory", conf: "hbox.worker.memory",
		meaning: "memory of a worker, MB, or with a unit such as 2g (default 1024)",
	},
	{name: "worker-cores", conf: "hbox.worker.cores", meaning: "cores of a worker (default 1)"},
	{name: "worker-gpus", conf: "hbox.worker.gpus", meaning: "GPUs of a worker (default 0)"},
	{name: "worker-num", conf: "hbox.worker.num", meaning: "how many workers (default 1)"},
	{
		name: "chiefworker-memory", conf: "hbox.chief.worker.memory",
		meaning: "TensorFlow: memory of worker 0 (default: as other workers)",
	},
	{
		name: "evaluatorworker-memory", conf: "hbox.evaluator.worker.memory",
		meaning: "TensorFlow: memory of the evaluator (default: as workers)",
	},
	{name: "duration", conf: "hbox.vpc.duration", meaning: "how long a vpc or digits job runs: a number with s, m, h " +
		"or d; 0: no limit (default 1d)"},
	{name: "ps-memory", conf: "hbox.ps.memory", meaning: "memory of a parameter server (default 1024)"},
	{name: "ps-cores", conf: "hbox.ps.cores", meaning: "cores of a parameter server (default 1)"},
	{name: "ps-gpus", conf: "hbox.ps.gpus", meaning: "GPUs of a parameter server (default 0)"},
	{name: "ps-num", conf: "hbox.ps.num", meaning: "how many parameter servers (default 0)"},
	{name: "tf-evaluator", conf: "hbox.tf.evaluator", meaning: "true: the last worker is the evaluator"},
	{name: "files", meaning: "files and folders to copy into every working directory: paths or URLs with commas " +
		"between them"},
	{name: "archiveFiles", meaning: "archives to unpack there, as FILE#FOLDER"},
	{name: "jars", meaning: "jars to copy there"},
	{name: "cacheFile", meaning: "files of HDFS or another store to copy there, as PATH#NAME with commas between " +
		"them; file:PATH is a file of the client"},
	{name: "cacheArchive", meaning: "archives of HDFS or another store to unpack there, as PATH#FOLDER; file:PATH is " +
		"a file of the client"},
	{
		name: "hbox-cmd", also: []string{"launch-cmd"},
		meaning: "the command, split at blanks, without quotes; words behind the options replace it",
	},
	{name: "user-path", meaning: "appended to PATH"},
	{name: "user-ldlibrarypath", meaning: "put before LD_LIBRARY_PATH"},
	{
		name: "priority", conf: "hbox.app.priority", idle: true, remote: true,
		meaning: "YARN's priority: DEFAULT, VERY_LOW, LOW, NORMAL, HIGH, VERY_HIGH",
	},
	{name: "queue", conf: "hbox.app.queue", idle: true, remote: true, meaning: "YARN's queue"},
	{name: "input", repeat: true, meaning: "PATHS#NAME: files to share out among the workers, in the folder NAME; " +
		"repeatable"},
	{name: "output", repeat: true, meaning: "PATH#NAME: where the folder NAME of each worker is uploaded; repeatable"},
	{name: "s3input", repeat: true, meaning: "--input from Amazon S3"},
	{name: "s3output", repeat: true, meaning: "--output to Amazon S3"},
	{
		name: "input-strategy", conf: "hbox.input.strategy",
		meaning: "DOWNLOAD, PLACEHOLDER or STREAM (default DOWNLOAD)",
	},
	{name: "output-strategy", conf: "hbox.output.strategy", meaning: "UPLOAD or STREAM (default UPLOAD)"},
	{name: "inputformat-enable", conf: "hbox.input.stream", meaning: "true: --input-strategy STREAM"},
	{name: "outputformat-enable", conf: "hbox.out.stream", meaning: "true: --output-strategy STREAM"},
	{
		name: "inputformat-shuffle", conf: "hbox.input.stream.shuffle",
		meaning: "STREAM: true: assign splits to workers in turn",
	},
	{
		name: "inputformat", also: []string{"inputFormatClass"}, conf: "hbox.inputformat.class",
		meaning: "STREAM: Hadoop's InputFormat",
	},
	{
		name: "outputformat", also: []string{"outputFormatClass"}, conf: "hbox.outputformat.class",
		meaning: "STREAM: Hadoop's OutputFormat",
	},
	{
		name: "stream-epoch", conf: "hbox.stream.epoch",
		meaning: "STREAM: how often each worker reads its lines (default 1)",
	},
	{
		name: "isRenameInputFile", conf: "hbox.inputfile.rename",
		meaning: "true: give downloaded files unique names",
	},
	{
		name: "create-containerid-dir", conf: "hbox.createcontainerid.dir",
		meaning: "false: a single worker uploads its outputs without a folder of its own",
	},
	{
		name: "output-index", conf: "hbox.output.index",
		meaning: "the only worker whose outputs are uploaded; -1: all (default)",
	},
	{
		name: "user-classpath-first", conf: "hbox.user.classpath.first",
		meaning: "false: Java finds the jars of --jars behind Hadoop's (default true)",
	},
	{
		name: HostLocal, conf: "hbox.host.local.enable",
		meaning: "true: run on the hosts of the previous run; no launcher is told them",
	},
	{
		name: "board-enable", conf: "hbox.tf.board.enable",
		meaning: "true: TensorBoard, or VisualDL, runs beside a worker",
	},
	{name: "board-index", conf: "hbox.tf.board.worker.index", meaning: "the index of that worker (default 0)"},
	{
		name: "board-reloadinterval", conf: "hbox.tf.board.reload.interval",
		meaning: "how often TensorBoard reloads, s (default 1)",
	},
	{
		name: "board-logdir", conf: "hbox.tf.board.log.dir",
		meaning: "the folder that the board shows (default eventLog)",
	},
	{
		name: "board-historydir", conf: "hbox.tf.board.history.dir",
		meaning: "where that folder is kept after the run, as DIR/APP-ID (default: nowhere)",
	},
	{name: "board-modelpb", also: []string{"board-modeldb"}, conf: "hbox.board.modelpb", meaning: "VisualDL's model"},
	{
		name: "board-cacheTimeout", conf: "hbox.board.cache.timeout",
		meaning: "timeout of VisualDL's cache, s (default 20)",
	},
	{name: "docker-image", meaning: "the image that --container-type docker runs"},
	{name: "container-type", conf: "hbox.container.type", meaning: "docker: run the processes in an image"},
	{name: "launcher", meaning: "where to run; none: on this host"},
	{name: "conf", repeat: true, meaning: "NAME=VALUE of HBox's configuration, or [COMPONENT:]muster.NAME=VALUE; " +
		"repeatable"},
	{name: "help", bare: true, meaning: "print this"},
	{name: "version", bare: true, meaning: "print the version of muster"},
}

// HostLocal is an option, and in Carried: the job is to run on the hosts of the previous run.
const HostLocal = "host-local-enable"

// Option is one option for a manual.
type Option struct {
	Name    string
	Meaning string
	Idle    bool // accepted, and ignored on this host
	Remote  bool // of an idle option: a launcher is asked for it
}

// Options lists all options in the order of HBox's own help.
func Options() []Option {
	out := make([]Option, len(optionTable))
	for i, o := range optionTable {
		out[i] = Option{Name: "--" + o.name, Meaning: o.meaning, Idle: o.idle, Remote: o.remote}
	}
	return out
}

// bareName is a name in lower case without its hyphens: all spellings of one option have the same.
func bareName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "")) }

// optionNamed finds an option by any spelling of its name, without the dashes before it.
func optionNamed(name string) (option, bool) {
	bare := bareName(name)
	same := func(other string) bool { return other == name || bareName(other) == bare }
	i := slices.IndexFunc(optionTable[:], func(o option) bool {
		return same(o.name) || slices.ContainsFunc(o.also, same)
	})
	if i < 0 {
		return option{}, false
	}
	return optionTable[i], true
}

// cutDashes removes the dashes before an option: one, two, or the long dash that a word processor makes of two.
func cutDashes(word string) (name string, ok bool) {
	for _, dash := range [...]string{"--", "-", "——", "—", "–"} {
		if name, ok := strings.CutPrefix(word, dash); ok {
			return name, true
		}
	}
	return word, false
}

// meantOption is the hint for an unknown option.
func meantOption(name string) string {
	var names []string
	for _, o := range optionTable {
		names = append(names, o.name)
		names = append(names, o.also...)
	}
	if hint := appdef.DidYouMean(name, names); hint != "" {
		return strings.Replace(hint, "mean ", "mean --", 1)
	}
	return ""
}
