package hdfs

import (
	"slices"
	"sync"
)

// The library writes blocks in a way of its own, and has no call to ask a NameNode for them. So muster asks in place of
// another request: it has the library change the mode of a file with an impossible name, and replaces that request on
// the connection. Greeting, protection, failover and the order of requests stay the library's.

// inPlace is the file that the library asks about. A NameNode that were asked about it would refuse: names begin with
// /.
const inPlace = "muster\x00question"

// question is one of ours.
type question struct {
	method   string
	message  []byte
	answered bool
	answer   []byte
}

// questions are those of one client, one at a time, and what its connections have seen of the library's own.
type questions struct {
	turn sync.Mutex // one request at a time

	mu      sync.Mutex
	now     *question
	writer  []byte  // the client's name in the last request that made a file
	created uint64  // the number of that file
	coded   bool    // its blocks are to be stripes
	key     []field // DataEncryptionKeyProto; nil: the cluster has none
}

func (q *questions) set(now *question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.now = now
}

// take gives the request that another stands for; nil: it stands for itself.
func (q *questions) take(method string, message []byte) *question {
	if method != "setPermission" || string(data(fields(message), 1)) != inPlace {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.now
}

// wrote notes the client that makes a file.
func (q *questions) wrote(message []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writer = slices.Clone(data(fields(message), 3))
}

// heard notes an answer to a request of ours, or of the library's.
func (q *questions) heard(method string, asked *question, message []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	inner := data(fields(message), 1)
	switch {
	case asked != nil:
		asked.answered, asked.answer = true, slices.Clone(message)
	case method == "create":
		const fileID, ecPolicy = 13, 17
		status := fields(inner)
		q.created, q.coded = number(status, fileID), data(status, ecPolicy) != nil
	case method == keyQuestion && inner != nil:
		q.key = fields(slices.Clone(inner))
	}
}

// keyQuestion asks for the key of a cluster that encrypts all data.
const keyQuestion = "getDataEncryptionKey"

// clusterKey is what the library greets DataNodes with.
func (q *questions) clusterKey() []field {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.key
}

// made is the client that made the last file, the file's number, and whether its blocks are striped.
func (q *questions) made() (writer []byte, file uint64, coded bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.writer, q.created, q.coded
}
