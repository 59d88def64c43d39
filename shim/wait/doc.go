// Package wait asks again and again until something is so or the context ends. It starts no goroutine.
package wait
