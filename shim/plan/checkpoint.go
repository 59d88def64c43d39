package plan

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

func (b *builder) checkpoint() Checkpoint {
	c := b.component.Settings.Checkpoint
	out := Checkpoint{
		Dir: b.checkpointDir(), Pattern: c.Pattern, Whole: c.Whole, Marker: c.Marker, Keep: c.Keep,
		Signal: c.Signal, Ranks: c.Ranks,
	}
	switch _, store := b.checkpointPlace(); {
	case c.Sync != "" && schemeOf(out.Dir) != "":
		b.warn(b.key("muster.checkpoint.sync"), appdef.Quote(c.Sync), "no value",
			"the process saves to "+out.Dir+" itself, from where nothing is copied")
	case c.Sync != "":
		out.Sync, _ = b.location("muster.checkpoint.sync", c.Sync)
	case out.Dir != store:
		out.Sync = store
	}
	if out.Sync != "" && !slices.Contains(writable(), schemeOf(out.Sync)) && schemeOf(out.Sync) != "" {
		b.cannot(b.key("muster.checkpoint.sync"), appdef.Quote(out.Sync), "a path, file: or hdfs:", "")
	}
	if out.Keep > 0 && out.Sync == "" {
		b.warn(b.key("muster.checkpoint.keep"), number(float64(out.Keep)), "muster.checkpoint.sync",
			"what the process saves in a folder is for itself to remove")
	}
	return out
}

// LocalCheckpoints is the folder that all instances of this host share.
const LocalCheckpoints = Work + "/checkpoint"

// checkpointDir is the folder or URL that the process gets: that of the definition, or the local folder if the process
// cannot access the URL.
func (b *builder) checkpointDir() string {
	dir, store := b.checkpointPlace()
	if store != "" && !b.reaches() {
		return LocalCheckpoints
	}
	return dir
}

// checkpointPlace is where the definition puts its checkpoints: by the TensorFlow package's own keys or
// muster.checkpoint.dir, else the shared folder. store is the same location if it is in a store that muster supports.
func (b *builder) checkpointPlace() (dir, store string) {
	dir = b.builtinCheckpointDir()
	if dir == "" && b.component.Settings.Checkpoint.Dir != "" {
		dir = b.text("muster.checkpoint.dir", b.component.Settings.Checkpoint.Dir)
	}
	switch scheme := schemeOf(dir); {
	case dir == "":
		return LocalCheckpoints, ""
	case scheme == "file":
		return pathOf(dir), ""
	case slices.Contains(writable(), scheme):
		return dir, dir
	}
	return dir, ""
}

// reaches tells whether the process itself writes to the store.
func (b *builder) reaches() bool {
	switch b.component.Settings.Checkpoint.Reach {
	case appdef.ReachProcess:
		return true
	case appdef.ReachMuster:
		return false
	}
	framework := b.app.Settings.Framework
	// without a configuration of Hadoop only the process may know how
	reachable := b.req.Hadoop == nil || b.req.Hadoop.Libhdfs
	return reachable && (framework == "tensorflow" || framework == "tensor2tensor")
}

// builtinCheckpointDir is where the TensorFlow package keeps checkpoints: a folder, or a prefix
// with the app's own folder below it.
func (b *builder) builtinCheckpointDir() string {
	if b.app.Settings.Framework != "tensorflow" {
		return ""
	}
	if dir := b.site("user.checkpoint.dir"); dir != "" {
		return dir
	}
	if prefix := b.site("user.checkpoint.prefix"); prefix != "" {
		return strings.TrimSuffix(prefix, "/") + "/" + b.req.appID() + "/checkpoints"
	}
	return ""
}
