package consul

import (
	"bytes"
	"context"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// mostValues is how many bytes the values of one transaction may have together. Consul takes a body of 512 KB,
// in which they stand in base64 (4/3); what remains, 44,000 bytes, is for 128 operations and their keys.
const mostValues = 360_000

// fitDefinition makes an app's record fit into the transaction that writes it with its directive (T2, T15). A
// definition that does not goes ahead, in chunks named by its content: nobody reads them without a record that names
// them. there are the checks that they still stand when the record is written.
func (j *joining) fitDefinition(
	ctx context.Context, app registry.AppRecord, d registry.Directive,
) (_ registry.AppRecord, there []*api.TxnOp, err error) {
	const written = 2 // times that T2 writes the directive
	if len(encode(app))+written*len(encode(d)) <= mostValues {
		return app, nil, nil
	}
	def := app.Def
	app.Def, app.DefID = "", registry.DefID(def)
	for n, chunk := range registry.CutDef(def) {
		key := j.keys.def(app.DefID, n)
		index, err := j.calls.ensure(ctx, key, chunk)
		if err != nil {
			return app, nil, err
		}
		there = append(there, opIndex(key, index))
	}
	return app, there, nil
}

// ensure makes a key hold what its name says, and returns its index. The error is a *refusal when another
// writer was faster.
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

// Definition reads the packed definition that an app's record holds or names, checked against the name. The
// error is registry.ErrDefinitionDiffers when it is not there, or not whole: a new run may just have replaced it.
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
