package appdef

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A value of a global section is repeated in the section of every component, and again in the settings. gzip finds such
// a repeat only within 32 KB. So a packed definition holds a long text that occurs more than once in a list of its own,
// under textsKey, and NUL with the text's number in each of its places. Other strings that begin with NUL get a second
// one.
const (
	textsKey = "texts"
	longText = 1 << 10 // bytes
	textMark = "\x00"
)

// fold moves the long texts that a definition repeats into its list of texts. Without any it changes nothing.
func fold(tree map[string]any) {
	seen := map[string]int{}
	eachText(tree, func(s string) string {
		if len(s) >= longText {
			seen[s]++
		}
		return s
	})
	number := map[string]int{}
	texts := []any{}
	repeated := func(s string) bool { return seen[s] > 1 }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), repeated) {
		return
	}
	eachText(tree, func(s string) string {
		switch {
		case repeated(s):
			if _, known := number[s]; !known {
				number[s] = len(texts)
				texts = append(texts, s)
			}
			return textMark + strconv.Itoa(number[s])
		case strings.HasPrefix(s, textMark):
			return textMark + s
		}
		return s
	})
	tree[textsKey] = texts
}

// unfold reverses fold on the JSON of a definition. The result has at most limit bytes of texts from the list.
func unfold(text []byte, limit int) ([]byte, error) {
	var list struct {
		Texts []string `json:"texts"`
	}
	if err := decode(text, &list); err != nil || list.Texts == nil {
		return text, err
	}
	var tree map[string]any
	if err := decode(text, &tree); err != nil {
		return nil, err
	}
	delete(tree, textsKey)
	var bad error
	eachText(tree, func(s string) string {
		mark, ok := strings.CutPrefix(s, textMark)
		if !ok || strings.HasPrefix(mark, textMark) {
			return mark
		}
		n, err := strconv.Atoi(mark)
		switch {
		case err != nil || n < 0 || n >= len(list.Texts):
			bad = fmt.Errorf("no text %q among %d", mark, len(list.Texts))
			return ""
		case len(list.Texts[n]) > limit:
			bad = errors.New("its texts are too long")
			return ""
		}
		limit -= len(list.Texts[n])
		return list.Texts[n]
	})
	if bad != nil {
		return nil, bad
	}
	return json.Marshal(tree)
}

// eachText replaces every string value of a tree of JSON, in the order of the keys.
func eachText(v any, by func(string) string) any {
	switch v := v.(type) {
	case string:
		return by(v)
	case []any:
		for i := range v {
			v[i] = eachText(v[i], by)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = eachText(v[key], by)
		}
	}
	return v
}
