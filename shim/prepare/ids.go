package prepare

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// MakesIDs tells whether this agent gives its processes ids of their own: it is root of the host, and the operator has
// not chosen otherwise. An agent that is root in somebody's container, without CAP_SYS_ADMIN or without all of the
// host's ids, has no right beyond those of its process.
func MakesIDs(p policy.Policy) bool { return RootOfHost() && !p.HostIDs() }

// RootOfHost tells whether the agent has the rights of the host's root.
func RootOfHost() bool {
	if os.Geteuid() != 0 || ownfolder.Namespaced() {
		return false
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // 32 capabilities each
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// sameRights tells whether the process has all rights of this agent, which is root.
func (c *Container) sameRights(p plan.Plan) bool {
	u := c.User()
	return p.Root.Kind == plan.RootHost && !MakesIDs(c.Policy) && (u == nil || u.UID == 0)
}

// takeIDs takes the app's subordinate ids of this host until Close.
func (c *Container) takeIDs(p plan.Plan) error {
	if c.ids != nil || !MakesIDs(c.Policy) {
		return nil
	}
	if p.Root.Kind == plan.RootOverlay {
		lines := []string{`"userns": "host"`}
		if id, _, _ := strings.Cut(p.Process.User, ":"); id == "" || id == "root" || id == "0" {
			// it would be the host's
			lines = append(lines, `"refuse_root": false`)
		}
		return fault.NotPermitted(fmt.Errorf("muster.root=overlay: the host's files belong to nobody in a user "+
			"namespace, so that nothing over them could be written: leave it out, use an image, or let the operator "+
			"%s", c.Policy.Admit(lines...)))
	}
	pool, err := subids.HostPool()
	if err != nil {
		return fault.NotPermitted(err)
	}
	block, release, err := subids.Take(subids.HostDir, c.AppID+"\n"+c.Registry, pool)
	if err != nil {
		return fault.NotPermitted(err)
	}
	c.atEnd(func() {
		if err := release(); err != nil {
			c.Log.Warn("subordinate ids not released", "err", err)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = &ids{block: block}
	return nil
}

// nameIDs lets a user of the host whom the definition names keep its ids.
func (c *Container) nameIDs(p plan.Plan) error {
	if c.ids == nil {
		return nil
	}
	own, err := c.named(p)
	if err != nil {
		return fault.NotPermitted(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids.own = own
	return nil
}

// named tells whether the definition names a user of this host. In an image that is one whom the policy lists: another
// number is a user of the image.
func (c *Container) named(p plan.Plan) (bool, error) {
	u := c.User()
	if u == nil || u.UID == 0 || p.Process.User == "" {
		return false, nil
	}
	if p.Root.Kind != plan.RootImage {
		return true, nil
	}
	if p.Process.User == c.image.Config.User {
		return false, nil
	}
	host, err := readAccounts(files.OpenHost)
	return err == nil && c.admits(*u, host) == nil, err
}

// ids are those of the process of a root agent.
type ids struct {
	block subids.Block
	own   bool // the process's user is one of the host, with the same ids
}

// subordinate tells whether a group is of the app's own block: no account of the host has it.
func (i *ids) subordinate(gid int) bool {
	return i != nil && gid >= i.block.GID && gid < i.block.GID+subids.BlockSize
}

// table maps the ids inside to those of the host. The groups are of the host and keep their ids.
func (i ids) table(user *plan.UserFacts, groups []int) *subids.Map {
	var uids []int
	if i.own {
		uids = []int{user.UID}
		groups = append(slices.Clone(groups), append(user.Groups, user.GID)...)
	}
	return subids.New(i.block, uids, groups)
}

// owner is the process's user as the host's kernel knows it.
func (i ids) owner(user *plan.UserFacts) *plan.UserFacts {
	inside := plan.UserFacts{Home: "/"}
	if user != nil {
		inside = *user
	}
	table := i.table(user, nil)
	owner := plan.UserFacts{Home: inside.Home}
	owner.UID, _ = table.UID(inside.UID)
	owner.GID, _ = table.GID(inside.GID)
	for _, g := range inside.Groups {
		if gid, ok := table.GID(g); ok {
			owner.Groups = append(owner.Groups, gid)
		}
	}
	if i.own {
		owner.Name = inside.Name
	}
	return &owner
}

// owns tells whether a user of the host is one of the process's.
func (c *Container) owns(uid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ids != nil:
		return c.ids.table(c.user, nil).HasUser(uid)
	case c.user != nil:
		return uid == c.user.UID
	}
	return uid == os.Geteuid()
}

// Overrides tells whether the process may write whatever a user of the host owns, as root of a user namespace that has
// this user.
func (c *Container) Overrides(p plan.Plan, uid int) bool {
	u := c.User()
	if u != nil && u.UID != 0 {
		return false
	}
	namespaced := c.ids != nil || os.Geteuid() != 0 && p.Root.Kind != plan.RootHost
	return namespaced && c.owns(uid)
}

// checkIDs refuses a user of an image that has no id on the host.
func (c *Container) checkIDs() error {
	u := c.User()
	if c.ids == nil || u == nil {
		return nil
	}
	table := c.ids.table(u, nil)
	_, uid := table.UID(u.UID)
	_, gid := table.GID(u.GID)
	if !uid || !gid {
		return fmt.Errorf("user %d:%d of the image: beyond the ids of a container, which are 0 to %d: set muster.user",
			u.UID, u.GID, subids.BlockSize-1)
	}
	return nil
}

// confineIDs gives the process its user namespace, in which the groups that own the granted devices keep their ids.
func (c *Container) confineIDs(user *guard.User, devices []uint32) (*guard.User, *subids.Map) {
	if c.ids == nil {
		return user, nil
	}
	groups := make([]int, len(devices))
	for i, g := range devices {
		groups[i] = int(g)
	}
	if user == nil {
		user = &guard.User{Groups: devices} // root inside
	}
	return user, c.ids.table(c.User(), groups)
}

// reach refuses folders of the host's that the process could not enter.
func (c *Container) reach(p plan.Plan) error {
	if c.ids == nil || p.Root.Kind == plan.RootImage { // there the folders above are the container's own
		return nil
	}
	if shut := files.As(c.Owner()).Shut(c.WorkDir); shut != "" {
		return fault.NotPermitted(fmt.Errorf("the process may not enter its folder %s: %s is closed to uid %d, which "+
			"it has on this host: give --work-dir a place that others may pass through, or open that folder "+
			"(chmod o+x)",
			p.Process.Folder, shut, c.Owner().UID))
	}
	return nil
}

// HostMemoryMB is the memory of this host; 0: unknown.
func HostMemoryMB() int {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int(info.Totalram * uint64(info.Unit) >> 20) //nolint:gosec // no host has 2^83 bytes
}
