// Package subids gives the apps of an agent that is root ids of their own: blocks of subordinate user and group ids
// (subuid(5)), one for each app of a host, and how the ids inside a process's user namespace map to ids of the host.
//
// It owns the table of blocks of this host and a lock on the block that an agent uses. It promises that two apps whose
// agents live at the same time never share a block, that an app gets the block it had before as long as the table
// remembers it, and that no id of a block is one that /etc/passwd or /etc/group has. The agent's preparation calls it.
package subids
