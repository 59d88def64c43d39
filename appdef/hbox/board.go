package hbox

import (
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/shellwords"
)

const boardKey = "muster.side.board"

// board adds TensorBoard, or VisualDL, beside one worker.
func (j *job) board() {
	enabled, at := j.truth("board-enable", false), j.at("board-enable")
	index := j.whole("board-index", 0, 0)
	reload, cache := j.whole("board-reloadinterval", 1, 0), j.whole("board-cacheTimeout", 20, 0)
	dir := j.text("board-logdir")
	if dir == "" {
		dir = "eventLog"
	}
	if !enabled || j.kind.lives() {
		return
	}
	r, local, ok := j.boardHost(index)
	if !ok {
		j.warn(j.at("board-index"), strconv.Itoa(index), "the index of a worker, below "+strconv.Itoa(j.workers),
			"no board runs")
		return
	}
	where := ` --host=127.0.0.1 --port="$MUSTER_PORT_SIDE_BOARD_INNER"`
	if j.ourText(r.name, boardKey+".key") == "false" {
		where = ` --host="$MUSTER_HOST" --port="$MUSTER_PORT_SIDE_BOARD"`
	}
	logs := " --logdir=" + shellwords.Word(dir)
	if strings.HasPrefix(dir, "/") { // HBox's client puts the default filesystem before it
		logs = ` --logdir="$` + appdef.DefaultFSVariable + `"` + shellwords.Word(dir)
	}
	var command string
	if j.kind.tensorflow() || j.kind.name == "TENSORNET" {
		command = j.tensorboard() + where + " --reload_interval=" + strconv.Itoa(reload) + logs
	} else {
		command = visualDL(where+logs, cache, j.text("board-modelpb"))
	}
	j.own(r.name, boardKey, command, at)
	j.own(r.name, boardKey+".port", "true", at)
	j.own(r.name, boardKey+".http", "true", at)
	if !j.listensElsewhere(r.name) {
		j.own(r.name, boardKey+".key", "true", at)
	}
	j.own(r.name, boardKey+".index", strconv.Itoa(local), j.at("board-index"))
	j.boardHistory(r.name, dir)
	if !j.said(r.name, boardKey+".port") { // the instance beside it publishes its URL
		j.draft.Export(r.name, "board", "http://${"+r.name+"_HOST}:${site."+appdef.SidePort("board")+"}")
	}
}

// listensElsewhere tells of a command of the user's own that does not listen behind the agent.
func (j *job) listensElsewhere(component string) bool {
	return slices.ContainsFunc(j.ours, func(s setting) bool {
		return s.key == boardKey && (s.component == "" || s.component == component) &&
			!strings.Contains(s.Text, "MUSTER_PORT_SIDE_BOARD_INNER") &&
			!strings.Contains(s.Text, appdef.SideInnerPort("board"))
	})
}

// visualDL is the program of VisualDL 1, or where there is none that of VisualDL 2, which has other names for both.
func visualDL(options string, cache int, model string) string {
	first := "visualDL" + options + " --cache_timeout=" + strconv.Itoa(cache)
	second := "visualdl" + options + " --cache-timeout=" + strconv.Itoa(cache)
	if model != "" {
		first += " --model_pb=" + shellwords.Word(model)
		second += " --model=" + shellwords.Word(model)
	}
	return "if command -v visualDL >/dev/null; then exec " + first + "; else exec " + second + "; fi"
}

// boardHistory keeps the folder of a board after the run. One that lies in a filesystem stays there anyway.
func (j *job) boardHistory(component, dir string) {
	to := j.text("board-historydir")
	if to == "" || !j.confTruth(confBoardUpload, true) || strings.HasPrefix(dir, "/") || strings.Contains(dir, "://") {
		return
	}
	j.own(component, boardKey+".folder", dir, j.at("board-logdir"))
	j.own(component, boardKey+".history", to, j.at("board-historydir"))
}

// tensorboard is the program; with TENSORNET it lies beside TENSORNET's own Python.
func (j *job) tensorboard() string {
	if v, ok := j.confs[confPython]; ok && v.Text != "" && j.kind.name == "TENSORNET" {
		return shellwords.Word(v.Text + "/bin/tensorboard")
	}
	return "tensorboard"
}

// boardHost finds the instance with an index: among all workers, or among the parameter servers if a conf says so.
func (j *job) boardHost(index int) (r role, local int, ok bool) {
	onPS := j.confTruth(confBoardOnPS, false)
	for _, r := range j.roles {
		counts := r.worker()
		if onPS {
			counts = r.name == rolePS
		}
		switch {
		case !counts:
		case index < r.count:
			return r, index, true
		default:
			index -= r.count
		}
	}
	return role{}, 0, false
}
