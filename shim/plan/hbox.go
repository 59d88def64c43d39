package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// DefaultFSVariable has HBox.Top.
const DefaultFSVariable = appdef.DefaultFSVariable

// hbox are the facts of an HBox submission; nil for any other.
func (b *builder) hbox() *HBox {
	settings := b.app.Settings
	if settings.HBox.Type == "" {
		return nil
	}
	h := &HBox{
		Type: settings.HBox.Type, Single: hboxSingle(settings), Output: strconv.Itoa(appdef.EveryIndex),
		Top: topOf(b.defaultFS()), JarsLast: settings.HBox.JarsLast,
	}
	names := map[string]bool{}
	workers := 0 // of the components before
	for _, c := range Order(b.app) {
		h.GPUs = max(h.GPUs, c.Limits.GPUs)
		for name := range c.Settings.Inputs.From {
			names[name] = true
		}
		switch {
		case c.Settings.Role == appdef.RolePS && (h.PSCPUs == 0 || c.Name == rolePS): // XDL's scheduler is none of them
			h.PSCPUs, h.PSMemory = c.Limits.VCores, c.Limits.MemoryMB
		case c.Settings.Role == appdef.RoleChief || c.Settings.Role == appdef.RoleWorker:
			if only := c.Settings.Outputs.Only; only != nil {
				h.Output = strconv.Itoa(workers + *only)
			}
			workers += c.Instances
		}
	}
	h.Input = strings.Join(slices.Sorted(maps.Keys(names)), ",")
	return h
}

// hboxSingle tells whether the type of the job can be distributed, and the job is not.
func hboxSingle(s appdef.AppSettings) bool {
	switch s.HBox.Type {
	case "TENSORFLOW", "TENSOR2TENSOR", "MXNET", "XDL":
		return s.Framework == "none"
	}
	return false
}

// hboxInherits tells whether HBox's container passes a variable of its host on.
func hboxInherits(name string) bool {
	switch name {
	case "PATH", "JAVA_HOME", "CLASSPATH", "LD_LIBRARY_PATH", "HADOOP_HOME", "HADOOP_HDFS_HOME", "HADOOP_CONF_DIR",
		"HADOOP_VERSION":
		return true
	}
	return false
}
