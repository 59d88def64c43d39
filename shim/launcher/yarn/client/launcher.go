package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
)

// Launcher is how jobs come to YARN: by its service API, or by the distributed shell.
var Launcher = job.Launcher{New: newClient, FetchesPrograms: true}

func newClient(r job.Request) (job.Client, error) {
	manager, err := findManager(r)
	if err != nil {
		return nil, err
	}
	text := r.Job.Files[0].Text
	if r.Options.Format == "shell" {
		if err := checkShell(); err != nil {
			return nil, err
		}
		return &shellClient{restClient: manager, Script: text, Applications: r.Job.Applications}, nil
	}
	kept := func(ctx context.Context, name string) ([]byte, error) {
		return keptService(ctx, r.Stores, manager.User, name)
	}
	return &serviceClient{restClient: manager, Definition: text, Kept: kept}, nil
}

// checkShell refuses the distributed shell if Hadoop's client is missing.
func checkShell() error {
	if os.Getenv("HADOOP_HOME") != "" {
		return nil
	}
	if os.Getenv("DISTRIBUTED_SHELL_JAR") == "" {
		return exit.Usagef("submit yarn: HADOOP_HOME is not set, and the client of the distributed shell is there: " +
			"want Hadoop's folder, or DISTRIBUTED_SHELL_JAR with the jar's path and yarn in the PATH")
	}
	if _, err := exec.LookPath("yarn"); err != nil {
		return exit.Usagef("submit yarn: HADOOP_HOME is not set, and yarn is not in the PATH: want Hadoop's "+
			"folder: %w", err)
	}
	return nil
}

// mostService bounds a service's definition, in bytes.
const mostService = 16 << 20

// keptService is the definition that YARN keeps of a service, in its owner's home on HDFS.
func keptService(ctx context.Context, stores store.Set, owner, name string) (text []byte, err error) {
	at := "hdfs:///user/" + owner + "/.yarn/services/" + name + "/" + name + ".json"
	opened, path, err := stores.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	kept, err := opened.Open(ctx, path, store.Position{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	return io.ReadAll(io.LimitReader(kept, mostService))
}

// findManager finds YARN's REST address and the user to ask as.
func findManager(r job.Request) (*restClient, error) {
	m := &restClient{User: os.Getenv("HADOOP_USER_NAME")}
	if m.User == "" {
		me, err := user.Current()
		if err != nil {
			return m, fmt.Errorf("submit: who am I to YARN: %w; HADOOP_USER_NAME says it", err)
		}
		m.User = me.Username
	}
	if r.Address != "" {
		m.Addresses = strings.Split(r.Address, ",")
		return m, nil
	}
	path := filepath.Join(cmp.Or(r.Hadoop, hdfs.ConfDir()), "yarn-site.xml")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, exit.With(exit.Usage, fmt.Errorf("submit: %w; --address says where the ResourceManager is", err))
	}
	conf, err := hdfs.ParseConf(text)
	if err != nil {
		return m, exit.With(exit.Usage, fmt.Errorf("submit: %s: %w; --address says where the ResourceManager is",
			path, err))
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
