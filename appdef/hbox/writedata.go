package hbox

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// data writes the inputs and outputs of the workers.
func (w *writer) data() {
	lead := w.role(roleWorker)
	if chief := w.role(roleChief); chief != nil && (lead == nil || len(lead.Settings.Outputs.To) == 0) {
		lead = chief
	}
	if lead == nil {
		return
	}
	in, out := lead.Settings.Inputs, lead.Settings.Outputs
	for _, name := range slices.Sorted(maps.Keys(in.From)) {
		w.option("input", in.From[name]+"#"+name)
	}
	for _, name := range slices.Sorted(maps.Keys(out.To)) {
		w.option("output", out.To[name]+"#"+name)
	}
	w.strategy("input-strategy", in.Strategy, appdef.StrategyDownload)
	w.strategy("output-strategy", out.Strategy, appdef.StrategyUpload)
	w.yes("isRenameInputFile", in.Rename)
	w.yes("inputformat-shuffle", in.Shuffle)
	if in.Epochs > 1 {
		w.option("stream-epoch", strconv.Itoa(in.Epochs))
	}
	if in.Format != "" {
		w.option("inputformat", in.Format)
	}
	if out.Format != "" {
		w.option("outputformat", out.Format)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Conf)) {
		if hadoop(name) && in.Format+out.Format != "" {
			w.conf(name, in.Conf[name])
		} else {
			w.conf(formatKey+name, in.Conf[name])
		}
	}
	if in.Whole {
		w.conf(confWhole, "true")
	}
	w.numbers(in)
	if ps := w.role(rolePS); ps != nil && len(ps.Settings.Inputs.From) > 0 && !in.Whole {
		w.conf(confInputToPS, "true")
	}
	if out.Only != nil {
		index := *out.Only
		if lead.Name == roleWorker {
			index += count(w.role(roleChief))
		}
		w.option("output-index", strconv.Itoa(index))
	}
	if out.Flat {
		w.option("create-containerid-dir", "false")
	}
	if out.Failed {
		w.conf(confFailedUpload, "true")
	}
	if out.Parallel > 0 {
		w.conf(confUploads, strconv.Itoa(out.Parallel))
	}
	w.saves(out)
}

// saves writes the settings of interim saves.
func (w *writer) saves(out appdef.Outputs) {
	if every := w.app.Settings.SaveEvery; every > 0 && len(out.To) > 0 {
		w.conf(confSaveEvery, milliseconds(every))
	}
	if out.Incremental {
		w.conf(confSaveChanged, "true")
	}
	if out.Interim != "" {
		w.conf(confSaves, "/"+out.Interim)
	}
}

// numbers writes the numbers of inputs that are confs.
func (w *writer) numbers(in appdef.Inputs) {
	if in.Chief > 0 {
		w.conf(confChief, "true")
		w.conf(confChiefFiles, strconv.Itoa(in.Chief))
	}
	if in.ListLength > 0 {
		w.conf(confListLength, strconv.Itoa(in.ListLength))
	}
	if in.Parallel > 0 {
		w.conf(confDownloads, strconv.Itoa(in.Parallel))
	}
	if in.Retries != nil {
		w.conf(confDownloadRetries, strconv.Itoa(*in.Retries))
	}
	w.stream(in)
}

// stream writes the settings of a stream that have no option.
func (w *writer) stream(in appdef.Inputs) {
	if in.Cache {
		w.conf(confCache, "true")
	}
	if in.CacheLimit > 0 {
		w.conf(confCacheLimit, strconv.Itoa(in.CacheLimit))
	}
	if in.Lines > 0 {
		w.conf(confLines, strconv.Itoa(in.Lines))
	}
	if in.Separator != "" {
		w.conf(confSeparator, in.Separator)
	}
	if in.Splits > 1 {
		w.cannot("muster.inputs.splits=" + strconv.Itoa(in.Splits) + ": HBox asks for one")
	}
}

func (w *writer) strategy(name, value, fallback string) {
	if value != "" && value != fallback {
		w.option(name, strings.ToUpper(value))
	}
}

func (w *writer) yes(name string, on bool) {
	if on {
		w.option(name, "true")
	}
}

// side writes the board.
func (w *writer) side() {
	before := 0
	for i := range w.app.Components {
		c := &w.app.Components[i]
		for _, s := range c.Settings.Sides {
			if s.Name != "board" || !s.Port || s.Index < 0 {
				continue // rest writes another one
			}
			w.option("board-enable", "true")
			index := s.Index
			if c.Name == rolePS {
				w.conf(confBoardOnPS, "true")
			} else {
				index += before
			}
			w.number("board-index", index, 0)
			w.boardOption(s.Command, " --logdir=", "board-logdir")
			w.boardOption(s.Command, " --reload_interval=", "board-reloadinterval")
			w.boardOption(s.Command, " --cache_timeout=", "board-cacheTimeout")
			w.boardOption(s.Command, " --model_pb=", "board-modelpb")
			if s.History != "" {
				w.option("board-historydir", s.History)
			}
		}
		if c.Name == roleWorker || c.Name == roleChief {
			before += c.Instances
		}
	}
}

func (w *writer) boardOption(command, flag, name string) {
	_, rest, ok := strings.Cut(command+" ", flag)
	if !ok {
		return
	}
	if value, _, ok := quotedWord(rest, " "); ok && value != "" {
		w.option(name, value)
	}
}
