package publisher

import (
	"strings"
	"time"
)

const (
	// sliderSet is Slider's set of configurations, the one that packages read.
	sliderSet = "slider"
	// instanceData is the group of a component's componentExports; Slider publishes it as a configuration alone.
	instanceData = "ComponentInstanceData"
)

type uriMap struct {
	URIs map[string]string `json:"uris"`
}

type configSet struct {
	Configurations map[string]publishedConfig `json:"configurations"`
}

type publishedConfig struct {
	Description string            `json:"description"`
	Updated     int64             `json:"updated"` // ms
	UpdatedTime string            `json:"updatedTime,omitempty"`
	Entries     map[string]string `json:"entries"`
}

func configOf(name string, entries map[string]string, updated time.Time) publishedConfig {
	if entries == nil {
		entries = map[string]string{}
	}
	return publishedConfig{Description: name, Updated: millis(updated), UpdatedTime: date(updated), Entries: entries}
}

// configs is the set `slider`, by name in lower case: what components publish, and a flat copy of each export group
// with the first value of each name. A published configuration hides a group of its name.
func (v View) configs() map[string]publishedConfig {
	out := map[string]publishedConfig{}
	for name, g := range v.exports() {
		if name == logDirs || name == workDirs {
			continue
		}
		flat := map[string]string{}
		for export, entries := range g.Entries {
			flat[export] = entries[0].Value
		}
		out[name] = configOf(g.Description, flat, g.newest)
	}
	if c, ok := v.instanceData(); ok {
		out[strings.ToLower(instanceData)] = c
	}
	for name, c := range v.Configs {
		out[strings.ToLower(name)] = configOf(name, c.Entries, c.Updated)
	}
	return out
}

// instanceData are the componentExports: `<container id>.<name>`.
func (v View) instanceData() (publishedConfig, bool) {
	entries, updated := map[string]string{}, time.Time{}
	for _, m := range v.arrived() {
		for key, value := range m.Exports {
			if name, ok := strings.CutPrefix(key, instanceData+"."); ok {
				entries[m.container()+"."+name], updated = value, m.Since
			}
		}
	}
	return configOf(instanceData, entries, updated), len(entries) > 0
}

func getSets(q question) (answer, error) {
	at := q.base + root + "/publisher/"
	return inJSON(uriMap{URIs: map[string]string{sliderSet: at + sliderSet, "exports": at + "exports"}})
}

// getSet lists the configurations without what is in them.
func getSet(q question) (answer, error) {
	if err := q.setExists(); err != nil {
		return answer{}, err
	}
	set := configSet{Configurations: map[string]publishedConfig{}}
	for name, c := range q.view.configs() {
		c.Entries = map[string]string{}
		set.Configurations[name] = c
	}
	return inJSON(set)
}

func getConfig(q question) (answer, error) {
	if err := q.setExists(); err != nil {
		return answer{}, err
	}
	name := strings.ToLower(q.names["config"])
	all := q.view.configs()
	if c, ok := all[name]; ok {
		return inJSON(c)
	}
	for _, f := range formats {
		base, ok := strings.CutSuffix(name, f.suffix)
		if c, found := all[base]; ok && found {
			return f.print(c)
		}
	}
	return answer{}, q.noConfig()
}

func getProperty(q question) (answer, error) {
	if err := q.setExists(); err != nil {
		return answer{}, err
	}
	c, ok := q.view.configs()[strings.ToLower(q.names["config"])]
	if !ok {
		return answer{}, q.noConfig()
	}
	name := q.names["property"]
	value, ok := c.Entries[name]
	if !ok {
		return answer{}, notFound("no property "+name+" in configuration "+q.names["config"],
			"GET /publisher/slider/"+q.names["config"]+" lists them")
	}
	return inJSON(map[string]string{name: value})
}

func (q question) setExists() error {
	if strings.EqualFold(q.names["set"], sliderSet) {
		return nil
	}
	return notFound("no set of configurations "+q.names["set"], "the one set is "+sliderSet)
}

func (q question) noConfig() error {
	return notFound("no configuration "+q.names["config"],
		"GET /publisher/slider lists them; they appear when a component that publishes them has joined")
}
