package plan

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// ticketsFile is a process's own ticket cache, below the instance's folder.
const ticketsFile = "app/run/krb5cc"

// hadoop is what the process is told; nil: there is no configuration here. An image that has a Hadoop or a Java of its
// own keeps it.
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

// hadoopUser is who acts where Kerberos does not say it: whom the agent's environment names, else the process's own
// user.
func (b *builder) hadoopUser() string {
	name := b.req.Allocation.User
	if u := b.req.User; u != nil {
		name = u.Name
	}
	return cmp.Or(b.req.Given["HADOOP_USER_NAME"], b.req.Inherited["HADOOP_USER_NAME"], name)
}

func (b *builder) imageHas(name string) bool {
	return b.req.Image != nil && slices.ContainsFunc(b.req.Image.Env, func(e string) bool {
		return strings.HasPrefix(e, name+"=")
	})
}
