package plan

import (
	"path"
	"regexp"
	"strings"
)

// Stores are the schemes of URLs that data can be downloaded from. Other schemes can be planned, but not run.
func Stores() []string { return append(writable(), "http", "https") }

// writable are the schemes that data can be uploaded to.
func writable() []string { return []string{"file", "hdfs"} }

// StoreFolder is the folder in the work folder that is the default filesystem if nothing names one.
const StoreFolder = "store"

// DefaultStore is the default filesystem of a run without one: a folder that its instances on this host share.
const DefaultStore = "file:" + Work + "/" + StoreFolder

var schemeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

func schemeOf(url string) string {
	return strings.ToLower(strings.TrimSuffix(schemeForm.FindString(url), ":"))
}

// pathOf is the path of a URL: without scheme and host.
func pathOf(url string) string {
	rest := url[len(schemeForm.FindString(url)):]
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		_, p, _ := strings.Cut(after, "/")
		return "/" + p
	}
	return rest
}

// inFilesystem turns a path without a scheme into a URL of the filesystem with this URI; false: the filesystem cannot
// contain it. A URL stays unchanged.
//
// An absolute path counts from the top of the filesystem, as in Hadoop: below its host, or below its folder on this
// machine. It is a path of this machine where nobody has named a filesystem, and where it lies in that folder already.
func inFilesystem(uri, user, name string) (string, bool) {
	absolute := strings.HasPrefix(name, "/")
	switch scheme := schemeOf(uri); {
	case name == "":
		return "", false
	case schemeOf(name) != "":
		return name, true
	case scheme == "" || scheme == "file":
		inside, named := path.Clean(name), topOf(uri)
		there := named == "" || inside == named || strings.HasPrefix(inside, named+"/")
		folder := strings.TrimRight(pathOf(uri), "/")
		switch {
		case strings.HasPrefix(name, Work), absolute && there:
			return name, true
		case folder == "" || inside == ".." || strings.HasPrefix(inside, "../"): // it leaves the filesystem
			return "", false
		}
		return "file:" + path.Join(folder, inside), true
	case absolute:
		return topOf(uri) + name, true
	default: // Hadoop's home folder
		return strings.TrimSuffix(uri, pathOf(uri)) + path.Join("/user", user, name), true
	}
}

// topOf is what stands before an absolute path in the filesystem with this URI: its host, or its folder on this
// machine; nothing where absolute paths are this machine's.
func topOf(uri string) string {
	if scheme := schemeOf(uri); scheme != "" && scheme != "file" {
		return strings.TrimSuffix(uri, pathOf(uri))
	}
	if folder := strings.TrimRight(pathOf(uri), "/"); !strings.HasPrefix(folder, Work) {
		return folder
	}
	return ""
}

// commas splits a list at its commas, except at those in the braces of a pattern.
func commas(text string) []string {
	var parts []string
	depth, from := 0, 0
	cut := func(to int) {
		if part := strings.TrimSpace(text[from:to]); part != "" {
			parts = append(parts, part)
		}
		from = to + 1
	}
	for i, c := range text {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth <= 0:
			cut(i)
		}
	}
	cut(len(text))
	return parts
}
