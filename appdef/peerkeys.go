package appdef

import (
	"cmp"
	"slices"
)

// PeerKeys are the settings by which the processes of a component, reader, know the instances of another or of its own:
// those that name its hosts (`${C_HOST}`) or read its ports. Sorted; a text of metainfo is called by its command.
func (a *App) PeerKeys(reader, peer string) []string {
	c := a.Component(reader)
	if c == nil {
		return nil
	}
	var keys []string
	add := func(key, text string) {
		if a.namesHost(text, peer) {
			keys = append(keys, key)
		}
	}
	for key, text := range c.Config {
		add(key, text)
	}
	for dict := range a.Declared(reader) {
		for key, text := range a.Defaults[dict] {
			if key = "site." + dict + "." + key; c.Config[key] == "" {
				add(key, text)
			}
		}
	}
	for _, command := range c.Commands {
		add(cmp.Or(command.Name, "START"), command.Exec)
	}
	for _, port := range a.PeerPorts(reader) {
		if port.Component == peer {
			keys = append(keys, "site."+port.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// namesHost tells whether a text has the hosts of a component.
func (a *App) namesHost(text, component string) bool {
	return slices.ContainsFunc(Placeholders(text), func(name string) bool {
		of, ok := Resolver{App: a}.hostOf(name)
		return ok && of == component
	})
}
