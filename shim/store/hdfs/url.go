package hdfs

import (
	"errors"
	"fmt"
	"net"
	"path"
	"regexp"
	"strconv"
	"strings"
)

var (
	schemeForm = regexp.MustCompile(`^(?i:hdfs):`)
	hostForm   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

// parseURL gives the cluster and the path of a URL; an empty cluster is the default one. Nothing is decoded: a path is
// written as it is, as Hadoop has it.
func parseURL(url string) (authority, file string, err error) {
	at := schemeForm.FindStringIndex(url)
	if at == nil {
		return "", "", errors.New("want hdfs://CLUSTER/PATH")
	}
	file = url[at[1]:]
	if rest, ok := strings.CutPrefix(file, "//"); ok {
		var found bool
		authority, file, found = strings.Cut(rest, "/")
		if !found && authority == "" {
			return "", "", errors.New("want hdfs://CLUSTER/PATH")
		}
		file = "/" + file
	}
	if !strings.HasPrefix(file, "/") {
		return "", "", errors.New("want a path from / on: hdfs://CLUSTER/PATH")
	}
	if strings.ContainsRune(file, 0) {
		return "", "", errors.New("got a path with a zero byte in it")
	}
	if authority != "" {
		err = checkAuthority(authority)
	}
	return authority, path.Clean(file), err
}

func checkAuthority(authority string) error {
	if strings.Contains(authority, "@") {
		return errors.New("got a user in it, want none: who acts is told by HADOOP_USER_NAME, or by Kerberos")
	}
	host := authority
	if strings.ContainsAny(authority, ":[") {
		var port string
		var err error
		if host, port, err = net.SplitHostPort(withPort(authority)); err != nil {
			return fmt.Errorf("got %q, want HOST:PORT or the name of a nameservice", authority)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("got port %q, want 1 to 65535", port)
		}
		if net.ParseIP(host) != nil {
			return nil
		}
	}
	if !hostForm.MatchString(host) {
		return fmt.Errorf("got %q, want HOST:PORT or the name of a nameservice", authority)
	}
	return nil
}
