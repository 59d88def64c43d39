// Package data brings an instance its inputs and leaves its outputs. The pure part says which file belongs to whom: a function of
// the order of the files, the number of readers and the turn of the reader.
package data
