package slider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/yarn"
	yarnclient "github.com/muster-agent/muster/shim/launcher/yarn/client"
)

// yarnRecord is where an app is that was created with a Hadoop configuration: a service of YARN. Its record and its
// definition lie on this host as any app's; nothing of it runs here.
type yarnRecord struct {
	Conf    string `json:"hadoop_conf,omitempty"` // HADOOP_CONF_DIR; empty: none
	Manager string `json:"manager,omitempty"`     // of --manager; empty: yarn-site.xml's
	Queue   string `json:"queue,omitempty"`
	Store   string `json:"store"` // URL of a folder for what the hosts need
	// TokenFile is the file on the hosts with Consul's token.
	TokenFile string `json:"token_file,omitempty"`
	Runs      int    `json:"runs"`         // how many were submitted; the last one's name
	ID        string `json:"id,omitempty"` // of the last application
	// Last is the application before a submit, until it is known whether that submit has begun another one.
	Last string `json:"last,omitempty"`
}

// begin keeps the application before a submit.
func (y *yarnRecord) begin() { y.ID, y.Last = "", cmp.Or(y.ID, y.Last) }

// is keeps which application a submit has begun; empty: none, and the one before remains the last.
func (y *yarnRecord) is(id string) { y.ID, y.Last = cmp.Or(id, y.Last), "" }

// run is the name of the last run.
func (y *yarnRecord) run() string { return strconv.Itoa(y.Runs) }

// cluster is the YARN that this command line and its environment name, nil where they name none.
func (c *call) cluster() (*yarnRecord, error) {
	y := yarnRecord{Conf: os.Getenv("HADOOP_CONF_DIR")}
	if y.Conf != "" {
		y.Conf = flags.Absolute(y.Conf)
	}
	if !c.has("--manager") {
		if y.Conf == "" {
			return nil, nil
		}
		if there, err := yarnclient.Configured(y.Conf); err != nil || !there {
			return nil, err
		}
	}
	return &y, y.take(c)
}

// take takes what the command line says of YARN; what is not given stays.
func (y *yarnRecord) take(c *call) error {
	if c.has("--manager") {
		y.Manager = c.one("--manager")
		if _, port, err := net.SplitHostPort(y.Manager); err != nil || port == "" {
			return exit.Usagef("slider %s: --manager %s: want HOST:PORT of YARN's ResourceManager", c.verb, y.Manager)
		}
	}
	y.Queue = cmp.Or(c.one("--queue"), y.Queue)
	y.TokenFile = cmp.Or(c.one("--token-file"), y.TokenFile)
	if c.has("--filesystem") || c.has("--basepath") || y.Store == "" {
		return y.takeStore(c)
	}
	return nil
}

// takeStore has the store be Slider's folder in the cluster's file system: .slider in the user's home.
func (y *yarnRecord) takeStore(c *call) error {
	who := os.Getenv("HADOOP_USER_NAME")
	if me, err := user.Current(); who == "" && err == nil {
		who = me.Username
	}
	system, folder := cmp.Or(c.one("--filesystem"), "hdfs://"), cmp.Or(c.one("--basepath"), "/user/"+who+"/.slider")
	switch {
	case strings.Contains(folder, "://"):
		y.Store = folder
		return nil
	case !strings.Contains(system, "://"):
		return exit.Usagef("slider %s: --filesystem %s: want a URL such as hdfs://HOST:PORT", c.verb, system)
	case !strings.HasPrefix(folder, "/"):
		return exit.Usagef("slider %s: --basepath %s: want an absolute path, or a URL", c.verb, folder)
	}
	y.Store = strings.TrimRight(system, "/") + folder
	if strings.HasSuffix(system, "://") {
		y.Store = system + folder
	}
	return nil
}

// address is where the ResourceManager is asked. Slider's clients name the port of its RPC: where no yarn-site.xml has
// the port of the web application that belongs to it, that is the usual one.
func (a *app) address() string {
	manager := cmp.Or(a.one("--manager"), a.record.Yarn.Manager)
	if a.verb == "update" { // --manager is the next one: what runs is where it was started
		there, _ := yarnclient.Configured(a.record.Yarn.Conf)
		if manager = a.record.Yarn.Manager; manager == "" && !there {
			manager = a.one("--manager")
		}
	}
	host, _, err := net.SplitHostPort(manager)
	if err != nil {
		return manager
	}
	return manager + "," + net.JoinHostPort(host, "8088")
}

// hasManager refuses an app whose ResourceManager nobody names any more.
func (a *app) hasManager() error {
	if a.address() != "" {
		return nil
	}
	there, err := yarnclient.Configured(a.record.Yarn.Conf)
	if err == nil && !there {
		err = exit.Usagef("%s: %s names no ResourceManager: mend it, or say --manager HOST:PORT", a.name,
			filepath.Join(a.record.Yarn.Conf, "yarn-site.xml"))
	}
	return err
}

// mayMove refuses that an app which runs on YARN is looked for elsewhere: stop and destroy would miss it.
func (r *record) mayMove(next *record) error {
	if r.Yarn == nil {
		return nil
	}
	for _, f := range [][3]string{
		{"ResourceManager", r.Yarn.Manager, next.Yarn.Manager},
		{"queue", r.Yarn.Queue, next.Yarn.Queue},
		{"store", r.Yarn.Store, next.Yarn.Store},
		{"registry", r.Run.Registry, next.Run.Registry},
	} {
		if f[1] != f[2] {
			return exit.With(exit.Held, fmt.Errorf("%s runs on YARN as %s: its %s is %s, which cannot become %s "+
				"before muster slider stop %s", r.App, r.Yarn.ID, f[0], cmp.Or(f[1], "the default"), f[2], r.App))
		}
	}
	return nil
}

// service is the app at YARN.
func (a *app) service() (*yarnclient.Service, error) {
	y := a.record.Yarn
	if err := a.hasManager(); err != nil {
		return nil, err
	}
	return yarnclient.OpenService(job.Request{Address: a.address(), Hadoop: y.Conf}, yarn.ServiceName(a.name), y.ID)
}

// found is the app at YARN, by the application that it has there: where a submit that failed has not said whether it
// has begun one, YARN is asked. The id is empty where there was none at all.
func (a *app) found(ctx context.Context) (*yarnclient.Service, error) {
	s, err := a.service()
	if err != nil || a.record.Yarn.ID != "" {
		return s, err
	}
	id, err := s.Find(ctx, a.name)
	if err != nil {
		return nil, exit.Default(exit.Registry, err)
	}
	a.record.Yarn.is(id)
	return a.service()
}

// standing is what the ResourceManager and the registry say of the app: the word of the first is kept, and why the
// other says nothing.
func (a *app) standing(ctx context.Context) (apps.Facts, error) {
	f := apps.Facts{ID: a.name}
	if a.word = yarnNew; a.record.Yarn.Runs == 0 {
		return f, nil
	}
	s, err := a.found(ctx)
	if err != nil || a.record.Yarn.ID == "" {
		return f, err
	}
	at, err := s.State(ctx)
	if err != nil {
		return f, exit.Default(exit.Registry, err)
	}
	a.word, _, _ = strings.Cut(at.Word, " ")
	if a.word == "forgotten" {
		a.word = yarnFinished
	}
	known, err := a.lookup().App(ctx, a.name)
	before := a.unheard
	a.unheard = nil
	switch {
	case errors.Is(err, registry.ErrNoApp):
		return f, nil
	case err != nil:
		if a.unheard = err; before == nil || before.Error() != err.Error() {
			fmt.Fprintf(a.Err, "%s: %v: this is what YARN says of it\n", a.name, err)
		}
		return f, nil
	case known.Registry != nil && known.Registry.App.Run != a.record.Yarn.run(): // of the run before
		return f, nil
	}
	return known, nil
}

// interrupted tells that the last run ended without a verdict: it goes on under its name.
func (a *app) interrupted(ctx context.Context) (bool, error) {
	if a.record.Yarn.Runs == 0 {
		return false, nil
	}
	st, err := a.lookup().Status(ctx, a.lookup().Address, a.name)
	switch {
	case errors.Is(err, registry.ErrNoApp):
		return false, nil
	case err != nil:
		return false, exit.OfRegistry(fmt.Errorf("%s: whether its last run goes on is not known: %w", a.name, err))
	}
	return st.App.Run == a.record.Yarn.run() && st.Verdict == nil, nil
}
