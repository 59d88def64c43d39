package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/packages/hdfs"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/render"
	"github.com/muster-agent/muster/shim/submit"
)

// yarn is the way to YARN: its service API, or the distributed shell.
func (f *submitFlags) yarn(s streams, job render.Job) (launching, error) {
	manager, err := f.resourceManager()
	if err != nil {
		return nil, err
	}
	text := job.Files[0].Text
	if f.job.options.Format == "shell" {
		if err := shellClient(); err != nil {
			return nil, err
		}
		return &submit.YARNShell{ResourceManager: manager, Script: text, Applications: job.Applications}, nil
	}
	return &submit.YARNService{ResourceManager: manager, Definition: text, Kept: func(ctx context.Context, name string) ([]byte, error) {
		return f.keptService(ctx, s, manager.User, name)
	}}, nil
}

// mostService bounds a service's definition, in bytes.
const mostService = 16 << 20

// keptService is the definition that YARN keeps of a service, in its owner's home on HDFS.
func (f *submitFlags) keptService(ctx context.Context, s streams, owner, name string) (text []byte, err error) {
	at := "hdfs:///user/" + owner + "/.yarn/services/" + name + "/" + name + ".json"
	store, path, err := fetch.Open(ctx, at, f.job.filesystem.hadoop.Fetching(s.err))
	if err != nil {
		return nil, err
	}
	kept, err := store.Open(ctx, path, fetch.Position{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	return io.ReadAll(io.LimitReader(kept, mostService))
}

// resourceManager is where YARN's REST is and who asks it.
func (f *submitFlags) resourceManager() (*submit.ResourceManager, error) {
	m := &submit.ResourceManager{User: os.Getenv("HADOOP_USER_NAME")}
	if m.User == "" {
		me, err := user.Current()
		if err != nil {
			return m, fmt.Errorf("submit: who am I to YARN: %w; HADOOP_USER_NAME says it", err)
		}
		m.User = me.Username
	}
	if f.address != "" {
		m.Addresses = strings.Split(f.address, ",")
		return m, nil
	}
	path := filepath.Join(cmp.Or(f.job.filesystem.hadoop.Conf, hdfs.ConfDir()), "yarn-site.xml")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, exit.With(exit.Usage, fmt.Errorf("submit: %w; --address says where the ResourceManager is", err))
	}
	conf, err := hdfs.ParseConf(text)
	if err != nil {
		return m, exit.With(exit.Usage, fmt.Errorf("submit: %s: %w; --address says where the ResourceManager is", path, err))
	}
	m.Addresses = resourceManagers(conf)
	return m, nil
}

// resourceManagers are the addresses of the web applications of all ResourceManagers that a yarn-site.xml names.
func resourceManagers(site map[string]string) []string {
	const rm = "yarn.resourcemanager."
	web, port, scheme := "webapp.address", "8088", "http://"
	if site["yarn.http.policy"] == "HTTPS_ONLY" {
		web, port, scheme = "webapp.https.address", "8090", "https://"
	}
	ids := []string{""}
	if site[rm+"ha.enabled"] == "true" {
		ids = nil
		for id := range strings.SplitSeq(site[rm+"ha.rm-ids"], ",") {
			ids = append(ids, "."+strings.TrimSpace(id))
		}
	}
	var all []string
	for _, id := range ids {
		address := site[rm+web+id]
		if host := site[rm+"hostname"+id]; host != "" {
			if address == "" {
				address = net.JoinHostPort(host, port)
			}
			address = strings.ReplaceAll(address, "${"+rm+"hostname}", host)
		}
		if address != "" {
			all = append(all, scheme+address)
		}
	}
	return all
}
