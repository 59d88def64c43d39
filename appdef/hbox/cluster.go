package hbox

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// clusterSuffix ends the conf that has a cluster's configuration, behind the cluster's name.
const clusterSuffix = ".conf.path"

// clusterConf tells whether a conf names a cluster's configuration. HBox's own name of the conf is a pattern.
func clusterConf(name string) bool {
	return strings.HasSuffix(name, clusterSuffix) && name != "cluster.name"+clusterSuffix
}

// cluster is the folder of Hadoop's configuration that --cluster picks; empty: none. HBox's client reads the files over
// its own configuration; here they are the configuration. Where no cluster is known, the name is carried.
func (l *line) cluster() string {
	v, _ := l.value("cluster")
	name := strings.ToLower(strings.TrimSpace(v.Text))
	if name == "" {
		return ""
	}
	var names []string
	for _, conf := range slices.Sorted(maps.Keys(l.confs)) {
		of, ok := strings.CutSuffix(conf, clusterSuffix)
		if !ok {
			continue
		}
		if strings.ToLower(of) == name {
			return l.hadoopFolder(l.confs[conf])
		}
		names = append(names, of)
	}
	if len(names) == 0 {
		l.carried["cluster"] = name
		return ""
	}
	l.bad(v.Place, appdef.Quote(name), "one of "+strings.Join(names, ", "), appdef.DidYouMean(name, names))
	return ""
}

// hadoopFolder is the folder that a cluster's files are in. Hadoop's own programs, which jobs run, take a folder.
func (l *line) hadoopFolder(v appdef.Value) string {
	found := ""
	for one := range strings.SplitSeq(v.Text, ",") {
		one = strings.TrimSpace(one)
		dir := strings.TrimPrefix(strings.TrimPrefix(one, localScheme), "//")
		if strings.HasSuffix(dir, ".xml") {
			if !slices.Contains(hadoopFiles[:], path.Base(dir)) {
				dir = ""
			}
			dir = path.Dir(dir)
		}
		dir = path.Clean(dir)
		if one == "" || !path.IsAbs(dir) || found != "" && dir != found {
			l.bad(v.Place, appdef.Quote(v.Text), "one folder from / on, or files of one folder: "+
				strings.Join(hadoopFiles[:], ", "), "")
			return ""
		}
		found = dir
	}
	return found
}

var hadoopFiles = [...]string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml"}
