package appdef

import "slices"

// Keys lists all settings, in the order of the manual.
func Keys() []Key { return keys() }

func keys() keyTable {
	return slices.Concat(shapeKeys(), restartKeys(), endKeys(), checkpointKeys(), timeKeys(), dialectKeys(),
		commandKeys(), surroundingKeys(), pythonKeys(), fileKeys(), inputKeys(), streamKeys(), outputKeys(),
		deviceKeys(), amountKeys(), hostKeys())
}

// keyTable is the result of keys, made once per use.
type keyTable []Key

// of finds the key or the family that a name belongs to.
func (t keyTable) of(name string) (Key, bool) {
	if i := slices.IndexFunc(t, func(k Key) bool { return k.matches(name) }); i >= 0 {
		return t[i], true
	}
	return Key{}, false
}

func (t keyTable) names() []string {
	names := make([]string, len(t))
	for i, k := range t {
		names[i] = k.Name
	}
	return names
}
