// Package hadoop says how this host reaches a Hadoop cluster: which configuration, as whom (Login), which default
// filesystem (DefaultFS), and what there is of Hadoop and Java for a process that uses them itself (Facts).
//
// It reads files of the host and connects to nothing; shim/store/hdfs does that with the Config that Login gives. It
// owns no state.
//
// Callers: openapp (an APP on HDFS), the agent, and the verbs plan, doctor, submit and package.
package hadoop
