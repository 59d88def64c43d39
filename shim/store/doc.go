// Package store says what a store of files is: one interface for packages, data and checkpoints alike, with the errors,
// retries and URLs that all stores share. The stores themselves are behind it: file/ (this machine), web/ (http, for
// reading) and hdfs/; schemes/ is the table of them, cache/ brings a file of any store to this machine once, and
// storetest/ is the suite that each of them passes.
//
// It owns nothing but the retries of Put. It promises that errors are *Error and say what would do, that Transient
// tells what may pass, and that no password of a URL is printed. Callers open URLs by a Set; tests make one of their
// own.
package store
