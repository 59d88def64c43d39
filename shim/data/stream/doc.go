// Package stream feeds a process the records of its inputs. It divides files into splits, assigns each reader its
// share, and writes the records of a split: lines, numbers of lines, whole files, or the values of Hadoop's sequence
// files, decompressed. Every record goes to exactly one reader, wherever a split is cut.
//
// It owns the cache of later epochs, which has no name and ends with its owner. It promises to read no more than its
// buffers ahead of the process, and to resume a broken connection at the byte where it broke. It knows neither plans
// nor stores beyond what a Reading gives it. shim/data/manager calls it.
package stream
