package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Delay holds every packet that host i sends for d; 0 ends it. It is the kernel's netem that does it, or a relay of our
// own where the kernel has none (CONFIG_NET_SCH_NETEM).
func (n *Net) Delay(i int, d time.Duration) error {
	if r := n.relays[i]; r != nil {
		r.delay.Store(int64(d))
		return nil
	}
	qdisc := []string{"netem", "delay", fmt.Sprintf("%dus", d.Microseconds())}
	if d == 0 {
		qdisc = []string{"pfifo", "limit", "1000"}
	}
	args := append([]string{"-n", n.Name(i), "qdisc", "replace", "dev", "eth0", "root"}, qdisc...)
	out, err := exec.Command("tc", args...).CombinedOutput()
	switch {
	case err == nil:
		return nil
	case strings.Contains(string(out), "qdisc kind is unknown"):
		return n.insertRelay(i, d)
	}
	return fmt.Errorf("tc %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
}

// relay carries frames between two interfaces of the namespace with the bridge: late from the host, at once to it.
//
//	host eth0 ── port<i> ══ relay ══ late<i> ── uplink<i> ── bridge
type relay struct {
	host, bridge *os.File // packet sockets
	delay        atomic.Int64
}

// frame is one packet and when it may go on.
type frame struct {
	due  time.Time
	data []byte
}

// maxFrame holds a frame that the kernel has not cut yet (GSO), with its virtio header.
const maxFrame = 1<<16 + 64

func (n *Net) insertRelay(i int, d time.Duration) error {
	late, uplink := fmt.Sprintf("late%d", i), uplinkOfRelay(i)
	n.must("-n", n.name, "link", "add", late, "type", "veth", "peer", "name", uplink)
	n.must("-n", n.name, "link", "set", late, "up")
	n.must("-n", n.name, "link", "set", uplink, "up")
	r := &relay{}
	r.delay.Store(int64(d))
	err := inside(n.name, func() (err error) {
		if r.host, err = packetSocket(port(i)); err != nil {
			return err
		}
		r.bridge, err = packetSocket(late)
		return err
	})
	if err != nil {
		return errors.Join(err, r.close())
	}
	cut := n.cut[i]
	n.Cut(i)
	n.relays[i] = r
	if !cut {
		n.Heal(i)
	}
	go r.forward(r.host, r.bridge, &r.delay)
	go r.forward(r.bridge, r.host, new(atomic.Int64))
	return nil
}

// forward ends when a socket is closed.
func (r *relay) forward(from, to *os.File, delay *atomic.Int64) {
	late := make(chan frame, 4096) // beyond that frames wait in the socket, and are lost where it overflows
	defer close(late)
	go func() {
		for f := range late {
			if wait := time.Until(f.due); wait > 0 {
				time.Sleep(wait)
			}
			_, _ = to.Write(f.data) // a link that is down loses frames, as links do
		}
	}()
	buf := make([]byte, maxFrame)
	for {
		size, err := from.Read(buf)
		switch {
		case errors.Is(err, unix.ENETDOWN):
			continue
		case err != nil:
			return
		}
		late <- frame{time.Now().Add(time.Duration(delay.Load())), append([]byte(nil), buf[:size]...)}
	}
}

func (r *relay) close() error {
	var errs []error
	for _, f := range []*os.File{r.host, r.bridge} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// packetSocket reads and writes whole frames of an interface of this thread's namespace, see packet(7). Each carries
// a virtio header, so that checksums and cuts which the sender left to its card are left to the receiver's.
func packetSocket(device string) (*os.File, error) {
	index, err := deviceIndex(device)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
			&unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: index}),
	)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("packet socket on %s: %w", device, err)
	}
	return os.NewFile(uintptr(fd), device), nil
}

func deviceIndex(device string) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(device)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req); err != nil {
		return 0, fmt.Errorf("interface %s: %w", device, err)
	}
	return int(req.Uint32()), nil
}

func uplinkOfRelay(i int) string { return fmt.Sprintf("uplink%d", i) }

// bigEndian is htons.
func bigEndian(v uint16) uint16 { return v<<8 | v>>8 }
