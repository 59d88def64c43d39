package hostlock

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// heldIn tells that the lock's file in a folder of root's is locked. The file cannot be opened, but /proc/locks lists
// it to everybody, without the locks of processes outside of this PID namespace.
func heldIn(dir, name string) bool {
	var is unix.Stat_t
	if unix.Lstat(filepath.Join(dir, fileName(name)), &is) != nil || is.Uid != 0 {
		return false
	}
	file, err := os.Open("/proc/locks")
	if err != nil {
		return false
	}
	defer file.Close()
	id := fmt.Sprintf("%02x:%02x:%d", unix.Major(is.Dev), unix.Minor(is.Dev), is.Ino)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 00:1a:815 0 EOF; a waiting one has -> in the second place
		fields := strings.Fields(lines.Text())
		if len(fields) > 5 && fields[1] == "FLOCK" && fields[5] == id {
			return true
		}
	}
	return false
}

const (
	// prefix begins all announcements.
	prefix = "@muster/"
	// mostAddress is what an address takes after its leading zero byte (struct sockaddr_un), in bytes.
	mostAddress = 107
	// backlog is how many looks at an announcement are answered; a holder accepts none.
	backlog = 4096
)

// address is the lock's announcement. A name that is too long is replaced by its digest.
func address(name string) *unix.SockaddrUnix {
	at := prefix + name
	if len(at) > mostAddress {
		digest := sha256.Sum256([]byte(name))
		at = prefix + hex.EncodeToString(digest[:])
	}
	return &unix.SockaddrUnix{Name: at}
}

// announce binds the lock's name for others to see, and returns the socket. Where another user did so first, there is
// none, and that user's process is returned. The error is ErrHeld where this user or root did.
func announce(name string) (fd int, other *holder, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, nil, err
	}
	if err = unix.Bind(fd, address(name)); err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err == nil {
		return fd, nil, nil
	}
	defer unix.Close(fd)
	if !errors.Is(err, unix.EADDRINUSE) {
		return -1, nil, err
	}
	other = &holder{UID: -1}
	// A socket that failed to bind may still connect; the kernel knows who listens.
	if unix.Connect(fd, address(name)) == nil {
		if who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			other = &holder{UID: int(who.Uid), PID: int(who.Pid)}
		}
	}
	if other.UID == 0 || other.UID == os.Geteuid() {
		return -1, nil, ErrHeld
	}
	return -1, other, nil
}
