// Package stage brings a process what it reads and takes away what it leaves.
//
// What enters are paths on stores and a folder that is open already; what leaves is files, each under its own name only when
// it is whole. Which file is whose is a function of the files' order, the number of readers and the reader's turn; the
// package knows no clock, and no plan beyond the parts about data.
package stage
