package ownfolder

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// Namespaced tells whether this process is in a user namespace that does not have all ids of the host: what is root
// there is not root on the host.
func Namespaced() bool {
	f, err := os.Open("/proc/self/uid_map")
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<12))
	return err == nil && namespaced(string(text))
}

func namespaced(uidMap string) bool {
	fields := strings.Fields(uidMap)
	const all = 1<<32 - 1
	return len(fields) != 3 || fields[0] != "0" || fields[1] != "0" || fields[2] != strconv.Itoa(all)
}

// beyond tells whether an id stands for those of the host that this user namespace does not have (user_namespaces(7)):
// nobody in here can become one of them, and nobody out there has had this process's folders made.
func beyond(uid uint32) bool {
	const overflow = 65534
	return uid == overflow && Namespaced()
}
