package prepare

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/user"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/guard"
)

// accounts are the users and groups of a root, from its two files.
type accounts struct{ passwd, group []byte }

// readAccounts reads them; a root without these files knows numbers only.
func readAccounts(open func(path string) (io.ReadCloser, error)) (accounts, error) {
	var a accounts
	for path, to := range map[string]*[]byte{"/etc/passwd": &a.passwd, "/etc/group": &a.group} {
		f, err := open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return a, fmt.Errorf("read accounts: %w", err)
		}
		*to, err = io.ReadAll(io.LimitReader(f, mostAccounts))
		if err = errors.Join(err, f.Close()); err != nil {
			return a, fmt.Errorf("read accounts: %w", err)
		}
	}
	return a, nil
}

// mostAccounts is the limit of such a file of an image, in bytes.
const mostAccounts = 8 << 20

// find looks up `user`, `uid`, `user:group` or `uid:gid`. The user's further groups are added in either form. A uid
// without an entry needs a group, unless lone gives it one.
func (a accounts) find(text string, lone *int) (plan.UserFacts, error) {
	id, group, explicit := strings.Cut(text, ":")
	e, err := user.GetExecUser(text, &user.ExecUser{Home: "/"}, bytes.NewReader(a.passwd), bytes.NewReader(a.group))
	if err != nil {
		return plan.UserFacts{}, fmt.Errorf("user %q: %w; want a name or number of /etc/passwd there, or uid:gid", text,
			err)
	}
	facts := plan.UserFacts{UID: e.Uid, GID: e.Gid, Home: cmp.Or(e.Home, "/")}
	entries, err := user.ParsePasswdFilter(bytes.NewReader(a.passwd), func(u user.User) bool {
		return u.Uid == e.Uid && (u.Name == id || isNumber(id))
	})
	if err != nil {
		return plan.UserFacts{}, fmt.Errorf("user %q: %w", text, err)
	}
	switch {
	case len(entries) > 0:
		facts.Name = entries[0].Name
	case !explicit && lone != nil:
		facts.GID = *lone
	case !explicit || group == "":
		return plan.UserFacts{}, fmt.Errorf("muster.user %q: uid %d has no entry in /etc/passwd, so its group is "+
			"not known; want uid:gid, such as %[2]d:%[2]d", text, e.Uid)
	}
	if facts.Name == "" {
		return facts, nil
	}
	groups, err := user.ParseGroupFilter(bytes.NewReader(a.group), func(g user.Group) bool {
		return slices.Contains(g.List, facts.Name)
	})
	if err != nil {
		return plan.UserFacts{}, fmt.Errorf("user %q: %w", text, err)
	}
	for _, g := range groups {
		facts.Groups = append(facts.Groups, g.Gid)
	}
	return facts, nil
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// mayBe refuses a user that this agent cannot give its process. An agent that is not root gives it its own user, who is
// 0 in a container with an image: the only user of that namespace.
func (c *Container) mayBe(p plan.Plan) error {
	u, uid, gid := c.User(), os.Geteuid(), os.Getegid()
	if uid == 0 {
		return errors.Join(c.admitUser(p), c.admitLimits(p))
	}
	if u == nil {
		return nil
	}
	if p.Root.Kind == plan.RootImage {
		if u.UID == 0 && u.GID == 0 {
			return nil
		}
		return fmt.Errorf("user %s of the image: an agent that is not root has one user in a container, 0; set "+
			"muster.user=0:0, or run the agent as root", p.Process.User)
	}
	if u.UID == uid && u.GID == gid {
		return nil
	}
	return fmt.Errorf("muster.user %s: only an agent that is root can run a process as another user", p.Process.User)
}

// admitLimits refuses limits that would be raised with root's rights and tell on others of this host.
func (c *Container) admitLimits(p plan.Plan) error {
	limits, err := sandbox.ParseRlimits(p.Limits.Ulimits)
	if err != nil {
		return err
	}
	raised, err := sandbox.Raised(limits)
	var refused, said []string
	for _, name := range raised {
		if !c.Policy.MayRaise(name) {
			refused, said = append(refused, name), append(said, "muster.ulimit."+name+" "+p.Limits.Ulimits[name])
		}
	}
	if len(refused) > 0 {
		err = errors.Join(err, fmt.Errorf("%s: above this agent's own limit, and it tells on the whole host: let the "+
			"operator %s", strings.Join(said, ", "), c.Policy.Admit(`"ulimits": `+list(refused))))
	}
	return err
}

// list are texts as a policy has them.
func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// leastUser is the first uid, and the first gid, that is not of the system (login.defs(5)).
const leastUser = 1000

// admitUser refuses a user of this host, or a group, whose rights a definition may not have: an agent that is root
// would give them to anybody's process. The policy's list admits a user with the user's own groups; so does a launcher
// that says who has submitted the job.
func (c *Container) admitUser(p plan.Plan) error {
	u := c.Owner()
	if u == nil || u.UID == 0 || c.ids != nil && !c.ids.own {
		return nil // the agent's own, or nobody of this host
	}
	host, err := readAccounts(files.OpenHost)
	if err != nil {
		return err
	}
	said := "muster.user " + p.Process.User
	if c.image.Image != nil && p.Process.User == c.image.Config.User {
		said = "user " + p.Process.User + " of the image"
	}
	if err := c.admits(*u, host); err != nil {
		return fmt.Errorf("%s: %w", said, err)
	}
	return nil
}

// admits is admitUser for these accounts of the host.
func (c *Container) admits(u plan.UserFacts, host accounts) error {
	names, groups, err := host.of(u.UID)
	if err != nil {
		return err
	}
	submitter := u.UID >= leastUser && c.Submitter != "" && slices.Contains(names, c.Submitter)
	var lines, others []string // of the policy's users; groups
	if !submitter && !c.Policy.Users.User(u.UID, names) {
		lines = append(lines, `"names": `+list([]string{append(names, strconv.Itoa(u.UID))[0]}))
	}
	for _, gid := range append([]int{u.GID}, u.Groups...) {
		if slices.Contains(groups, gid) || c.ids.subordinate(gid) {
			continue
		}
		called, err := host.groupNames(gid)
		if err != nil {
			return err
		}
		if !c.Policy.Users.Group(gid, called) {
			others = append(others, strconv.Itoa(gid))
		}
	}
	why, instead := "", "leave muster.user out"
	switch unlisted, outside := len(lines) > 0, len(others) > 0; {
	case unlisted && outside:
		why = "this host does not let definitions run as uid %d, who is not in group %s"
	case unlisted:
		why = "this host does not let definitions run as uid %d%s"
	case outside:
		why, instead = "uid %d is not in group %s on this host", "name the user without it"
	default:
		return nil
	}
	if len(others) > 0 {
		lines = append(lines, `"groups": `+list(others))
	}
	return fmt.Errorf(why+": "+instead+", or let the operator %s", u.UID, strings.Join(others, " and "),
		c.Policy.Admit(`"users": {`+strings.Join(lines, ", ")+`}`))
}

// of are the names that a root gives a uid, and the groups that it gives those.
func (a accounts) of(uid int) (names []string, groups []int, err error) {
	entries, err := user.ParsePasswdFilter(bytes.NewReader(a.passwd), func(u user.User) bool { return u.Uid == uid })
	if err != nil {
		return nil, nil, fmt.Errorf("uid %d: %w", uid, err)
	}
	for _, e := range entries {
		names, groups = append(names, e.Name), append(groups, e.Gid)
	}
	in, err := user.ParseGroupFilter(bytes.NewReader(a.group), func(g user.Group) bool {
		return slices.ContainsFunc(g.List, func(name string) bool { return slices.Contains(names, name) })
	})
	for _, g := range in {
		groups = append(groups, g.Gid)
	}
	if err != nil {
		err = fmt.Errorf("uid %d: %w", uid, err)
	}
	return names, groups, err
}

func (a accounts) groupNames(gid int) ([]string, error) {
	entries, err := user.ParseGroupFilter(bytes.NewReader(a.group), func(g user.Group) bool { return g.Gid == gid })
	if err != nil {
		return nil, fmt.Errorf("gid %d: %w", gid, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, nil
}

// Credential is the user in the guard's form; nil: the agent's own user, which an agent that is not root always has.
func (c *Container) Credential() *guard.User {
	u := c.User()
	if u == nil || os.Geteuid() != 0 {
		return nil
	}
	as := guard.User{UID: uint32(u.UID), GID: uint32(u.GID)}
	for _, g := range u.Groups {
		as.Groups = append(as.Groups, uint32(g))
	}
	return &as
}
