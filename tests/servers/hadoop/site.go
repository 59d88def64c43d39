package hadoop

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// nameservice is the name of a pair of NameNodes.
const nameservice = "lab"

func (c *Cluster) uri() string {
	if c.options.HA {
		return "hdfs://" + nameservice
	}
	return "hdfs://" + local(c.ports.Names[0].RPC)
}

// configure writes ConfDir: one configuration for daemons and clients.
func (c *Cluster) configure() error {
	core, hdfs := c.core(), c.hdfs()
	c.addNames(hdfs)
	if c.options.Kerberos {
		c.secure(core, hdfs)
	}
	maps.Copy(core, c.options.Site)
	maps.Copy(hdfs, c.options.Site)
	if err := os.MkdirAll(c.ConfDir, 0o755); err != nil {
		return err
	}
	for name, site := range map[string]map[string]string{"core-site.xml": core, "hdfs-site.xml": hdfs} {
		if err := os.WriteFile(filepath.Join(c.ConfDir, name), siteXML(site), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(c.ConfDir, "log4j.properties"), []byte(log4j), 0o644)
}

// Daemons say more: they set muster.log. A NodeManager tells of each look at its containers' memory.
const log4j = `muster.log=WARN
log4j.rootLogger=${muster.log}, err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
log4j.logger.org.apache.hadoop.yarn.server.nodemanager.containermanager.monitor.ContainersMonitorImpl.audit=DEBUG
`

func (c *Cluster) core() map[string]string {
	return map[string]string{
		"fs.defaultFS":   c.uri(),
		"hadoop.tmp.dir": filepath.Join(c.Dir, "tmp"),
		// a daemon that is there first looks for the other soon again
		"ipc.client.connect.retry.interval": "200",
		"ipc.client.connect.max.retries":    "50",
	}
}

func (c *Cluster) hdfs() map[string]string {
	o := c.options
	replication := o.Replication
	if replication == 0 {
		replication = min(o.DataNodes, 3)
	}
	site := map[string]string{
		"dfs.replication":                                     fmt.Sprint(replication),
		"dfs.namenode.fs-limits.min-block-size":               "4096",
		"dfs.namenode.safemode.extension":                     "0",
		"dfs.namenode.handler.count":                          "10",
		"dfs.namenode.edits.noeditlogchannelflush":            "true", // nobody pulls the plug
		"dfs.namenode.resource.du.reserved":                   "1048576",
		"dfs.datanode.du.reserved":                            "0",
		"dfs.datanode.hostname":                               "localhost",
		"dfs.datanode.data.dir.perm":                          "755",
		"dfs.datanode.directoryscan.interval":                 "-1",
		"dfs.block.scanner.volume.bytes.per.second":           "0",
		"dfs.heartbeat.interval":                              "1",
		"dfs.namenode.heartbeat.recheck-interval":             "5000", // ms: a DataNode is dead after 20 s
		"dfs.namenode.stale.datanode.interval":                "3000",
		"dfs.namenode.avoid.read.stale.datanode":              "true",
		"dfs.namenode.avoid.write.stale.datanode":             "true",
		"dfs.client.use.datanode.hostname":                    "false",
		"dfs.namenode.redundancy.interval.seconds":            "1s",
		"dfs.namenode.checkpoint.period":                      "86400s",
		"dfs.client.block.write.locateFollowingBlock.retries": "8",
	}
	if o.BlockSize > 0 {
		site["dfs.blocksize"] = fmt.Sprint(o.BlockSize)
	}
	return site
}

// addNames says where the NameNodes are.
func (c *Cluster) addNames(site map[string]string) {
	if !c.options.HA {
		site["dfs.namenode.name.dir"] = "file://" + c.nameDir(0)
		site["dfs.namenode.http-address"] = local(c.ports.Names[0].HTTP)
		return
	}
	var ids []string
	for i, p := range c.ports.Names {
		id := nameNodeID(i)
		ids = append(ids, id)
		key := "." + nameservice + "." + id
		site["dfs.namenode.rpc-address"+key] = local(p.RPC)
		site["dfs.namenode.http-address"+key] = local(p.HTTP)
		site["dfs.namenode.name.dir"+key] = "file://" + c.nameDir(i)
	}
	maps.Copy(site, map[string]string{
		"dfs.nameservices":                      nameservice,
		"dfs.ha.namenodes." + nameservice:       strings.Join(ids, ","),
		"dfs.namenode.shared.edits.dir":         "file://" + c.sharedDir(),
		"dfs.ha.fencing.methods":                "shell(/bin/true)",
		"dfs.ha.automatic-failover.enabled":     "false",
		"dfs.ha.tail-edits.period":              "1s",
		"dfs.ha.log-roll.period":                "5s",
		"dfs.client.failover.sleep.base.millis": "100",
		"dfs.client.failover.sleep.max.millis":  "1000",
		"dfs.client.failover.proxy.provider." +
			nameservice: "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
	})
}

func nameNodeID(i int) string { return fmt.Sprintf("nn%d", i+1) }

func (c *Cluster) nameDir(i int) string { return filepath.Join(c.Dir, fmt.Sprintf("name-%d", i)) }

func (c *Cluster) sharedDir() string { return filepath.Join(c.Dir, "shared-edits") }

func (c *Cluster) dataDir(i int) string { return filepath.Join(c.Dir, fmt.Sprintf("data-%d", i)) }

// siteXML is a configuration as Hadoop reads it, in a stable order.
func siteXML(site map[string]string) []byte {
	type property struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	}
	type configuration struct {
		Property []property `xml:"property"`
	}
	var conf configuration
	for _, name := range slices.Sorted(maps.Keys(site)) {
		conf.Property = append(conf.Property, property{name, site[name]})
	}
	b, err := xml.MarshalIndent(conf, "", "  ")
	if err != nil {
		panic(err) // strings always marshal
	}
	return append(b, '\n')
}
