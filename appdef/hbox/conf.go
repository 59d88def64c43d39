package hbox

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// The confs that an App has a place for and no option sets, in their right spelling.
const (
	confEnv             = "hbox.container.env." // + a variable's name
	confAttempts        = "hbox.app.max.attempts"
	confWorkerAutoscale = "hbox.worker.mem.autoscale"
	confPSAutoscale     = "hbox.ps.mem.autoscale"
	confRate            = "hbox.container.maxFailures.rate"
	confTimeout         = "hbox.job.exec.timeout"
	confStageTimeout    = "hbox.localresource.timeout"
	confStrategy        = "hbox.tf.distribution.strategy"
	confBoardOnPS       = "hbox.tf.board.ps.enable"
	confBoardUpload     = "hbox.tf.board.upload"
	confInputToPS       = "hbox.tf.input.ps.enable"
	confWhole           = "hbox.placeholder.whole.enable"
	confFileCheck       = "hbox.cachefile.check.enable"
	confChief           = "hbox.chief.worker.minimum.data"
	confChiefFiles      = "hbox.chief.worker.minimum.file.num"
	confListLength      = "hbox.env.maxlength"
	confUploads         = "hbox.upload.file.thread.nums"
	confDownloads       = "hbox.download.file.thread.nums"
	confDownloadRetries = "hbox.download.file.retry"
	confCache           = "hbox.inputformat.cache"
	confCacheLimit      = "hbox.inputformat.cachesize.limit"
	confLines           = "mapreduce.input.lineinputformat.linespermap"
	confSeparator       = "mapreduce.input.keyvaluelinerecordreader.key.value.separator"
	confFailedUpload    = "hbox.failed.upload"
	confSaveEvery       = "hbox.interresult.upload.interval"
	confSaveChanged     = "hbox.interresult.upload.inc"
	confSaves           = "hbox.interresult.dir"
	confPython          = "hbox.python.home"
	confExecutor        = "yarn.nodemanager.container-executor.type"
	confExecutorImage   = "yarn.nodemanager.docker-container-executor.image-name"
	confDockerImage     = "hbox.docker.image.name"
	confDigitsImage     = "hbox.digits.image-name"
	confExit            = "hbox.custom.exit"
	confMPIHome         = "hbox.mpi.install.dir"
	confMPILibraries    = "hbox.mpi.extra.ld.library.path"
	confHorovod         = "hbox.horovod."
	confHorovodLibs     = confHorovod + "extra.ld.library.path"
	confHorovodProcs    = confHorovod + "process.num.per.worker"
)

// confNames are the supported confs of HBox besides those of the options.
func confNames() []string {
	names := []string{
		confAttempts, confWorkerAutoscale, confPSAutoscale, confRate, confTimeout, confStageTimeout, confStrategy,
		confBoardOnPS, confBoardUpload,
		confInputToPS, confWhole, confFileCheck, confChief, confChiefFiles, confListLength, confDownloads,
		confDownloadRetries, confUploads,
		confCache, confCacheLimit, confLines, confSeparator,
		confFailedUpload, confSaveEvery, confSaveChanged, confSaves, confPython, confExecutor, confExecutorImage,
		confDockerImage, confDigitsImage,
		confExit, confMPIHome, confMPILibraries, confHorovodLibs, confHorovodProcs,
	}
	for conf := range horovodVariables {
		names = append(names, conf)
	}
	for _, o := range optionTable {
		if o.conf != "" && !o.idle {
			names = append(names, o.conf)
		}
	}
	return names
}

// idleConfs are confs that only YARN or HBox's own services use, or that muster replaces.
var idleConfs = [...]string{
	"cluster.name.conf.path", "hbox.allocate.interval", "hbox.am.cmd", "hbox.am.cmd.enable", "hbox.app.id",
	"hbox.append.defaultfs.enable",
	"hbox.cleanup.enable",
	"hbox.client.hostname", "hbox.client.log.collect", "hbox.cluster.name.history.webapp.address",
	"hbox.common.cache.archive.hdfs",
	"hbox.common.cache.archive.hdfs.convert.enable", "hbox.container.auto.create.output.dir",
	"hbox.container.extra.java.opts",
	"hbox.container.heartbeat.interval", "hbox.container.heartbeat.retry", "hbox.container.jvm.memory.fraction",
	"hbox.container.jvm.memory.minimum", "hbox.container.mem.usage.warn.fraction", "hbox.container.running.log.enable",
	"hbox.container.update.appstatus.interval", "hbox.container.update.appstatus.retry", "hbox.docker.num.per.worker",
	"hbox.docker.run.args", "hbox.docker.work.dir",
	"hbox.execute.node.limit", "hbox.file.list.level", "hbox.history.address",
	"hbox.history.log.delete-monitor-time-interval",
	"hbox.history.log.dir", "hbox.history.log.max-age-ms", "hbox.history.port", "hbox.history.webapp.address",
	"hbox.history.webapp.port",
	"hbox.host.blacklist", "hbox.inputformat.cachefile.name",
	"hbox.interresult.upload.timeout", "hbox.job.labelname",
	"hbox.local.resource.visibility", "hbox.log.pull.interval", "hbox.log.sampling", "hbox.memory.overhead.fraction",
	"hbox.memory.overhead.minimum", "hbox.messages.len.max", "hbox.mpi.container.update.status.retry",
	"hbox.mpi.exec.dir",
	"hbox.mpi.exec.dir.enable", "hbox.mpi.install.dir.enable", "hbox.mxnet.mode.single", "hbox.nodemanager.webapp.port",
	"hbox.output.local.dir", "hbox.remote.defaultFS", "hbox.report.container.status", "hbox.reserve.port.begin",
	"hbox.reserve.port.end",
	"hbox.s3.bucket.dir.split", "hbox.s3.cluster", "hbox.s3.cluster.prefix", "hbox.s3.key.access", "hbox.s3.key.secret",
	"hbox.staging.dir", "hbox.status.update.interval", "hbox.task.timeout", "hbox.task.timeout.check.interval",
	"hbox.tf.mode.single", "yarn.nodemanager.docker-container-executor.exec-name",
}

// misspelt are HBox's own spelling mistakes: its code reads the names on the left, and scripts use them.
var misspelt = strings.NewReplacer(
	".ld.lirbary.path", ".ld.library.path", "hbox.commom.", "hbox.common.", "hbox.inputmat.cache",
	"hbox.inputformat.cache",
	"hbox.hisotory.", "hbox.history.",
	// Hadoop's own names before its release 2
	"mapred.line.input.format.linespermap", confLines, "key.value.separator.in.input.line", confSeparator,
)

// hboxTypeKey has --app-type.
const hboxTypeKey = "muster.hbox.type"

// oldPrefix is the prefix of XLearning.
const oldPrefix = "xlearning."

// spelt is the name of a conf in muster's spelling.
func spelt(name string) string {
	if rest, ok := strings.CutPrefix(name, oldPrefix); ok {
		name = "hbox." + rest
	}
	if rest, ok := strings.CutPrefix(name, "hbox.board."); ok &&
		!slices.Contains([]string{"modelpb", "cache.timeout"}, rest) {
		name = "hbox.tf.board." + rest
	}
	if name == "hbox.docker.image" { // as HBox's manual has it
		name = confDockerImage
	}
	return misspelt.Replace(name)
}

// conf reads one --conf.
func (l *line) conf(v appdef.Value) {
	name, text, ok := strings.Cut(v.Text, "=")
	name = strings.TrimSpace(name)
	if !ok || name == "" {
		l.bad(v.Place, appdef.Quote(v.Text), "NAME=VALUE", "")
		return
	}
	component, key, of := strings.Cut(name, ":muster.")
	switch {
	case name == hboxTypeKey:
		l.bad(place("--conf", name), appdef.Quote(v.Text), "--app-type TYPE", "")
		return
	case of:
		l.ours = append(l.ours, setting{
			component, "muster." + key,
			appdef.Value{Text: text, Place: place("--conf", name)},
		})
		return
	case strings.HasPrefix(name, "muster."):
		l.ours = append(l.ours, setting{"", name, appdef.Value{Text: text, Place: place("--conf", name)}})
		return
	}
	right := spelt(name)
	v = appdef.Value{Text: text, Place: place("--conf", right)}
	switch known := confNames(); {
	case strings.HasPrefix(right, confEnv), slices.Contains(known, right), clusterConf(right):
		l.confs[right] = v
	case slices.Contains(idleConfs[:], right), idleOptionConf(right), hadoop(right):
		l.carried[right] = text
	default:
		l.carried[right] = text
		hint := appdef.DidYouMean(right, append(known, idleConfs[:]...))
		if hint == "" {
			hint = "it is kept in the app and ignored"
		}
		l.warn(v.Place, "the unknown conf "+appdef.Quote(name), "a conf of HBox", hint)
	}
}

func idleOptionConf(name string) bool {
	return slices.ContainsFunc(optionTable[:], func(o option) bool { return o.idle && o.conf == name })
}

// hadoop tells whether a name belongs to Hadoop's own configuration, which HBox passes on.
func hadoop(name string) bool {
	for _, prefix := range [...]string{"yarn.", "mapreduce.", "mapred.", "dfs.", "fs.", "hadoop.", "ipc.", "io."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// horovodVariables are the settings of Horovod that HBox passes on by name.
var horovodVariables = map[string]string{
	confHorovod + "mpi.threads.disable":    "HOROVOD_MPI_THREADS_DISABLE",
	confHorovod + "timeline":               "HOROVOD_TIMELINE",
	confHorovod + "fusion.threshold":       "HOROVOD_FUSION_THRESHOLD",
	confHorovod + "cycle.time":             "HOROVOD_CYCLE_TIME",
	confHorovod + "stall.check.disable":    "HOROVOD_STALL_CHECK_DISABLE",
	confHorovod + "hierarchical.allreduce": "HOROVOD_HIERARCHICAL_ALLREDUCE",
}
