package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/secret"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// Stores opens the stores of one agent's data.
type Stores struct {
	WorkDir   string           // of the run
	DefaultFS hadoop.DefaultFS // where paths without a scheme are
	Login     hadoop.Login
	Account   string // whom the launcher runs the agent as
	CCache    string // Kerberos ticket cache that the process is given; "": the agent's own
	// User is whom the process runs as, for services that go by a name; nil: the agent's own user.
	User func() *plan.UserFacts
	// Owner is that user as the host's kernel knows it, for files; nil: the agent's own user.
	Owner func() *plan.UserFacts
	// Admission is what the process may reach on this host.
	Admission func(plan.Plan) files.Admission
	// Notice takes the reason why a store is waited for.
	Notice func(text string)
}

// Open finds the store of a path that the definition names, with the rights of its process.
func (s *Stores) Open(ctx context.Context, p plan.Plan, url string, write bool) (store.Store, string, error) {
	opened, path, err := s.all(p).Open(ctx, url)
	if err != nil || files.LocalPath(url) == "" { // a store elsewhere checks the rights itself
		return opened, path, err
	}
	return s.Admission(p).Open(path, write)
}

// Folder opens a folder of this host that the definition names for its process to write to.
func (s *Stores) Folder(p plan.Plan, path string) (files.UserFolder, error) {
	return s.Admission(p).Folder(path)
}

// Visible refuses a path of this host that the process does not see.
func (s *Stores) Visible(p plan.Plan, path string, write bool) error {
	return s.Admission(p).Visible(path, write)
}

// Read reads a small file of a store.
func (s *Stores) Read(ctx context.Context, p plan.Plan, url string) (string, error) {
	opened, path, err := s.all(p).Open(ctx, url)
	if err != nil {
		return "", err
	}
	content, err := opened.Open(ctx, path, store.Position{})
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(content, secret.Most+1))
	if err = errors.Join(err, content.Close()); err == nil && len(text) > secret.Most {
		err = fmt.Errorf("%s: longer than %d bytes", store.Printable(url), secret.Most)
	}
	return string(text), err
}

// all are the stores of the definition's data, for the process's user.
func (s *Stores) all(p plan.Plan) store.Set {
	c := s.Login.Config(s.HadoopUser(p))
	c.Notice = s.Notice
	return schemes.All(c)
}

// HadoopUser is the process's user on HDFS where Kerberos does not say it.
func (s *Stores) HadoopUser(p plan.Plan) string {
	name := ""
	if s.User() != nil {
		name = s.User().Name
	}
	if p.Hadoop != nil {
		name = cmp.Or(p.Hadoop.User, name)
	}
	const variable = "HADOOP_USER_NAME"
	return cmp.Or(p.Process.Env[variable], p.Process.Inherited[variable], name, s.Account)
}

// Kerberos is how the agent gets tickets for its process.
func (s *Stores) Kerberos() hdfs.Config {
	c := s.Login.Config("")
	if c.Keytab == "" {
		c.CCache = s.CCache
	}
	return c
}
