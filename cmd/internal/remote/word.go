package remote

import (
	"errors"
	"maps"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/mask"
	"github.com/muster-agent/muster/shim/status"
)

// Me is which registry a page shows, and who asks: the answer of GET /api/v1/registry.
type Me struct {
	Version  int              `json:"version"`
	Registry registry.Address `json:"registry"`
	User     string           `json:"user"`
	Act      bool             `json:"act"`
}

// word is what the registry says of an app: the answer of GET /api/v1/apps/APP/registry.
type word struct {
	Version   int                `json:"version"`
	Record    registry.AppRecord `json:"record"` // without its definition, which Definition has, and its token
	Directive registry.Directive `json:"directive"`
	Conductor string             `json:"conductor"` // empty: nobody conducts
	Live      int                `json:"live"`      // indexes that are held
	Members   []member           `json:"members"`
	Broken    []string           `json:"broken,omitempty"` // records that do not decode: which, and why
}

// member is the record of an instance, and whether a live agent holds its index.
type member struct {
	Instance string          `json:"instance"`
	Record   registry.Member `json:"record"`
	Live     bool            `json:"live"`
	Step     *int64          `json:"step"` // of its newest checkpoint; null: none
}

// definition is what an app was made of, without values whose names say that they are secret and without commands: the
// answer of GET /api/v1/apps/APP/definition.
type definition struct {
	Version    int    `json:"version"`
	Definition string `json:"definition"` // gzip, base64; empty: it is not known
}

// Verdict is the answer of GET /api/v1/apps/APP/verdict.
type Verdict struct {
	Version int               `json:"version"`
	Verdict *registry.Verdict `json:"verdict"` // null: there is none yet
}

// Asked is the answer of POST /api/v1/apps/APP/asks.
type Asked struct {
	Version int  `json:"version"`
	Asked   bool `json:"asked"` // false: the registry had the request already
}

// States is the answer of GET /api/v1/apps/APP/states: of the agents that have answered.
type States struct {
	Version int            `json:"version"`
	States  []status.State `json:"states"`
}

// Refusal is the answer of what is refused.
type Refusal struct {
	Error string `json:"error"`
	Code  int    `json:"code"` // the exit code of a verb that is refused so
}

// apart is the definition's id of a record that comes without it.
const apart = "apart"

// Say is what a page says of an app. What only the hosts of the registry may know is left out: the run's token, and
// which processes of a machine the agents are.
func Say(st consul.Status) any {
	w := word{
		Version: 1, Record: st.App, Directive: st.Directive, Conductor: st.Conductor, Live: st.Live,
		Members: []member{},
	}
	w.Record.Token, w.Record.Def, w.Record.DefID = "", "", apart
	for _, m := range st.Members {
		record := m.Member
		record.Process = registry.Process{Pid: m.Pid} // which status shows
		w.Members = append(w.Members, member{m.Instance.String(), record, m.Live, m.Step})
	}
	for _, err := range st.Broken {
		w.Broken = append(w.Broken, err.Error())
	}
	return w
}

// status is what the registry said. Members of names that no instance has are left out.
func (w word) status(app string) consul.Status {
	st := consul.Status{
		ID: app, App: w.Record, Directive: w.Directive, Verdict: w.Directive.Verdict, Conductor: w.Conductor,
		Live: w.Live,
	}
	for _, m := range w.Members {
		in, err := registry.ParseInstance(m.Instance)
		if err == nil {
			one := consul.MemberStatus{Instance: in, Member: m.Record, Live: m.Live, Step: m.Step}
			st.Members = append(st.Members, one)
		}
	}
	for _, text := range w.Broken {
		st.Broken = append(st.Broken, errors.New(text))
	}
	return st
}

// Describe is the definition of an app as a page tells it.
func Describe(record registry.AppRecord) (any, error) {
	app := apps.Definition(record)
	if len(app.Components) == 0 {
		return definition{Version: 1}, nil
	}
	app.Config, app.Resources, app.Kept, app.Addons = texts(app.Config), texts(app.Resources), nil, nil
	for name, values := range app.Defaults {
		app.Defaults[name] = texts(values)
	}
	for i := range app.Components {
		c := &app.Components[i]
		c.Config, c.Resources, c.Scripts = texts(c.Config), texts(c.Resources), appdef.Scripts{}
		s := &c.Settings
		s.Command, s.ResumeArgs, s.TFArgs, s.Sides = "", "", nil, nil
		s.Env, s.SecretSettings = mask.Values(s.Env), appdef.SecretSettings{}
		s.Inputs.Conf, s.Outputs.Conf = mask.Values(s.Inputs.Conf), mask.Values(s.Outputs.Conf)
	}
	text, err := appdef.Encode(app)
	return definition{Version: 1, Definition: text}, err
}

// texts are a section's values without muster's own settings: the settled ones say the same, and some of the texts are
// commands.
func texts(section map[string]string) map[string]string {
	section = mask.Values(section)
	maps.DeleteFunc(section, func(key, _ string) bool { return strings.HasPrefix(key, "muster.") })
	return section
}
