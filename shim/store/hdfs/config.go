package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

// Config is how clusters are reached; the zero value is what Hadoop's own commands take from the environment.
type Config struct {
	Conf      string // folder of Hadoop's configuration; empty: ConfDir()
	User      string // the user where Kerberos does not say it; empty: HADOOP_USER_NAME, else this process's user
	Keytab    string // to log in with; empty: the ticket cache
	Principal string // of the keytab: NAME[@REALM]
	CCache    string // ticket cache, FILE:PATH or PATH; empty: KRB5CCNAME, else /tmp/krb5cc_<uid>
	// Patience is how long a cluster is waited for that does not answer, has no active NameNode, or is in safe mode; 0:
	// 1m.
	Patience time.Duration
	// Notice gets each wait once; may be nil.
	Notice func(text string)
	// Dial makes connections; nil: net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// defaultPatience is longer than a failover to another NameNode takes.
const defaultPatience = time.Minute

// ConfDir is the folder of Hadoop's configuration: HADOOP_CONF_DIR, HADOOP_HOME/etc/hadoop, else /etc/hadoop/conf.
func ConfDir() string {
	if dir := os.Getenv("HADOOP_CONF_DIR"); dir != "" {
		return dir
	}
	if home := os.Getenv("HADOOP_HOME"); home != "" {
		return filepath.Join(home, "etc", "hadoop")
	}
	return "/etc/hadoop/conf"
}

func (c Config) dir() string { return cmp.Or(c.Conf, ConfDir()) }

// Scheme is that of the URLs of this store.
const Scheme = "hdfs"

// Opener is Open for a store.Set.
func (c Config) Opener() store.Opener {
	return func(ctx context.Context, url string) (store.Store, string, error) {
		opened, path, err := c.Open(ctx, url)
		if err != nil {
			return nil, "", err
		}
		return opened, path, nil
	}
}

// Open finds the cluster of a URL and the URL's path in it. Nothing is asked of it yet.
func (c Config) Open(_ context.Context, url string) (*Store, string, error) {
	authority, path, err := parseURL(url)
	if err != nil {
		return nil, "", opening(url, err, "write hdfs://CLUSTER/PATH, or hdfs:///PATH for the default cluster")
	}
	conf, err := loaded(c.dir())
	if err != nil {
		return nil, "", opening(url, err, "mend it, or name another folder by --hadoop-conf")
	}
	if err := conf.check(); err != nil {
		return nil, "", opening(url, err, "mend it in "+c.dir())
	}
	if authority == "" {
		if authority, err = conf.defaultAuthority(c.dir()); err != nil {
			return nil, "", opening(
				url, err, "write hdfs://CLUSTER/PATH, or name the folder of Hadoop's configuration by --hadoop-conf",
			)
		}
	}
	addresses, err := conf.nameNodes(authority)
	if err != nil {
		return nil, "", opening(url, err, "mend hdfs-site.xml in "+c.dir())
	}
	who, err := c.identity(conf)
	if err != nil {
		return nil, "", opening(url, err, "")
	}
	return &Store{
		cluster: clusterOf(
			c, conf, authority, addresses, who,
		), patience: cmp.Or(c.Patience, defaultPatience), notice: c.Notice,
	}, path, nil
}

func opening(url string, err error, hint string) error {
	if inner, ok := errors.AsType[*store.Error](err); ok {
		return &store.Error{Op: "open", URL: url, Hint: inner.Hint, Err: inner.Err}
	}
	return &store.Error{Op: "open", URL: url, Hint: hint, Err: err}
}

// defaultAuthority is the cluster of fs.defaultFS.
func (c Conf) defaultAuthority(dir string) (string, error) {
	uri := c.DefaultFS()
	if uri == "" {
		return "", fmt.Errorf("got no cluster, and no fs.defaultFS in %s", filepath.Join(dir, "core-site.xml"))
	}
	authority, _, err := parseURL(uri + "/")
	if err == nil && authority == "" {
		err = errors.New("want hdfs://CLUSTER")
	}
	if err != nil {
		return "", fmt.Errorf("got no cluster, and fs.defaultFS is %s: %w", uri, err)
	}
	return authority, nil
}

// identity is the client's identity for a cluster: the user, or the ticket, or what a token file has for it.
type identity struct{ user, keytab, principal, cache, tokens string }

func (c Config) identity(conf Conf) (identity, error) {
	if conf.Secure() {
		if c.Keytab != "" && c.Principal == "" {
			return identity{}, refused(
				"name it by --kerberos-principal NAME@REALM", "keytab %s: got no principal", c.Keytab,
			)
		}
		who := identity{keytab: c.Keytab, principal: c.Principal, cache: cmp.Or(c.CCache, os.Getenv("KRB5CCNAME"))}
		if c.Keytab == "" && c.CCache == "" { // who names a login means it
			who.tokens = os.Getenv(tokensVariable)
		}
		return who, nil
	}
	name := cmp.Or(c.User, os.Getenv("HADOOP_USER_NAME"))
	if name == "" {
		u, err := user.Current()
		if err != nil {
			return identity{}, fmt.Errorf("who acts: %w; set HADOOP_USER_NAME", err)
		}
		name = u.Username
	}
	if strings.ContainsAny(name, "/@\x00") {
		return identity{}, fmt.Errorf("who acts: got %q, want a user's name", name)
	}
	return identity{user: name}, nil
}

// confs holds the configuration that was read last of each folder: every URL asks for it, and it hardly ever changes.
var confs struct {
	sync.Mutex
	of map[string]confOf
}

type confOf struct {
	state string
	conf  Conf
}

func loaded(dir string) (Conf, error) {
	var states []string
	for _, name := range confFiles {
		one, err := stateOf(filepath.Join(dir, name))
		if err != nil {
			one = "-"
		}
		states = append(states, one)
	}
	state := strings.Join(states, ", ")
	confs.Lock()
	defer confs.Unlock()
	if known := confs.of[dir]; known.conf != nil && known.state == state {
		return known.conf, nil
	}
	conf, err := LoadConf(dir)
	if err != nil {
		return nil, err
	}
	if confs.of == nil || len(confs.of) > 100 {
		confs.of = map[string]confOf{}
	}
	confs.of[dir] = confOf{state, conf}
	return conf, nil
}
