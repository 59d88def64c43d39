package login

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-agent/muster/shim/wording"
)

// open answers a channel that a client asks for, until it is closed.
func (c *connection) open(ctx context.Context, asked ssh.NewChannel) {
	switch asked.ChannelType() {
	case "session":
		channel, requests, err := asked.Accept()
		if err != nil {
			return // the client has hung up
		}
		s := &session{connection: c, channel: channel}
		s.serve(ctx, requests)
	case "direct-tcpip":
		c.forward(ctx, asked)
	default:
		refuse(asked, ssh.UnknownChannelType, "sessions and forwarded TCP connections only")
	}
}

// forward joins a channel with a connection from here (RFC 4254, 7.2).
func (c *connection) forward(ctx context.Context, asked ssh.NewChannel) {
	var to struct {
		Host       string
		Port       uint32
		Originator string
		From       uint32
	}
	if err := ssh.Unmarshal(asked.ExtraData(), &to); err != nil || to.Port == 0 || to.Port > 65535 {
		refuse(asked, ssh.ConnectionFailed, "no such address")
		return
	}
	address := net.JoinHostPort(to.Host, strconv.FormatUint(uint64(to.Port), 10))
	c.tellForward(address)
	conn, err := c.Dial(ctx, address)
	if err != nil {
		refuse(asked, ssh.ConnectionFailed, err.Error())
		return
	}
	defer func() { _ = conn.Close() }() // both ways have ended
	channel, requests, err := asked.Accept()
	if err != nil {
		return // the client has hung up
	}
	stop := context.AfterFunc(ctx, func() { _, _ = conn.Close(), channel.Close() }) // ends the copies
	defer stop()
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		ssh.DiscardRequests(requests) // until the channel is closed
		_ = conn.Close()
	})
	work.Go(func() {
		_, _ = io.Copy(conn, channel) // ends when either side does
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the other way may go on
		}
	})
	_, _ = io.Copy(channel, conn) // as above
	_ = channel.Close()           // the client may have hung up
}

// mostTold bounds how many addresses of one connection are told of; the others are a number at its end.
const mostTold = 16

// tellForward tells of the first connection to an address.
func (c *connection) tellForward(address string) {
	c.mu.Lock()
	known, more := c.forwards[address], len(c.forwards) == mostTold
	if !known && more {
		c.untold++
	}
	first := c.untold == 1
	if !known && !more {
		c.forwards[address] = true
	}
	c.mu.Unlock()
	switch {
	case known:
	case !more:
		c.Event(fmt.Sprintf("connection to %s for %s", address, c.who))
	case first:
		c.Event(fmt.Sprintf("connections to more than %d addresses for %s", mostTold, c.who))
	}
}

// count gives a session its number.
func (c *connection) count() int64 {
	c.mu.Lock()
	c.sessions++
	c.mu.Unlock()
	return c.begun.Add(1)
}

// tellEnd tells of a login that no session has told of, and of the connections that were not.
func (c *connection) tellEnd(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.untold > 0 {
		c.Event(fmt.Sprintf("connections to other addresses for %s: %d", c.who, c.untold))
	}
	if c.sessions == 0 {
		c.Event(fmt.Sprintf("login of %s ends after %s: no session", c.who, wording.Took(took)))
	}
}
