package hbox

import (
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// images sets the image of the processes. HBox has had three ways to ask for one; a vpc and a digits job always run in
// its image.
func (j *job) images() {
	image, named := j.image()
	docker, asked := j.docker()
	switch {
	case named && image.Text == "":
		j.bad(image.Place, `""`, "the reference of an image", "")
	case docker && named, named && j.kind.lives():
		for _, r := range j.roles {
			j.limit(r.name, "muster.image", image.Text, image.Place)
		}
	case docker:
		j.warn(asked, `"docker" without an image`, "--conf "+confExecutorImage+"=IMAGE",
			"HBox's own default is not known here: the processes see this host's root")
	case named:
		j.warn(image.Place, "an image without a container type", "--conf "+confExecutor+"=docker", "it has no effect")
	}
}

func (j *job) image() (appdef.Value, bool) {
	for _, conf := range []string{confDockerImage, confExecutorImage, confDigitsImage} {
		if v, ok := j.confs[conf]; ok && (conf != confDigitsImage || j.kind.name == "DIGITS") {
			v.Text = strings.TrimSpace(v.Text)
			return v, true
		}
	}
	v, ok := j.value("docker-image")
	v.Text = strings.TrimSpace(v.Text)
	return v, ok
}

// docker tells whether a container type asks for an image, and its place.
func (j *job) docker() (bool, appdef.Place) {
	executor, _ := j.confs[confExecutor]
	container, _ := j.value("container-type")
	for _, v := range []appdef.Value{executor, container} {
		if strings.EqualFold(strings.TrimSpace(v.Text), "docker") {
			return true, v.Place
		}
	}
	return false, appdef.Place{}
}
