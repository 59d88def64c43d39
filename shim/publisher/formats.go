package publisher

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"slices"
	"strings"
)

// formats are the suffixes by which a configuration is asked for in another form.
var formats = []struct {
	suffix string
	print  func(publishedConfig) (answer, error)
}{
	{".json", printJSON},
	{".xml", printXML},
	{".properties", printProperties},
}

// printJSON gives the entries alone.
func printJSON(c publishedConfig) (answer, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(c.Entries); err != nil {
		return answer{}, err
	}
	return answer{contentType: typeJSON, body: b.Bytes()}, nil
}

type hadoopXML struct {
	XMLName    xml.Name         `xml:"configuration"`
	Properties []hadoopProperty `xml:"property"`
}

type hadoopProperty struct {
	Name  string `xml:"name"`
	Value string `xml:"value"`
}

// printXML gives Hadoop's form.
func printXML(c publishedConfig) (answer, error) {
	var doc hadoopXML
	for _, name := range slices.Sorted(maps.Keys(c.Entries)) {
		doc.Properties = append(doc.Properties, hadoopProperty{Name: name, Value: c.Entries[name]})
	}
	text, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return answer{}, err
	}
	return answer{contentType: "application/xml", body: []byte(xml.Header + string(text) + "\n")}, nil
}

// printProperties gives a file that java.util.Properties reads. Slider calls it XML, which it is not.
func printProperties(c publishedConfig) (answer, error) {
	var b strings.Builder
	if c.UpdatedTime != "" {
		b.WriteString("#" + c.UpdatedTime + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Entries)) {
		value := propertyEscapes.Replace(c.Entries[name])
		if strings.HasPrefix(value, " ") {
			value = `\` + value // else it is taken for the separator
		}
		b.WriteString(strings.ReplaceAll(propertyEscapes.Replace(name), " ", `\ `) + "=" + value + "\n")
	}
	return answer{contentType: "text/plain; charset=utf-8", body: []byte(b.String())}, nil
}

var propertyEscapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\f", `\f`, "=", `\=`, ":",
	`\:`, "#", `\#`, "!", `\!`)
