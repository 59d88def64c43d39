package slider

import (
	"bytes"

	"github.com/muster-agent/muster/appdef"
)

// deepest bounds the nesting of a document: the parsers recurse.
const deepest = appdef.DeepestJSON

// parseJSON reads JSON with comments and trailing commas. It answers nil when there is nothing to
// read on with; the document has the reason.
func (d *document) parseJSON(data []byte) *node {
	root, found := appdef.ReadJSON(d.file, data)
	*d.found = append(*d.found, found...)
	if root == nil {
		return nil
	}
	return fromJSON(root)
}

func line(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

func fromJSON(j *appdef.JSONNode) *node {
	n := &node{kind: kind(j.Kind), text: j.Text, line: j.Line}
	for _, m := range j.Members {
		n.members = append(n.members, member{name: m.Name, value: fromJSON(m.Value)})
	}
	for _, item := range j.Items {
		n.items = append(n.items, fromJSON(item))
	}
	return n
}
