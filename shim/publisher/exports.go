package publisher

import (
	"strings"
	"time"
)

// The groups of folders, which Slider publishes for every app.
const (
	logDirs  = "container_log_dirs"
	workDirs = "container_work_dirs"
	// mostFolders is how many of each Slider keeps: the newest.
	mostFolders = 40
)

type exportSet struct {
	Exports map[string]exportGroup `json:"exports"`
}

type exportGroup struct {
	Description string                   `json:"description"`
	Updated     int64                    `json:"updated"` // ms
	UpdatedTime string                   `json:"updatedTime,omitempty"`
	Entries     map[string][]exportEntry `json:"entries"`

	newest time.Time
}

type exportEntry struct {
	Value       string `json:"value"`
	ContainerID string `json:"containerId,omitempty"`
	Tag         string `json:"tag,omitempty"`
	Level       level  `json:"level"`
	UpdatedTime string `json:"updatedTime,omitempty"`
}

// exports are all groups of which something is published, by name in lower case.
func (v View) exports() map[string]exportGroup {
	out := map[string]exportGroup{}
	arrived := v.arrived()
	for _, g := range v.Groups {
		for _, e := range g.Exports {
			for _, m := range arrived {
				value, ok := m.Exports[g.Name+"."+e.Name]
				if !ok {
					continue
				}
				publish(out, g.Name, e.Name, entryOf(m, e.Level, value), m.Since)
				if e.Level == levelApplication {
					break // a single value: the first that was published
				}
			}
		}
	}
	folders(out, arrived, logDirs, func(m memberView) string { return m.LogDir })
	folders(out, arrived, workDirs, func(m memberView) string { return m.WorkDir })
	return out
}

func entryOf(m memberView, level level, value string) exportEntry {
	if level == levelApplication { // nobody's in particular
		return exportEntry{Value: value, Level: level, UpdatedTime: date(m.Since)}
	}
	return exportEntry{
		Value: value, ContainerID: m.container(), Tag: m.Tag, Level: levelComponent,
		UpdatedTime: date(m.Since),
	}
}

// publish adds an entry. Groups that differ in their letters' case alone are one.
func publish(groups map[string]exportGroup, group, name string, e exportEntry, at time.Time) {
	key := strings.ToLower(group)
	g, ok := groups[key]
	if !ok {
		g = exportGroup{Description: group, Entries: map[string][]exportEntry{}}
	}
	if g.newest.Before(at) {
		g.newest, g.Updated, g.UpdatedTime = at, millis(at), date(at)
	}
	g.Entries[name] = append(g.Entries[name], e)
	groups[key] = g
}

// folders publishes `host:path` by component; Slider puts the component's name into the tag.
func folders(groups map[string]exportGroup, arrived []memberView, group string, folder func(memberView) string) {
	var have []memberView
	for _, m := range arrived {
		if folder(m) != "" {
			have = append(have, m)
		}
	}
	for _, m := range have[max(0, len(have)-mostFolders):] {
		e := entryOf(m, levelComponent, m.Host+":"+folder(m))
		e.Tag = m.Component
		publish(groups, group, m.Component, e, m.Since)
	}
}

func getExports(q question) (answer, error) {
	return inJSON(exportSet{Exports: q.view.exports()})
}

// getExportGroup has no content for a group of which nothing is published, as Slider, which then knows none. Slider
// finds names in lower case alone; either is found here.
func getExportGroup(q question) (answer, error) {
	g, ok := q.view.exports()[strings.ToLower(q.names["group"])]
	if !ok {
		return answer{status: 204}, nil
	}
	return inJSON(g)
}
