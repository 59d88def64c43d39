package hdfs

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxConf is what a file of configuration may have, in bytes: hundreds of times those of distributions.
const maxConf = 16 << 20

// Conf is Hadoop's configuration: values by their names.
type Conf map[string]string

// confFiles are the files to read. A later one overrides an earlier one, except its final values.
var confFiles = []string{"core-site.xml", "hdfs-site.xml"}

// older are the deprecated names of keys (Hadoop: DeprecatedProperties.html).
var older = map[string]string{
	"fs.default.name": "fs.defaultFS", "dfs.block.size": "dfs.blocksize", "dfs.umaskmode": "fs.permissions.umask-mode",
	"dfs.federation.nameservices": "dfs.nameservices",
}

// LoadConf reads Hadoop's configuration in a folder. A folder without any is an empty one.
func LoadConf(dir string) (Conf, error) {
	c := Conf{}
	final := map[string]bool{}
	for _, name := range confFiles {
		text, err := readSmall(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = c.add(text, final)
		}
		if err != nil {
			return nil, fmt.Errorf("hadoop's configuration %s: %w", filepath.Join(dir, name), err)
		}
	}
	c.substitute()
	return c, nil
}

func readSmall(path string) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, maxConf+1))
	if err == nil && len(text) > maxConf {
		err = fmt.Errorf("got more than %d bytes", maxConf)
	}
	return text, err
}

// ParseConf reads one file of configuration.
func ParseConf(text []byte) (Conf, error) {
	c := Conf{}
	err := c.add(text, map[string]bool{})
	c.substitute()
	return c, err
}

// reference is what a value may say of another key.
var reference = regexp.MustCompile(`\$\{([^}$\s]+)\}`)

// mostSubstitutions of one value (Hadoop: Configuration.MAX_SUBST).
const mostSubstitutions = 20

// substitute puts the values of other keys where values refer to them by ${KEY}. One of an unknown key stays as it is;
// so does the rest of a value that refers to itself.
func (c Conf) substitute() {
	filled := Conf{}
	for key, value := range c {
		for range mostSubstitutions {
			known := func(at []int) bool { _, ok := c[value[at[2]:at[3]]]; return ok }
			found := reference.FindAllStringSubmatchIndex(value, -1)
			i := slices.IndexFunc(found, known)
			if i < 0 || len(value) > maxConf {
				break
			}
			at := found[i]
			value = value[:at[0]] + c[value[at[2]:at[3]]] + value[at[1]:]
		}
		filled[key] = value
	}
	maps.Copy(c, filled)
}

func (c Conf) add(text []byte, final map[string]bool) error {
	var site struct {
		XMLName    xml.Name
		Properties []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
			Final string `xml:"final"`
		} `xml:"property"`
		Include []struct {
			Href string `xml:"href,attr"`
		} `xml:"include"`
	}
	if err := xml.Unmarshal(text, &site); err != nil {
		return err
	}
	if site.XMLName.Local != "configuration" {
		return fmt.Errorf("got <%s>, want <configuration>", site.XMLName.Local)
	}
	if len(site.Include) > 0 {
		return fmt.Errorf("got an include of %q, want the properties themselves", site.Include[0].Href)
	}
	newer := map[string]bool{}
	for _, p := range site.Properties {
		name := strings.TrimSpace(p.Name)
		now, old := older[name]
		if old {
			name = now
		}
		if name == "" || final[name] || old && newer[name] {
			continue
		}
		newer[name] = !old
		c[name] = strings.TrimSpace(p.Value)
		final[name] = strings.TrimSpace(p.Final) == "true"
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{[^}$\s]+\}`)

// mostExpansions is how often a value is filled in, as in Hadoop's Configuration.
const mostExpansions = 20

// get is a value with its ${NAME} filled in: another value, or ${env.NAME}. What has none stays as it is.
func (c Conf) get(name string) string {
	value := c[name]
	for range mostExpansions {
		at := variable.FindStringIndex(value)
		if at == nil {
			return value
		}
		key := value[at[0]+2 : at[1]-1]
		var found string
		if env, ok := strings.CutPrefix(key, "env."); ok {
			found = os.Getenv(env)
		} else if found, ok = c[key]; !ok {
			return value
		}
		if value = value[:at[0]] + found + value[at[1]:]; len(value) > maxConf {
			return ""
		}
	}
	return value
}

// filled are all values, filled in: what the client's own options are made from.
func (c Conf) filled() map[string]string {
	all := make(map[string]string, len(c))
	for name := range c {
		all[name] = c.get(name)
	}
	return all
}

// DefaultFS is the default filesystem; empty: none is named.
func (c Conf) DefaultFS() string { return strings.TrimRight(c.get("fs.defaultFS"), "/") }

// list is a value with commas.
func (c Conf) list(name string) []string {
	var all []string
	for one := range strings.SplitSeq(c.get(name), ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// defaultPort is that of a NameNode's RPC where none is written.
const defaultPort = "8020"

// nameNodes are the addresses of a cluster: those of a nameservice, else the host itself.
func (c Conf) nameNodes(authority string) ([]string, error) {
	if nodes := c.list("dfs.ha.namenodes." + authority); len(nodes) > 0 {
		var all []string
		for _, node := range nodes {
			key := "dfs.namenode.rpc-address." + authority + "." + node
			address := c.get(key)
			if address == "" {
				return nil, fmt.Errorf("nameservice %s: got no %s, want HOST:PORT", authority, key)
			}
			all = append(all, withPort(address))
		}
		return all, nil
	}
	if address := c.get("dfs.namenode.rpc-address." + authority); address != "" {
		return []string{withPort(address)}, nil
	}
	if slices.Contains(c.list("dfs.nameservices"), authority) {
		if address := c.get("dfs.namenode.rpc-address"); address != "" {
			return []string{withPort(address)}, nil
		}
		return nil, fmt.Errorf(
			"nameservice %s: got no dfs.namenode.rpc-address.%s, want HOST:PORT", authority, authority,
		)
	}
	return []string{withPort(authority)}, nil
}

func withPort(address string) string {
	if strings.HasSuffix(address, "]") || !strings.Contains(address, ":") {
		return address + ":" + defaultPort
	}
	return address
}

// Nameservices are the clusters that have a name here, sorted.
func (c Conf) Nameservices() []string {
	all := map[string]bool{}
	for _, name := range c.list("dfs.nameservices") {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Secure tells whether the cluster identifies users by Kerberos.
func (c Conf) Secure() bool {
	return strings.EqualFold(c.get("hadoop.security.authentication"), "kerberos")
}

// leastProtection is the weakest protection that is accepted for requests to NameNodes.
func (c Conf) leastProtection() string {
	least := ""
	for _, one := range c.list(rpcProtection) {
		if quality := qualities[strings.ToLower(one)]; least == "" ||
			slices.Index(strengths, quality) < slices.Index(strengths, least) {
			least = quality
		}
	}
	return least
}

// blockSize is that of new files in bytes, written as 134217728 or 128m; 0: there is none, or none that can be read.
func (c Conf) blockSize() int64 {
	text := strings.ToLower(c.get("dfs.blocksize"))
	if text == "" {
		return 0
	}
	shift := 0
	if at := strings.IndexByte("kmgtpe", text[len(text)-1]); at >= 0 {
		shift, text = 10*(at+1), text[:len(text)-1]
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n > 1<<62>>shift {
		return 0
	}
	return n << shift
}

// replication is the number of copies of new files; 0: not configured.
func (c Conf) replication() int {
	n, err := strconv.Atoi(c.get("dfs.replication"))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// check refuses values that a new file would be made wrongly by.
func (c Conf) check() error {
	if text := c.get("fs.permissions.umask-mode"); text != "" {
		if _, ok := parseUmask(text); !ok {
			return fmt.Errorf(
				"fs.permissions.umask-mode: got %q, want octal digits such as 022, or what is allowed such as "+
					"u=rwx,g=rx,o=",
				text,
			)
		}
	}
	for _, one := range c.list(rpcProtection) {
		if qualities[strings.ToLower(one)] == "" {
			return fmt.Errorf("%s: got %q, want authentication, integrity or privacy", rpcProtection, one)
		}
	}
	if text := c.get("dfs.blocksize"); text != "" && (c.blockSize() == 0 || c.blockSize()%chunkSize != 0) {
		return fmt.Errorf(
			"dfs.blocksize: got %q, want a multiple of %d bytes, such as 134217728 or 128m", text, chunkSize,
		)
	}
	if text := c.get("dfs.replication"); text != "" && c.replication() == 0 {
		return fmt.Errorf("dfs.replication: got %q, want a number from 1 on", text)
	}
	return nil
}

// umask is the mode bits that new files and folders do not get; the default is 022.
func (c Conf) umask() fs.FileMode {
	if mask, ok := parseUmask(c.get("fs.permissions.umask-mode")); ok {
		return mask
	}
	return 0o022
}

var umaskClause = regexp.MustCompile(`^([ugoa]+)=([rwx]*)$`)

// parseUmask reads octal digits, or Hadoop's symbolic form of the permitted bits: u=rwx,g=rx,o=.
func parseUmask(text string) (fs.FileMode, bool) {
	if n, err := strconv.ParseUint(text, 8, 9); err == nil {
		return fs.FileMode(n), true
	}
	mask := fs.FileMode(0o777)
	for clause := range strings.SplitSeq(text, ",") {
		m := umaskClause.FindStringSubmatch(strings.TrimSpace(clause))
		if m == nil {
			return 0, false
		}
		allowed := fs.FileMode(0)
		for _, right := range m[2] {
			allowed |= map[rune]fs.FileMode{'r': 4, 'w': 2, 'x': 1}[right]
		}
		for shift, who := range []string{"o", "g", "u"} {
			if strings.ContainsAny(m[1], who+"a") {
				mask = mask&^(7<<(3*shift)) | (7&^allowed)<<(3*shift)
			}
		}
	}
	return mask, true
}

// rpcProtection is the setting on both sides.
const rpcProtection = "hadoop.rpc.protection"

// strengths are the qualities, the better ones later.
var strengths = []string{"auth", "auth-int", "auth-conf"}

// qualities of protection by their names in Hadoop's configuration.
var qualities = map[string]string{"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}
