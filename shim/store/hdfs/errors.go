package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/muster-agent/muster/shim/store"
)

// Conditions of a cluster, beside those of packages fetch and io/fs. All of them reach a caller inside a *store.Error.
var (
	ErrSafeMode = fmt.Errorf("%w: the cluster is in safe mode", store.ErrUnreachable)
	errStandby  = fmt.Errorf("%w: none of its NameNodes is active", store.ErrUnreachable)
	errBusy     = errors.New("another writer has it open")
	errNoNodes  = fmt.Errorf("%w: no DataNode takes a block of it", store.ErrNoSpace)
	// errLeftOut is that there are DataNodes, and all of them were left out because they were not reached.
	errLeftOut = fmt.Errorf("%w: none of the DataNodes", store.ErrUnreachable)
)

// Errors of a file that is being written; its writer may write it again.
var (
	errNotYet = fmt.Errorf("%w: the last block has arrived on no DataNode", store.ErrUnreachable)
	errLease  = fmt.Errorf("%w: it is kept for this one no more", errBusy)
)

// leftOutForm is the NameNode's message for that.
var leftOutForm = regexp.MustCompile(`There are (\d+) datanode\(s\) running and (\d+) node\(s\) are excluded`)

// allLeftOut tells that the writer has excluded all DataNodes that there are.
func allLeftOut(text string) bool {
	counts := leftOutForm.FindStringSubmatch(text)
	if counts == nil {
		return false
	}
	running, err := strconv.Atoi(counts[1])
	excluded, other := strconv.Atoi(counts[2])
	return errors.Join(err, other) == nil && excluded > 0 && running <= excluded
}

// Errors of the library that have no type, by their text.
const (
	noNameNodes  = "no available namenodes"
	standbyClass = "StandbyException"
	badChecksum  = "invalid checksum"
)

// remote is what a NameNode answered.
func remote(err error) (refusal, bool) {
	var said client.Error
	if !errors.As(err, &said) {
		return refusal{}, false
	}
	return refusal{said.Exception(), firstLine(said.Message())}, true
}

// meaning turns an error of the library into a sentinel; said is the NameNode's answer, if the library has dropped it.
func meaning(err error, said refusal) error {
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*store.Error](err); told {
		return err
	}
	if _, lost := errors.AsType[*nodeError](err); lost {
		return err
	}
	if from, ok := remote(err); ok {
		said = from
	}
	text := err.Error()
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case strings.Contains(text, noNameNodes):
		return noNode(text, said)
	case errors.Is(err, os.ErrNotExist):
		return fs.ErrNotExist
	case errors.Is(err, os.ErrPermission):
		return denied(said)
	case errors.Is(err, syscall.ENOTEMPTY): // which is an os.ErrExist, too
		return syscall.ENOTEMPTY
	case errors.Is(err, os.ErrExist):
		if strings.HasSuffix(said.exception, "AlreadyBeingCreatedException") {
			return fmt.Errorf("%w: %w: %s", fs.ErrExist, errBusy, said.message)
		}
		return fs.ErrExist
	case strings.Contains(text, badChecksum):
		return fmt.Errorf("%w: what came does not match the checksum that HDFS keeps", store.ErrCorrupt)
	case strings.Contains(text, "ERROR_ACCESS_TOKEN"), strings.Contains(text, "InvalidEncryptionKey"):
		return fmt.Errorf("%w: a DataNode's pass has ended: %s", store.ErrUnreachable, firstLine(text))
	}
	if said.exception != "" {
		return condition(said)
	}
	for _, broken := range []string{
		"no available datanodes", "No available datanodes", "read failed", "write failed", "Ack error",
		"unexpected sequence number", "invalid ack sequence", "invalid response",
	} {
		if strings.Contains(text, broken) {
			return fmt.Errorf("%w: %s", store.ErrUnreachable, firstLine(text))
		}
	}
	return err
}

// noNode is that no NameNode answered.
func noNode(text string, said refusal) error {
	_, why, _ := strings.Cut(text, noNameNodes+": ")
	switch {
	case said.exception == invalidToken: // of a pair, the other one may have been asked after that
		return refused(newToken, "%s", said.message)
	case strings.Contains(text, standbyClass):
		return errStandby
	case strings.Contains(text, "no such host"):
		return unknownHost{firstLine(why)}
	case strings.Contains(text, rpcProtection):
		return refused(
			"set "+rpcProtection+" alike for the NameNodes and in the configuration that --hadoop-conf names; if "+
				"they are, somebody sits between",
			"%s", firstLine(why),
		)
	case strings.Contains(text, "delegation token of "):
		return refused(newToken, "%s", firstLine(why))
	case strings.Contains(text, "kerberos authentication not supported"):
		return &store.Error{
			Err:  fmt.Errorf("%w: the NameNode knows no Kerberos", ErrKerberos),
			Hint: "check hadoop.security.authentication",
		}
	case strings.Contains(text, "SASL handshake"), strings.Contains(text, "KRB"), strings.Contains(text, "KDC"):
		if said.message != "" {
			why += ": " + said.message
		}
		return explainKerberos(errors.New(why), "", "")
	}
	return awayError{firstLine(why)}
}

// unknownHost is a host name that does not resolve: it is not tried again.
type unknownHost struct{ why string }

func (e unknownHost) Error() string { return "not reached: " + e.why }

func (e unknownHost) Unwrap() []error {
	return []error{store.ErrUnreachable, &net.DNSError{Err: e.why, IsNotFound: true}}
}

// awayError is that none of the NameNodes was reached.
type awayError struct{ why string }

func (e awayError) Error() string { return "not reached: " + e.why }

func (e awayError) Unwrap() error { return store.ErrUnreachable }

// denied is what a cluster does not let us do.
func denied(said refusal) error {
	// SIMPLE authentication is not enabled. Available:[TOKEN, KERBEROS]
	if strings.Contains(said.message, "is not enabled") {
		return &store.Error{
			Err: fmt.Errorf("%w: %s", ErrKerberos, said.message),
			Hint: "give the agent the cluster's own configuration by --hadoop-conf: hadoop.security.authentication " +
				"is kerberos there",
		}
	}
	if said.message == "" {
		return fs.ErrPermission
	}
	return fmt.Errorf("%w: %s", fs.ErrPermission, strings.TrimPrefix(said.message, "Permission denied: "))
}

// condition is what an exception of Java's means here.
func condition(said refusal) error {
	_, class, _ := cutLast(said.exception, ".")
	text := said.message
	switch class {
	case "NSQuotaExceededException":
		return &store.Error{
			Err:  fmt.Errorf("%w: %s", store.ErrQuota, text),
			Hint: "remove files or folders below it, or ask for a larger quota of names: hdfs dfsadmin -setQuota",
		}
	case "DSQuotaExceededException", "QuotaByStorageTypeExceededException":
		return &store.Error{
			Err:  fmt.Errorf("%w: %s", store.ErrQuota, text),
			Hint: "remove files below it, or ask for a larger quota of space: hdfs dfsadmin -setSpaceQuota",
		}
	case "SafeModeException":
		return fmt.Errorf("%w: %s", ErrSafeMode, text)
	case standbyClass:
		return errStandby
	case "RetriableException":
		if strings.Contains(strings.ToLower(text), "safe mode") {
			return fmt.Errorf("%w: %s", ErrSafeMode, text)
		}
		return fmt.Errorf("%w: the NameNode asks to wait: %s", store.ErrUnreachable, text)
	case "NotReplicatedYetException":
		return fmt.Errorf("%w: %s", errNotYet, text)
	case "ServerTooBusyException":
		return fmt.Errorf("%w: the NameNode asks to wait: %s", store.ErrUnreachable, text)
	case "AlreadyBeingCreatedException", "RecoveryInProgressException":
		return &store.Error{
			Err: fmt.Errorf("%w: %s", errBusy, text), Hint: "wait until it is closed, or name another path",
		}
	case "LeaseExpiredException":
		return &store.Error{
			Err:  fmt.Errorf("%w: %s", errLease, text),
			Hint: "write it anew; if another writer has removed or taken it, name another path",
		}
	case "AccessControlException":
		return denied(said)
	case "FileNotFoundException":
		return fs.ErrNotExist
	case "FileAlreadyExistsException":
		return fs.ErrExist
	case "ParentNotDirectoryException", "PathIsNotDirectoryException":
		return &store.Error{
			Err:  fmt.Errorf("%w: %s", syscall.ENOTDIR, strings.TrimSuffix(text, " (is not a directory)")),
			Hint: "a file is where a folder must be: name another place",
		}
	case "UnknownCryptoProtocolVersionException", "UnknownCipherSuiteException":
		return notPlain("in an encrypted folder")
	case "UnresolvedLinkException":
		return fmt.Errorf("%w: %s", errors.ErrUnsupported, text)
	}
	switch {
	case strings.Contains(text, "could only be written to 0"), strings.Contains(text, "could only be replicated to 0"):
		if strings.Contains(text, "There are 0 datanode") {
			return fmt.Errorf("%w: no DataNode is there: %s", store.ErrUnreachable, text)
		}
		if allLeftOut(text) {
			return fmt.Errorf("%w: %s", errLeftOut, text)
		}
		return &store.Error{Err: fmt.Errorf("%w: %s", errNoNodes, text), Hint: noRoom}
	case strings.Contains(text, "is not empty"):
		return fmt.Errorf("%w: %s", syscall.ENOTEMPTY, text)
	}
	return fmt.Errorf("%s: %s", class, text)
}

func cutLast(text, sep string) (before, after string, found bool) {
	if at := strings.LastIndex(text, sep); at >= 0 {
		return text[:at], text[at+len(sep):], true
	}
	return "", text, false
}

const noRoom = "free space on the DataNodes, or start those that are away: hdfs dfsadmin -report shows them"

// hint is what would do about a condition.
func hint(err error) string {
	if lost, ok := errors.AsType[*nodeError](err); ok && errors.Is(lost.cause, errTookNone) ||
		errors.Is(err, errLeftOut) {
		return noRoom
	}
	switch {
	case errors.Is(err, ErrSafeMode):
		return "hdfs dfsadmin -safemode get shows it; a cluster leaves it by itself when its DataNodes are there"
	case errors.Is(err, errStandby):
		return "hdfs haadmin -getServiceState shows which is active; one must be"
	case errors.Is(err, fs.ErrPermission):
		return "let this user do it, or run as another: HADOOP_USER_NAME, with Kerberos the ticket"
	case errors.Is(err, fs.ErrNotExist):
		return "check the path"
	case errors.Is(err, errBusy):
		return "wait until it is closed, or name another path"
	case errors.Is(err, fs.ErrExist):
		return "remove it, or name another"
	case errors.Is(err, store.ErrCorrupt):
		return "hdfs fsck shows the block: all copies that are reached are damaged"
	case errors.Is(err, errors.ErrUnsupported):
		return "keep it in a folder that is neither encrypted nor erasure coded"
	case errors.Is(err, store.ErrUnreachable):
		return "check that the cluster is up, the network, and Hadoop's configuration"
	}
	return ""
}

// refusal is the answer of a NameNode that refuses.
type refusal struct{ exception, message string }

// firstLine is the message of a Java exception, without its stack.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	const most = 400
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return strings.TrimSpace(line)
}

// nodeError is a node that was lost, or never reached. The end of a connection is not the end of a file: the cause is
// part of the text, and not wrapped.
type nodeError struct {
	node, address string
	cause         error
}

func (e *nodeError) Error() string {
	cause := e.cause
	if errors.Is(cause, os.ErrDeadlineExceeded) {
		return fmt.Sprintf("%s %s: nothing came for its time", e.node, e.address)
	}
	if op, ok := errors.AsType[*net.OpError](cause); ok {
		cause = op.Err
	}
	return fmt.Sprintf("%s %s: %v", e.node, e.address, cause)
}

func (e *nodeError) Unwrap() error { return store.ErrUnreachable }

const (
	nameNode = "NameNode"
	dataNode = "DataNode"
)

// errTookNone is a DataNode that ends the connection instead of an answer. One whose disks are full does, or whose last
// gigabyte is begun (Hadoop: dfs.datanode.round-robin-volume-choosing-policy.additional-available-space), while the
// NameNode still names it.
var errTookNone = errors.New("it took no block and did not say why, as one does whose disks are full")

func notPlain(why string) error {
	err := fmt.Errorf("it is %s: %w", why, errors.ErrUnsupported)
	return &store.Error{Err: err, Hint: hint(err)}
}
