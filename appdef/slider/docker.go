package slider

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// The first dockerContainer of a DOCKER component becomes the component's image and commands. As in Slider, appConfig
// may replace a field with the component's key CONTAINER.FIELD (CONTAINER.ports.FIELD for a port). The container shares
// the host's network, and resources sets its limits. Other options of docker run are reported.

// dockerContainers notes the containers of a component until appConfig is read.
func (l *loading) dockerContainers(index int, c appdef.Component, list cursor) {
	if c.Type != "DOCKER" {
		l.keep(list)
		list.warn("dockerContainers of a component that is no DOCKER", `the type "DOCKER"`,
			"they are kept and not acted upon")
		return
	}
	l.docker[index] = list
}

// dockers applies the containers to their components. Keys of muster in the definition win.
func (l *loading) dockers(src appdef.Sources) {
	for i := range l.app.Components {
		list, ok := l.docker[i]
		if !ok {
			continue
		}
		if list.kind != array {
			list.bad(string(list.kind), "a list", "")
			continue
		}
		for n, c := range list.eachObject() {
			if n > 0 {
				l.keep(c)
				c.warn("container "+appdef.Quote(c.textQuiet("name")), "one container",
					"only the first is run, as by Slider; a component of its own runs another")
				continue
			}
			d := docker{cursor: c, own: l.appConfig.components[l.app.Components[i].Name]}
			d.check()
			component := &l.app.Components[i]
			// the dictionaries of a container are the component's, as Slider's AgentProviderService has them
			component.ConfigFiles = l.configFiles(c, component.ConfigFiles, "components", strconv.Itoa(i))
			l.image(src, component, d)
			d.report(l)
		}
	}
}

// docker is one container as metainfo and appConfig have it.
type docker struct {
	cursor

	own appdef.Section // the component's in appConfig
}

// check also reads the ignored fields, to check their form.
func (d docker) check() {
	d.knows(fields[DockerContainer]())
	d.required("name")
	for _, m := range d.objects("mounts") {
		m.knows(fields[DockerMount]())
	}
	for _, p := range d.objects("ports") {
		p.knows(fields[DockerPort]())
	}
	for _, f := range d.objects("inputFiles") {
		f.knows(fields[DockerInputFile]())
	}
}

// field is a field's value and place: in appConfig, else in metainfo.
func (d docker) field(name string) (string, appdef.Place) {
	if v, ok := d.own[d.textQuiet("name")+"."+name]; ok {
		return v.Text, v.Place
	}
	return d.text(name), d.at(name)
}

// image sets the component's image. Slider takes the image from metainfo alone.
func (l *loading) image(src appdef.Sources, c *appdef.Component, d docker) {
	const key = "muster.image"
	switch image := d.text("image"); {
	case written(src, c.Name, key):
	case image == "":
		d.bad("no image", "the reference of an image", "")
	default:
		put(src.ComponentResources, c.Name, key, appdef.Value{Text: image, Place: d.at("image")})
	}
	start, _ := d.field("startCommand")
	if start == "" {
		start, _ = d.field("additionalParam")
	}
	l.dockerCommand(c, "START", start)
	status, at := d.field("statusCommand")
	switch {
	case status == "":
	case strings.HasPrefix(strings.TrimSpace(status), "docker "):
		l.keep(d.cursor)
		l.doc.add(at.Warning("statusCommand "+appdef.Quote(status), "a command that runs in the container",
			"there is no docker: the agent itself sees whether the process lives"))
	case start == "" && !written(src, c.Name, "muster.command"):
		l.keep(d.cursor)
		l.doc.add(at.Warning("statusCommand without startCommand", "both",
			"STATUS is not asked where the image's own command runs"))
	default:
		l.dockerCommand(c, "STATUS", status)
	}
}

// dockerCommand adds a command of the container, unless metainfo's commands have it.
func (l *loading) dockerCommand(c *appdef.Component, name, text string) {
	for _, k := range c.Commands {
		if k.Name == name {
			return
		}
	}
	if text != "" {
		c.Commands = append(c.Commands, appdef.Command{Name: name, Exec: text, Type: "SHELL"})
	}
}

// report names the ignored fields, and the settings that replace them.
func (d docker) report(l *loading) {
	kept := func(name, want, hint string) {
		at := cursor{node: d.member(name), doc: d.doc, pointer: d.pointer + appdef.Pointer(name)}
		l.keep(at)
		at.warn(name+" of a container", want, hint)
	}
	d.ports(l)
	if d.lists("mounts") {
		kept("mounts", "folders that the operator's policy file mounts", "they are kept and not mounted")
	}
	if text, _ := d.field("options"); text != "" && d.member("options") != nil {
		kept("options", "yarn.memory, yarn.vcores, muster.env.*, muster.user, muster.shm, muster.ulimit.*",
			"options of docker run are kept and not acted upon")
	}
	if text := d.text("network"); text != "" && text != "host" {
		kept("network", `"host"`, "the container shares the host's network")
	}
	if yes(d.cursor, "runPrivilegedContainer") {
		kept("runPrivilegedContainer", "false", "no container is privileged; muster.rdma and yarn.io/gpu grant devices")
	}
	if d.lists("inputFiles") {
		kept("inputFiles", "packages, which bring files to the instance", "they are kept and not brought")
	}
}

// ports reports ports that have no meaning in the host's network.
func (d docker) ports(l *loading) {
	for n, p := range d.objects("ports") {
		inside, outside := p.text("containerPort"), p.text("hostPort")
		if n == 0 { // appConfig replaces those of the first, as in Slider
			if text, _ := d.field("ports.containerPort"); text != "" {
				inside = text
			}
			if text, _ := d.field("ports.hostPort"); text != "" {
				outside = text
			}
		}
		if inside == outside && inside != "" {
			continue
		}
		l.keep(p)
		p.warn("containerPort "+appdef.Quote(inside)+" and hostPort "+appdef.Quote(outside), "the same number twice",
			"the container shares the host's network: the process itself must listen at the host's port, such as "+
				"${@//site/<dictionary>/<key>}")
	}
}

// lists tells whether a member is a list that is not empty.
func (c cursor) lists(name string) bool {
	m := c.member(name)
	return m != nil && m.kind == array && len(m.items) > 0
}
