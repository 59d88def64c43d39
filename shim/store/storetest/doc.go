// Package storetest is the suite that every store must pass: this host's files and a real HDFS pass the same one.
//
// It owns the folder that a test gives it. A new store calls it from its tests; no product code does.
package storetest
