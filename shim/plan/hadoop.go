package plan

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// HadoopFacts are what there is of Hadoop on a host, found by the caller; empty where there is none of it.
type HadoopFacts struct {
	Conf     string // folder of its configuration
	Home     string // HADOOP_HOME
	HDFSHome string // HADOOP_HDFS_HOME, where it is another
	Java     string // JAVA_HOME
	JVM      string // folder of libjvm.so
	Native   string // folder of libhadoop.so and libhdfs.so
	// Classes are the folders of jars, Jars the jars in them, both in their order.
	Classes, Jars []string
	// Libhdfs: there is a libhdfs.so, and the JVM and the jars that it needs.
	Libhdfs bool
	// Krb5 is Kerberos' own configuration, where it is not in its usual place.
	Krb5 string
	// Tickets: the agent has a ticket of Kerberos', of which each process gets a copy.
	Tickets bool
}

// Hadoop is what every process is told of the host's Hadoop, so that libhdfs and Hadoop's own commands work in it.
type Hadoop struct {
	Conf     string   `json:"conf"`
	Home     string   `json:"home,omitempty"`
	HDFSHome string   `json:"hdfs_home,omitempty"`
	Java     string   `json:"java,omitempty"`
	JVM      string   `json:"jvm,omitempty"`
	Native   string   `json:"native,omitempty"`
	User     string   `json:"user,omitempty"`
	Tickets  string   `json:"tickets,omitempty"` // path of the process's own ticket cache
	Krb5     string   `json:"krb5,omitempty"`    // KRB5_CONFIG
	Classes  []string `json:"classes"`           // folders whose jars are in CLASSPATH
	// Jars are CLASSPATH's own. They belong to the host and are not printed.
	Jars []string `json:"-"`
}

// ticketsFile is a process's own ticket cache, below the instance's folder.
const ticketsFile = "app/run/krb5cc"

// hadoop is what the process is told; nil: there is no configuration here. An image that has a Hadoop or a Java of its own
// keeps it.
func (b *builder) hadoop() *Hadoop {
	facts := b.req.Hadoop
	if facts == nil || facts.Conf == "" {
		return nil
	}
	h := &Hadoop{Conf: facts.Conf, User: b.hadoopUser(), Classes: []string{}}
	if facts.Tickets {
		h.Tickets, h.Krb5 = path.Join(b.req.root(), ticketsFile), facts.Krb5
	}
	if !b.imageHas("HADOOP_HOME") {
		h.Home, h.HDFSHome, h.Native = facts.Home, facts.HDFSHome, facts.Native
		h.Classes, h.Jars = append(h.Classes, facts.Classes...), slices.Clone(facts.Jars)
	}
	if !b.imageHas("JAVA_HOME") {
		h.Java, h.JVM = facts.Java, facts.JVM
	}
	return h
}

// hadoopUser is who acts where Kerberos does not say it: whom the agent's environment names, else the process's own user.
func (b *builder) hadoopUser() string {
	name := b.req.Allocation.User
	if u := b.req.User; u != nil {
		name = u.Name
	}
	return cmp.Or(b.req.Given["HADOOP_USER_NAME"], b.req.Inherited["HADOOP_USER_NAME"], name)
}

func (b *builder) imageHas(name string) bool {
	return b.req.Image != nil && slices.ContainsFunc(b.req.Image.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
}

// resolved puts the true folders in.
func (h *Hadoop) resolved(fill func(string) string) *Hadoop {
	if h == nil {
		return nil
	}
	out := *h
	out.Tickets = fill(h.Tickets)
	return &out
}
