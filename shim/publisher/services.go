package publisher

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// serviceClass is the folder of Slider's apps in Hadoop's service registry.
const serviceClass = "org-apache-slider"

// The words of a service record (Hadoop's registry, "Service Record").
const (
	recordType      = "JSONServiceRecord"
	ofApplication   = "application"
	ofContainer     = "container"
	addressURI      = "uri"
	addressHostPort = "host/port"
	protocolWeb     = "webui"
	protocolREST    = "REST"
	protocolTCP     = "tcp"
)

// pathEntry is what stands at a path of the service registry.
type pathEntry struct {
	Nodes   []string       `json:"nodes"`
	Service *serviceRecord `json:"service,omitempty"`
}

type serviceRecord struct {
	Type        string     `json:"type"`
	Description string     `json:"description"`
	External    []endpoint `json:"external"`
	Internal    []endpoint `json:"internal"`
	ID          string     `json:"yarn:id"`
	Persistence string     `json:"yarn:persistence"`
	Hostname    string     `json:"yarn:hostname,omitempty"`
	// Status is `finished` when the instance has succeeded; TensorFlow's package counts these.
	Status string `json:"status,omitempty"`
}

type endpoint struct {
	API          string              `json:"api"`
	AddressType  string              `json:"addressType"`
	ProtocolType string              `json:"protocolType"`
	Addresses    []map[string]string `json:"addresses"`
}

// appRecord names the addresses of what is answered here, below base.
func (v View) appRecord(base string) *serviceRecord {
	uri := func(api, protocol, path string) endpoint {
		return endpoint{
			API: api, AddressType: addressURI, ProtocolType: protocol,
			Addresses: []map[string]string{{"uri": base + path}},
		}
	}
	return &serviceRecord{
		Type: recordType, Description: "Slider Application Master", ID: v.App.ID, Persistence: ofApplication,
		External: []endpoint{
			uri("classpath:org.apache.slider.client.rest", protocolWeb, ""),
			uri("classpath:org.apache.slider.publisher", protocolREST, root+"/publisher"),
			uri("classpath:org.apache.slider.registry", protocolREST, root+"/registry"),
			uri("classpath:org.apache.slider.publisher.configurations", protocolREST, root+"/publisher/"+sliderSet),
			uri("classpath:org.apache.slider.publisher.exports", protocolREST, root+"/publisher/exports"),
		},
		Internal: []endpoint{},
	}
}

// registered members have a record: who lives, and who has succeeded, whose container Slider would still hold.
func (v View) registered() []memberView {
	var out []memberView
	for _, m := range v.Members {
		if m.published() || m.Phase == registry.PhaseEnded {
			out = append(out, m)
		}
	}
	return out
}

func componentRecord(m memberView) *serviceRecord {
	r := &serviceRecord{
		Type: recordType, Description: m.Component, ID: nodeOf(m), Persistence: ofContainer, Hostname: m.Host,
		External: []endpoint{}, Internal: []endpoint{},
	}
	if m.Phase == registry.PhaseEnded {
		r.Status = "finished"
		return r // nobody listens there
	}
	for _, name := range slices.Sorted(maps.Keys(m.Ports)) {
		r.External = append(r.External, endpoint{
			API: name, AddressType: addressHostPort, ProtocolType: protocolTCP,
			Addresses: []map[string]string{{"host": m.Host, "port": strconv.Itoa(m.Ports[name])}},
		})
	}
	return r
}

// nodeOf is the container's id as a name in the service registry, which has no underscores.
func nodeOf(m memberView) string { return strings.ReplaceAll(m.container(), "_", "-") }

// entry finds what stands at a path; false when nothing does.
func (v View) entry(path []string, base string) (pathEntry, bool) {
	tree := []string{"users", v.App.User, "services", serviceClass, v.App.Name, "components"}
	depth := min(len(path), len(tree))
	if !slices.Equal(path[:depth], tree[:depth]) {
		return pathEntry{}, false
	}
	switch {
	case len(path) < len(tree):
		e := pathEntry{Nodes: tree[len(path) : len(path)+1]}
		if len(path) == len(tree)-1 {
			e.Service = v.appRecord(base)
		}
		return e, true
	case len(path) == len(tree):
		e := pathEntry{Nodes: []string{}}
		for _, m := range v.registered() {
			e.Nodes = append(e.Nodes, nodeOf(m))
		}
		return e, true
	case len(path) == len(tree)+1:
		for _, m := range v.registered() {
			if nodeOf(m) == path[len(tree)] {
				return pathEntry{Nodes: []string{}, Service: componentRecord(m)}, true
			}
		}
	}
	return pathEntry{}, false
}

func getRecord(q question) (answer, error) {
	e, ok := q.view.entry(q.rest, q.base)
	if !ok {
		return answer{}, notFound("nothing at /registry/"+strings.Join(q.rest, "/"),
			"this app is at users/"+q.view.App.User+"/services/"+serviceClass+"/"+q.view.App.Name)
	}
	return inJSON(e)
}
