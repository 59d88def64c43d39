package hadoop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Classes of Hadoop's that are run.
const (
	nameNodeClass = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	dataNodeClass = "org.apache.hadoop.hdfs.server.datanode.DataNode"
)

func (c *Cluster) nameNodeArgs(i int) []string {
	args := c.home.javaArgs("256m", c.ConfDir, nameNodeClass,
		append(c.properties(), "-Dmuster.log=INFO", "-Djava.io.tmpdir="+c.Dir)...)
	if c.options.HA { // both are on this host: neither finds out by its address which one it is
		args = append(args, "-D", "dfs.ha.namenode.id="+nameNodeID(i))
	}
	return args
}

func (c *Cluster) dataNodeArgs(i int) []string {
	p := c.ports.Datas[i]
	args := c.home.javaArgs("192m", c.ConfDir, dataNodeClass,
		append(c.properties(), "-Dmuster.log=INFO", "-Djava.io.tmpdir="+c.Dir)...)
	for key, value := range map[string]string{
		"dfs.datanode.data.dir":     "file://" + c.dataDir(i),
		"dfs.datanode.address":      fmt.Sprintf("127.0.0.1:%d", p.Data),
		"dfs.datanode.ipc.address":  fmt.Sprintf("127.0.0.1:%d", p.IPC),
		"dfs.datanode.http.address": fmt.Sprintf("127.0.0.1:%d", p.HTTP),
	} {
		args = append(args, "-D", key+"="+value)
	}
	return args
}

// format gives the NameNodes an empty namespace, unless they have one: a copy of the one that the build has formatted.
func (c *Cluster) format() error {
	if _, err := os.Stat(c.nameDir(0)); err == nil {
		return nil
	}
	empty := filepath.Join(c.home.dir, "name")
	for i := range c.nameNodes() {
		if err := os.CopyFS(c.nameDir(i), os.DirFS(empty)); err != nil {
			return err
		}
	}
	if !c.options.HA {
		return nil
	}
	if err := os.CopyFS(c.sharedDir(), os.DirFS(empty)); err != nil {
		return err
	}
	images, err := filepath.Glob(filepath.Join(c.sharedDir(), "current", "fsimage_*"))
	for _, image := range images { // there are edits only
		err = errors.Join(err, os.Remove(image))
	}
	return err
}

// ready waits for a NameNode that takes writes and for all DataNodes at all NameNodes.
func (c *Cluster) ready() error {
	for i := range c.names {
		if err := c.await(c.names[i], func() error { return c.allThere(i) }); err != nil {
			return err
		}
	}
	if c.options.HA {
		if err := c.activate(); err != nil {
			return err
		}
	}
	return c.await(c.names[0], c.writable)
}

// allThere fails while not all DataNodes are known to a NameNode.
func (c *Cluster) allThere(i int) error {
	state, err := c.state(i)
	if err != nil {
		return err
	}
	if state.NumLiveDataNodes < len(c.datas) {
		return fmt.Errorf("%d of %d DataNodes", state.NumLiveDataNodes, len(c.datas))
	}
	return nil
}

// writable fails while no NameNode takes writes.
func (c *Cluster) writable() error {
	var last error
	for i := range c.names {
		state, err := c.state(i)
		if err != nil {
			last = err
			continue
		}
		if state.FSState == "Operational" {
			return nil
		}
		last = fmt.Errorf("%s is in state %s", c.names[i].name, state.FSState)
	}
	return last
}

type nameState struct {
	FSState          string
	NumLiveDataNodes int
}

func (c *Cluster) state(i int) (nameState, error) {
	var s nameState
	err := c.bean(i, "Hadoop:service=NameNode,name=FSNamesystemState", &s)
	return s, err
}

// bean reads one of a NameNode's JMX beans.
func (c *Cluster) bean(i int, name string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local(c.ports.Names[i].HTTP)+"/jmx?qry="+name,
		nil)
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct{ Beans []json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if len(answer.Beans) == 0 {
		return fmt.Errorf("no bean %s yet", name)
	}
	return json.Unmarshal(answer.Beans[0], into)
}

// await asks until there is no error, the daemon has ended, or the watchdog barks.
func (c *Cluster) await(d *daemon, ask func() error) error {
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-d.gone:
			return fmt.Errorf("%s ended; the end of its log:\n%s", d.name, d.logTail())
		case <-dog.C:
			return fmt.Errorf("after %s: %w; the end of %s:\n%s", watchdog, err, d.log, d.logTail())
		case <-poll.C:
		}
	}
}

// registered fails while a DataNode that was started has not reported its blocks to all NameNodes.
func (c *Cluster) registered(d *daemon) error {
	up := 0
	for _, n := range c.names {
		if n.running() {
			up++
		}
	}
	if strings.Count(d.said(), "Successfully sent block report") < up {
		return errors.New("it has not reported its blocks")
	}
	return nil
}
