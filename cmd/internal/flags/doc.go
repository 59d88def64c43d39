// Package flags holds the flags that several verbs share: which APP and how it is changed, which registry and with what
// times, which Hadoop cluster and default filesystem, where the state of this host lies. Each type registers its flags,
// gives the value they stand for, and writes the same choices as arguments for an agent.
package flags
