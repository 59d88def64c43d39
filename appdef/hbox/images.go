package hbox

import (
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// images sets the image of the processes. HBox has had three ways to ask for one; a vpc and a digits job always run in
// its image. HBox's client refuses a job without the image that it needs.
func (j *job) images() {
	image, named := j.image()
	docker, asked := j.docker()
	if docker && asked == j.confs[confExecutor].Place && !j.kind.lives() { // HBox tells the login of such a job too
		j.global("muster.hbox.login", "true", asked)
	}
	switch {
	case named && image.Text == "":
		j.bad(image.Place, `""`, "the reference of an image", "")
	case named && (docker || j.kind.lives()):
		for _, r := range j.roles {
			j.limit(r.name, "muster.image", image.Text, image.Place)
		}
	case docker && !j.hostRoot():
		j.bad(asked, `"docker" without an image`, "--conf "+j.imageConfs()[0]+"=IMAGE, or that name in the "+
			"administrator's hbox-site.xml", "--conf muster.image=host has the processes see this host's root")
	case j.kind.lives() && !j.hostRoot():
		j.warn(place("--app-type"), j.kind.name+" without an image", "--conf "+j.imageConfs()[0]+"=IMAGE, or that "+
			"name in the administrator's hbox-site.xml", "the processes see the host's root")
	case named:
		j.warn(image.Place, "an image without a container type", "--conf "+confExecutor+"=docker", "it has no effect")
	}
}

// hostRoot tells whether muster's own key says what the processes see.
func (j *job) hostRoot() bool {
	if j.everyRole("muster.image") {
		return true
	}
	for _, s := range j.sites {
		if s.key == "muster.image" && s.component == "" {
			return true
		}
	}
	return false
}

// imageConfs are the confs that name the image, the first that counts before the others. Digits has an image of its
// own.
func (j *job) imageConfs() []string {
	executor := []string{confExecutorImage, confDockerImage}
	container, _ := j.value("container-type")
	switch {
	case j.kind.name == "DIGITS":
		return append([]string{confDigitsImage}, executor...)
	case strings.EqualFold(strings.TrimSpace(container.Text), "docker"):
		return []string{confDockerImage, confExecutorImage}
	}
	return executor
}

// image is the image that the user names, else the administrator's.
func (j *job) image() (v appdef.Value, named bool) {
	all := make([]appdef.Value, 0, 4)
	for _, conf := range j.imageConfs() {
		if v, ok := j.confs[conf]; ok {
			all = append(all, v)
		}
	}
	if v, ok := j.value("docker-image"); ok {
		all = append(all, v)
	}
	for _, one := range all {
		if !named || ofSite(v.Place) && !ofSite(one.Place) {
			v, named = one, true
		}
	}
	v.Text = strings.TrimSpace(v.Text)
	return v, named
}

// docker tells whether a container type asks for an image, and its place.
func (j *job) docker() (bool, appdef.Place) {
	executor := j.confs[confExecutor]
	container, _ := j.value("container-type")
	for _, v := range []appdef.Value{executor, container} {
		if strings.EqualFold(strings.TrimSpace(v.Text), "docker") {
			return true, v.Place
		}
	}
	return false, appdef.Place{}
}
