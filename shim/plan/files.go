package plan

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// The keys of files and archives.
const (
	fileKey    = "muster.file."
	archiveKey = "muster.archive."
)

// files are the files and archives that each instance gets under names of its own.
func (b *builder) files() []StageItem {
	s := b.component.Settings
	items := b.copies(s.Files, fileKey, StageCopy)
	return append(items, b.copies(s.Archives, archiveKey, StageUnpacked)...)
}

func (b *builder) copies(from map[string]string, prefix, kind string) []StageItem {
	var items []StageItem
	for _, name := range slices.Sorted(maps.Keys(from)) {
		key := prefix + name
		if url, ok := b.location(key, b.text(key, from[name])); ok {
			items = append(items, StageItem{
				Name: name, Kind: kind, From: url, To: path.Join(b.req.root(), name),
				Unchecked: b.component.Settings.FilesUnchecked,
			})
		}
	}
	return items
}

// apart reports a name that two parts of the instance use: one would replace the other.
func (b *builder) apart(items []StageItem) {
	s, taken := b.component.Settings, map[string]string{}
	for _, item := range items {
		name, inside := strings.CutPrefix(item.To, b.req.root()+"/")
		if key := keyOf(item); key != "" {
			if first, twice := taken[name]; twice {
				b.problem(b.key(key), appdef.Quote(name)+", the name of "+first+" as well", "a name of its own", "")
			}
			taken[name] = key
		} else if inside {
			name, _, _ = strings.Cut(name, "/")
			taken[name] = "a " + item.Kind + " of the package"
		}
	}
	for prefix, names := range map[string]map[string]string{
		"muster.input.":  s.Inputs.From,
		"muster.output.": s.Outputs.To,
	} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if first := taken[name]; strings.HasPrefix(first, fileKey) || strings.HasPrefix(first, archiveKey) {
				b.problem(b.key(first), appdef.Quote(name)+", the name of "+prefix+name+" as well", "a name of its own",
					"")
			}
		}
	}
}

// keyOf is the key that names an item; empty: the item belongs to the package.
func keyOf(item StageItem) string {
	switch item.Kind {
	case StageCopy:
		return fileKey + item.Name
	case StageUnpacked:
		return archiveKey + item.Name
	}
	return ""
}
