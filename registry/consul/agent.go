package consul

import (
	"context"
	"errors"
)

// AgentAddress is the address that our Consul agent advertises to its peers. For a node-local agent it is this host's
// own.
func (c *Client) AgentAddress(ctx context.Context) (string, error) {
	var self struct{ Member struct{ Addr string } }
	err := c.calls.do(ctx, "ask the agent for its address", func(ctx context.Context) error {
		_, err := c.calls.api.Raw().Query("/v1/agent/self", &self, byDefault.options(ctx))
		return err
	})
	if err == nil && self.Member.Addr == "" {
		err = errors.New("ask the agent for its address: no Member.Addr in the answer")
	}
	return self.Member.Addr, err
}
