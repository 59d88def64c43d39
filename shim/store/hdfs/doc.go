// Package hdfs is the store of HDFS: files of a cluster by Hadoop's own protocols, over colinmarc/hdfs. A URL, a folder
// of Hadoop's configuration and an identity go in; a store.Store comes out, whose errors name the remedy.
//
//	hdfs://NAMESERVICE/PATH   the NameNodes that hdfs-site.xml names for it: the one that is active answers
//	hdfs://HOST[:PORT]/PATH   that NameNode
//	hdfs:///PATH              the cluster of fs.defaultFS
//
// Each call, and each open file, has a connection to a NameNode of its own: to cancel the call is to cut the
// connection. Connections are bounded for each cluster and user, kept for a few seconds, and shared by all stores of
// the process.
//
// What was read has been compared with the checksums that HDFS keeps; what was written has been compared with them once
// the file was complete. A NameNode that is not active, or in safe mode, is waited for. A DataNode that is lost while a
// file is read is replaced by one that has the same block; one that is lost while a file is written ends the writing
// with store.ErrUnreachable, and who writes begins again: the next pipeline is asked for without it.
package hdfs
