package publisher

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// root is where Slider's REST interface begins.
const root = "/ws/v1/slider"

const typeJSON = "application/json"

// question is one request, with all that an answer depends on.
type question struct {
	view  View
	base  string // URL that stands before root
	verb  string
	body  string
	now   time.Time
	names map[string]string // what the {…} of the route stand for
	rest  []string          // what its * stands for
	stop  func(by string) error
}

type answer struct {
	status      int // 0: 200
	contentType string
	body        []byte
}

// refusal is an error that the asker is told.
type refusal struct {
	status     int
	text, hint string
}

func (r *refusal) Error() string { return r.text }

func notFound(text, hint string) error {
	return &refusal{status: http.StatusNotFound, text: text, hint: hint}
}

// route is a line of the table: segments of the path below root, {name} for any one, * for the rest.
type route struct {
	path   string
	verbs  []string
	answer func(question) (answer, error)
	blind  bool // needs no view: it answers while the registry cannot be read
}

var (
	reading = []string{http.MethodGet, http.MethodHead}
	pinging = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete}
	// stopping has no HEAD: a question about an answer must not stop anything.
	stopping = []string{http.MethodGet, http.MethodPost}
)

// routes are looked through from the top; the first whose path fits answers. The lists are Slider's, less what is not
// here.
var routes = []route{
	{"publisher", reading, getSets, false},
	{"publisher/exports", reading, getExports, false},
	{"publisher/exports/{group}", reading, getExportGroup, false},
	{"publisher/{set}", reading, getSet, false},
	{"publisher/{set}/{config}", reading, getConfig, false},
	{"publisher/{set}/{config}/{property}", reading, getProperty, false},

	{"application", reading, list("model", "live", "actions"), true},
	{
		"application/live", reading, list("resources", "containers", "components", "nodes", "statistics", "liveness"),
		true,
	},
	{"application/live/resources", reading, getLiveResources, false},
	{"application/live/containers", reading, getContainers, false},
	{"application/live/containers/{container}", reading, getContainer, false},
	{"application/live/components", reading, getComponents, false},
	{"application/live/components/{component}", reading, getComponent, false},
	{"application/live/nodes", reading, getNodes, false},
	{"application/live/nodes/{host}", reading, getNode, false},
	{"application/live/statistics", reading, getStatistics, false},
	{"application/live/liveness", reading, getLiveness, false},
	{"application/model", reading, list("desired", "resolved"), true},
	{"application/model/{model}", reading, getModel, false},
	{"application/model/{model}/{tree}", reading, getModelTree, false},
	{"application/action/ping", pinging, answerPing, true},
	{"application/action/stop", stopping, stop, true},

	{"registry", reading, getRecord, false},
	{"registry/*", reading, getRecord, false},
}

// find is the route of a path below root, with what its names stand for.
func find(path []string) (r route, names map[string]string, rest []string, ok bool) {
	for _, r := range routes {
		if names, rest, ok := r.matches(path); ok {
			return r, names, rest, true
		}
	}
	return route{}, nil, nil, false
}

func (r route) matches(path []string) (names map[string]string, rest []string, ok bool) {
	names = map[string]string{}
	for i, segment := range strings.Split(r.path, "/") {
		switch {
		case segment == "*":
			return names, path[i:], true
		case i >= len(path):
			return nil, nil, false
		case strings.HasPrefix(segment, "{"):
			names[strings.Trim(segment, "{}")] = path[i]
		case segment != path[i]:
			return nil, nil, false
		}
	}
	return names, nil, len(path) == strings.Count(r.path, "/")+1
}

func (r route) allows(verb string) bool { return slices.Contains(r.verbs, verb) }

func list(names ...string) func(question) (answer, error) {
	return func(question) (answer, error) { return inJSON(names) }
}

func inJSON(value any) (answer, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return answer{}, err
	}
	return answer{contentType: typeJSON, body: b.Bytes()}, nil
}
