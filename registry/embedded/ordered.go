package embedded

import (
	"iter"
	"slices"
	"strings"
)

// ordered maps keys to values and walks a prefix in the order of the keys. Adding or removing a key moves the tail of a
// slice of strings. For the ten thousand keys of a large gang that costs less than the JSON of one answer.
type ordered[V any] struct {
	values map[string]V
	keys   []string
}

func newOrdered[V any]() ordered[V] { return ordered[V]{values: map[string]V{}} }

func (o *ordered[V]) get(key string) (V, bool) {
	v, ok := o.values[key]
	return v, ok
}

func (o *ordered[V]) set(key string, v V) {
	if _, ok := o.values[key]; !ok {
		at, _ := slices.BinarySearch(o.keys, key)
		o.keys = slices.Insert(o.keys, at, key)
	}
	o.values[key] = v
}

func (o *ordered[V]) remove(key string) {
	if _, ok := o.values[key]; !ok {
		return
	}
	delete(o.values, key)
	at, _ := slices.BinarySearch(o.keys, key)
	o.keys = slices.Delete(o.keys, at, at+1)
}

// under walks all keys that begin with the prefix. The map must not change meanwhile.
func (o *ordered[V]) under(prefix string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		at, _ := slices.BinarySearch(o.keys, prefix)
		for _, key := range o.keys[at:] {
			if !strings.HasPrefix(key, prefix) || !yield(key, o.values[key]) {
				return
			}
		}
	}
}
