package consul

import (
	"bytes"
	"context"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// mostValues is how many bytes the values of one transaction may have together. Consul takes a body of 512 KB with
// values in base64 (4/3); the other 44,000 bytes are for 128 operations and their keys.
const mostValues = 360_000

// fitDefinition makes an app's record fit into the transaction that writes it with its directive (T2, T15). A
// definition that is too large is written first, in chunks named by their content: nobody reads chunks that no record
// names. there are the checks that the chunks still exist when the record is written.
func (g *gang) fitDefinition(
	ctx context.Context, app registry.AppRecord, d registry.Directive,
) (_ registry.AppRecord, there []*api.TxnOp, err error) {
	const written = 2 // T2 writes the directive this many times
	if len(encode(app))+written*len(encode(d)) <= mostValues {
		return app, nil, nil
	}
	def := app.Def
	app.Def, app.DefID = "", registry.DefID(def)
	for n, chunk := range registry.CutDef(def) {
		key := g.keys.def(app.DefID, n)
		index, err := g.calls.ensure(ctx, key, chunk)
		if err != nil {
			return app, nil, err
		}
		there = append(there, opIndex(key, index))
	}
	return app, there, nil
}

// ensure makes a key hold the content that its name stands for, and returns its index. The error is a *refusal if
// another writer was faster.
func (l *connection) ensure(ctx context.Context, key string, value []byte) (uint64, error) {
	pair, err := l.get(ctx, key, byDefault)
	if err != nil {
		return 0, err
	}
	var index uint64
	if pair != nil {
		if index = pair.ModifyIndex; bytes.Equal(pair.Value, value) {
			return index, nil
		}
	}
	res, err := l.commit(ctx, opCAS(key, index, value))
	return res.index(key), err
}

// Definition reads the packed definition that an app's record holds or names, checked against the name. The error is
// registry.ErrDefinitionDiffers if it is missing or incomplete: a new run may just have replaced it.
func (c *Client) Definition(ctx context.Context, app string, r registry.AppRecord) (string, error) {
	if r.DefID == "" {
		return r.Def, nil
	}
	k := keysOf(app)
	var chunks [][]byte
	for {
		chunk, err := c.calls.raw(ctx, k.def(r.DefID, len(chunks)), byDefault)
		if err != nil {
			return "", err
		}
		if chunk == nil {
			return registry.JoinDef(r.DefID, chunks)
		}
		chunks = append(chunks, chunk)
	}
}
