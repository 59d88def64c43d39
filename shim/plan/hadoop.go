package plan

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// A process's own ticket cache and token file, below the instance's folder.
const (
	ticketsFile = "app/run/krb5cc"
	tokensFile  = "app/run/hadoop-tokens"
)

// TokensVariable names Hadoop's token file.
const TokensVariable = "HADOOP_TOKEN_FILE_LOCATION"

// hadoop are the process's variables of Hadoop; nil if this host has no configuration of Hadoop. An image with its own
// Hadoop or Java keeps it.
func (b *builder) hadoop() *Hadoop {
	facts := b.req.Hadoop
	if facts == nil || facts.Conf == "" {
		return nil
	}
	h := &Hadoop{Conf: facts.Conf, User: b.hadoopUser(), Classes: []string{}}
	if facts.Tickets {
		h.Tickets, h.Krb5 = path.Join(b.req.root(), ticketsFile), facts.Krb5
		if facts.Tokens {
			h.Tokens = path.Join(b.req.root(), tokensFile)
		}
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

// hadoopUser is the user towards Hadoop without Kerberos: that of the agent's environment, else the process's own.
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
