package k8s

import (
	"bytes"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/muster-agent/muster/shim/render"
)

// yamlMap is a mapping of keys and values in turn; keys are strings, values nodes.
func yamlMap(pairs ...any) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		value, _ := pairs[i+1].(*yaml.Node)
		put(m, key, value)
	}
	return m
}

func put(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, yamlText(key), value)
}

// note puts a comment above a key.
func note(m *yaml.Node, key, text string) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i].HeadComment = "# " + render.OneLine(text)
		}
	}
}

func yamlList(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

// yamlText is a string, whatever it looks like: the encoder quotes what would be read as something else.
func yamlText(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

func yamlTexts(texts ...string) *yaml.Node {
	list := yamlList()
	for _, text := range texts {
		list.Content = append(list.Content, yamlText(text))
	}
	return list
}

func yamlNumber(n int) *yaml.Node { return plainNumber(strconv.Itoa(n)) }

func plainNumber(digits string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: digits}
}

func yamlNumbers(numbers []int) *yaml.Node {
	list := yamlList()
	list.Style = yaml.FlowStyle
	for _, n := range numbers {
		list.Content = append(list.Content, yamlNumber(n))
	}
	return list
}

func yamlBool(b bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(b)}
}

// yamlDocument is one document's text.
func yamlDocument(doc *yaml.Node) (string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return "", err
	}
	return b.String(), e.Close()
}
