package consul

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// ownNode remembers whether an app's own node exists.
type ownNode struct {
	sync.Mutex
	asked bool
	name  string // "": sessions are made on the node of the Consul agent that is asked
}

// find asks for the app's own node, once. A registry without a catalog has none, and neither has a token that may not
// read it.
func (n *ownNode) find(ctx context.Context, l *connection, app string) (string, error) {
	n.Lock()
	defer n.Unlock()
	if n.asked {
		return n.name, nil
	}
	var found *api.CatalogNode
	err := l.do(ctx, "look for the app's node", func(ctx context.Context) (err error) {
		found, _, err = l.api.Catalog().Node(SessionNode(app), stale.options(ctx))
		if status, ok := errors.AsType[api.StatusError](err); ok &&
			(status.Code == http.StatusNotImplemented || status.Code == http.StatusNotFound) {
			return nil // a registry without a catalog, such as the embedded one
		}
		return err
	})
	if err != nil && !errors.Is(err, registry.ErrForbidden) {
		return "", err
	}
	if err == nil && found != nil && found.Node != nil {
		n.name = found.Node.Node
	}
	n.asked = true
	return n.name, nil
}
