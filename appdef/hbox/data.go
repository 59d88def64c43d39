package hbox

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// remote is one `REMOTE#NAME` of --input or --output.
type remote struct {
	path, name string
	at         appdef.Place
}

// remotes reads an option and its variant for Amazon S3. Without a name the folder has the name of the option.
func (j *job) remotes(option string) []remote {
	var all []remote
	for _, source := range []struct{ option, scheme string }{{option, ""}, {"s3" + option, "s3://"}} {
		for _, v := range j.lists[source.option] {
			path, name, _ := strings.Cut(v.Text, "#")
			path, name = strings.TrimSpace(path), strings.TrimSpace(name)
			name = strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
			if name == "" {
				name = option
			}
			if path == "" {
				j.bad(v.Place, appdef.Quote(v.Text), "PATH#NAME", "")
				continue
			}
			if source.scheme != "" {
				path = schemed(path, source.scheme)
			}
			all = append(all, remote{path, name, v.Place})
		}
	}
	return all
}

// schemed puts a scheme before each path in a list that has none.
func schemed(list, scheme string) string {
	paths := strings.Split(list, ",")
	for i, p := range paths {
		if !strings.Contains(p, "://") {
			paths[i] = scheme + strings.TrimLeft(p, "/")
		}
	}
	return strings.Join(paths, ",")
}

// strategy is the strategy of inputs or outputs, in muster's word.
func (j *job) strategy(option, old, fallback string, values ...string) (string, appdef.Place) {
	v, ok := j.value(option)
	text := strings.ToLower(strings.TrimSpace(v.Text))
	if !ok {
		text = fallback
	}
	known := text == fallback
	for _, other := range values {
		known = known || text == other
	}
	if !known {
		j.bad(v.Place, appdef.Quote(v.Text), strings.ToUpper(fallback+", "+strings.Join(values, ", ")),
			appdef.DidYouMean(strings.ToUpper(text), upper(append(values, fallback))))
		text = fallback
	}
	if o, on := j.value(old); on && j.truth(old, false) {
		return appdef.StrategyStream, o.Place
	}
	return text, v.Place
}

func upper(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ToUpper(w)
	}
	return out
}

// inputs shares the files of --input out among the readers: the workers, and the parameter servers if a conf says so.
// An evaluator reads nothing.
func (j *job) inputs() {
	all := j.remotes("input")
	strategy, at := j.strategy("input-strategy", "inputformat-enable", appdef.StrategyDownload,
		appdef.StrategyPlaceholder, appdef.StrategyStream)
	whole := strategy == appdef.StrategyPlaceholder && j.confTruth(confWhole, false)
	onPS := j.confTruth(confInputToPS, false) || whole
	rename, shuffle, epochs := j.truth("isRenameInputFile", false), j.truth("inputformat-shuffle",
		false), j.whole("stream-epoch", 1, 1)
	chief := j.chiefFiles(onPS)
	if len(all) == 0 {
		return
	}
	for _, r := range j.roles {
		if !r.worker() && !(onPS && r.name == rolePS) {
			continue
		}
		from := map[string]string{}
		for _, in := range all {
			from[in.name] = joined(from[in.name], in.path)
			j.own(r.name, "muster.input."+in.name, from[in.name], in.at)
		}
		j.choice(r, "muster.inputs.strategy", strategy, appdef.StrategyDownload, at)
		j.choice(r, "muster.inputs.rename", strconv.FormatBool(rename), "false", j.at("isRenameInputFile"))
		j.choice(r, "muster.inputs.whole", strconv.FormatBool(whole), "false", j.confs[confWhole].Place)
		j.choice(r, "muster.inputs.chief", strconv.Itoa(chief), "0", j.confs[confChief].Place)
		j.counted(r, "muster.inputs.list.length", confListLength, 1)
		j.counted(r, "muster.inputs.parallel", confDownloads, 1)
		j.counted(r, "muster.inputs.retries", confDownloadRetries, 0)
		if strategy == appdef.StrategyStream {
			j.choice(r, "muster.inputs.shuffle", strconv.FormatBool(shuffle), "false", j.at("inputformat-shuffle"))
			j.choice(r, "muster.inputs.epochs", strconv.Itoa(epochs), "1", j.at("stream-epoch"))
			j.choice(r, "muster.inputs.format", j.text("inputformat"), "", j.at("inputformat"))
			j.streamConfs(r)
			j.formatConfs(r, "inputformat")
		}
	}
}

// streamConfs sets the confs of an input stream that have no option.
func (j *job) streamConfs(r role) {
	cache := j.confTruth(confCache, false)
	j.choice(r, "muster.inputs.cache", strconv.FormatBool(cache), "false", j.confs[confCache].Place)
	j.counted(r, "muster.inputs.cache.limit", confCacheLimit, 1)
	j.counted(r, "muster.inputs.lines", confLines, 1)
	if v, ok := j.confs[confSeparator]; ok {
		j.own(r.name, "muster.inputs.separator", v.Text, v.Place)
	}
}

// formatConfs hands confs of Hadoop's on to a format that is named, as HBox does with all of them.
func (j *job) formatConfs(r role, option string) {
	if j.text(option) == "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(j.carried)) {
		if hadoop(name) && !slices.Contains(idleConfs[:], name) && !slices.Contains(j.unsaid, name) {
			j.own(r.name, formatKey+name, j.carried[name], place("--conf", name))
			j.handed = append(j.handed, name)
		}
	}
}

// formatKey and a name have a property of Hadoop's for formats.
const formatKey = "muster.formats.conf."

// chiefFiles is how many files of each input worker 0 gets, and no more; 0: as many as the others. HBox has no such
// setting if parameter servers read too.
func (j *job) chiefFiles(onPS bool) int {
	if !j.confTruth(confChief, false) || onPS {
		return 0
	}
	if v, ok := j.confs[confChiefFiles]; ok {
		return j.number(v, 1, 1)
	}
	return 1
}

// counted sets a key to the number of a conf.
func (j *job) counted(r role, key, conf string, least int) {
	if v, ok := j.confs[conf]; ok {
		j.own(r.name, key, strconv.Itoa(j.number(v, least, least)), v.Place)
	}
}

// choice sets a key if its value differs from the default.
func (j *job) choice(r role, key, text, fallback string, at appdef.Place) {
	if text != fallback {
		j.own(r.name, key, text, at)
	}
}

// joined adds a path to a list, once.
func joined(list, path string) string {
	if list == "" {
		return path
	}
	if slices.Contains(strings.Split(list, ","), path) {
		return list
	}
	return list + "," + path
}

// outputs sets where --output is uploaded.
func (j *job) outputs() {
	all := j.remotes("output")
	strategy, at := j.strategy("output-strategy", "outputformat-enable", appdef.StrategyUpload, appdef.StrategyStream)
	only := j.whole("output-index", appdef.EveryIndex, appdef.EveryIndex)
	flat := !j.truth("create-containerid-dir", true) && j.workers == 1
	failed, changed := j.confTruth(confFailedUpload, false), j.confTruth(confSaveChanged, false)
	saves, savesAt := j.confs[confSaves].Text, j.confs[confSaves].Place
	if text, at := j.milliseconds(confSaveEvery); text != "" && len(all) > 0 {
		j.global("muster.outputs.interval", text, at)
	}
	if len(all) == 0 {
		return
	}
	at0 := j.at("output-index")
	if only >= j.workers {
		j.bad(at0, strconv.Itoa(only), "an index below the "+strconv.Itoa(j.workers)+" of --worker-num",
			"nobody would leave its outputs")
	}
	before := 0 // workers of the previous roles
	for _, r := range j.roles {
		index, leaves := only, only == appdef.EveryIndex
		if r.worker() && only != appdef.EveryIndex {
			index = only - before
			leaves = index >= 0 && index < r.count
		}
		if r.worker() {
			before += r.count
		}
		if !leaves || r.name == roleScheduler || r.name == rolePS && !j.kind.keepsPS {
			continue
		}
		for _, out := range all {
			if strings.Contains(out.path, ",") {
				j.bad(out.at, appdef.Quote(out.path), "one path", "")
			}
			j.own(r.name, "muster.output."+out.name, out.path, out.at)
		}
		j.choice(r, "muster.outputs.strategy", strategy, appdef.StrategyUpload, at)
		j.choice(r, "muster.outputs.index", strconv.Itoa(index), strconv.Itoa(appdef.EveryIndex), at0)
		j.choice(r, "muster.outputs.flat", strconv.FormatBool(flat && r.worker()), "false",
			j.at("create-containerid-dir"))
		j.choice(r, "muster.outputs.failed", strconv.FormatBool(failed), "false", j.confs[confFailedUpload].Place)
		j.counted(r, "muster.outputs.parallel", confUploads, 1)
		j.choice(r, "muster.outputs.incremental", strconv.FormatBool(changed), "false",
			j.confs[confSaveChanged].Place)
		j.choice(r, "muster.outputs.interim", strings.TrimLeft(strings.TrimSpace(saves), "/"), "", savesAt)
		if strategy == appdef.StrategyStream {
			j.choice(r, "muster.outputs.format", j.text("outputformat"), "", j.at("outputformat"))
			j.formatConfs(r, "outputformat")
		}
	}
}
