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
	return &Service{
		restClient: manager, Definition: text, Kept: kept, Priority: r.Job.Priority, Warn: r.Warn,
	}, nil
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
	m := &restClient{User: os.Getenv("HADOOP_USER_NAME"), Negotiate: r.Negotiate}
	if m.Negotiate == nil { // the ticket cache does
		m.Negotiate = hdfs.Config{}.Negotiator()
	}
	if m.User == "" {
		me, err := user.Current()
		if err != nil {
			return m, fmt.Errorf("submit: who am I to YARN: %w; HADOOP_USER_NAME says it", err)
		}
		m.User = me.Username
	}
	site, err := readSite(cmp.Or(r.Hadoop, hdfs.ConfDir()))
	if r.Address != "" {
		for address := range strings.SplitSeq(r.Address, ",") {
			m.Addresses = append(m.Addresses, cmp.Or(webOf(site, address), address))
		}
		return m, nil // the site is not needed
	}
	m.Addresses = resourceManagers(site)
	return m, err
}

// Configured tells that a folder of Hadoop's configuration names a ResourceManager.
func Configured(hadoop string) (bool, error) {
	site, err := readSite(hadoop)
	return len(resourceManagers(site)) > 0, err
}

// readSite reads yarn-site.xml; there may be none.
func readSite(hadoop string) (map[string]string, error) {
	path := filepath.Join(hadoop, "yarn-site.xml")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("yarn: %w; want the file, or the ResourceManager's address", err))
	}
	site, err := hdfs.ParseConf(text)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("yarn: %s: %w; want a site file of Hadoop's, or the "+
			"ResourceManager's address", path, err))
	}
	return site, nil
}

// webOf is the web application's address of the ResourceManager whose RPC has this address: Hadoop's clients are told
// the RPC's. Empty: the site does not know it.
func webOf(site map[string]string, rpc string) string {
	for _, id := range managerIDs(site) {
		if configured(site, "address", id, rpcPort) == rpc {
			for _, web := range managersNamed(site, []string{id}) {
				return web
			}
		}
	}
	return ""
}

// resourceManagers are the addresses of the web applications of all ResourceManagers that a yarn-site.xml names.
func resourceManagers(site map[string]string) []string { return managersNamed(site, managerIDs(site)) }

// managerIDs are what stands behind the keys of each ResourceManager.
func managerIDs(site map[string]string) []string {
	if site[rmKey+"ha.enabled"] != "true" {
		return []string{""}
	}
	var ids []string
	for id := range strings.SplitSeq(site[rmKey+"ha.rm-ids"], ",") {
		ids = append(ids, "."+strings.TrimSpace(id))
	}
	return ids
}

// rmKey begins the settings of ResourceManagers; of a pair, .ID is behind each.
const rmKey = "yarn.resourcemanager."

// rpcPort is the port of a ResourceManager's RPC where none is configured (yarn-default.xml).
const rpcPort = "8032"

func managersNamed(site map[string]string, ids []string) []string {
	key, port, scheme := "webapp.address", "8088", "http://"
	if site["yarn.http.policy"] == "HTTPS_ONLY" {
		key, port, scheme = "webapp.https.address", "8090", "https://"
	}
	var all []string
	for _, id := range ids {
		if address := configured(site, key, id, port); address != "" {
			all = append(all, scheme+address)
		}
	}
	return all
}

// configured is an address of the ResourceManager ID: that of the key, or its host with the usual port; empty: neither
// is there.
func configured(site map[string]string, key, id, port string) string {
	address, host := site[rmKey+key+id], site[rmKey+"hostname"+id]
	if address == "" && host != "" {
		return net.JoinHostPort(host, port)
	}
	return address
}
