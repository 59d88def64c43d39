package flags

import (
	"net/url"
	"os"
	"strings"
)

// Page is where the cluster's page, whose address is in MUSTER_UI, shows an app; "": there is none, or that is no URL.
func Page(app string) string {
	base, err := url.Parse(os.Getenv("MUSTER_UI"))
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return ""
	}
	return strings.TrimSuffix(base.String(), "/") + "/apps/" + url.PathEscape(app)
}
