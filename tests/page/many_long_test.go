//go:build long

package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/muster-agent/muster/tests/servers/ports"
)

const (
	manyApps      = 10_000
	manyInstances = 1_000
)

// pair is a key of Consul, with its value in base64.
type pair struct{ Key, Value string }

// consul asks the registry's HTTP API.
func consul(t *testing.T, method, url string, body, answer any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, url, got.Status)
	}
	if answer != nil {
		err = json.NewDecoder(got.Body).Decode(answer)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copies writes what the registry has of an app under other names, and its first member under other indexes.
func copies(t *testing.T, base, app string) {
	t.Helper()
	var pairs []pair
	consul(t, http.MethodGet, base+"/v1/kv/muster/"+app+"/?recurse", nil, &pairs)
	type set struct{ Verb, Key, Value string }
	var ops []map[string]set
	flush := func() {
		consul(t, http.MethodPut, base+"/v1/txn", ops, nil)
		ops = nil
	}
	add := func(key, value string) {
		ops = append(ops, map[string]set{"KV": {"set", key, value}})
		if len(ops) == 64 {
			flush()
		}
	}
	for i := range manyApps {
		for _, p := range pairs {
			add(strings.Replace(p.Key, "/"+app+"/", fmt.Sprintf("/many-%d/", i), 1), p.Value)
		}
	}
	for _, p := range pairs {
		key := strings.Replace(p.Key, "/"+app+"/", "/wide/", 1)
		add(key, p.Value)
		if head, ok := strings.CutSuffix(key, "/worker/0"); ok && strings.Contains(key, "/members/") {
			for i := 1; i < manyInstances; i++ {
				add(fmt.Sprintf("%s/worker/%d", head, i), p.Value)
			}
		}
	}
	if len(ops) > 0 {
		flush()
	}
}

// A page of 10,000 apps, and of an app with 1,000 instances: when the first rows are there, and how long a change
// takes from the registry to the screen.
func TestManyLong(t *testing.T) {
	l := newLab(t)
	run := l.start(0, "run", "run", "--registry", l.registry(), "--app-id", "one", "--state-dir", filepath.Join(l.dir, "one"),
		"--work-dir", filepath.Join(l.dir, "work"), "-n", "1", "--", "true")
	if !run.Ended(watchdog) || run.Code() != 0 {
		t.Fatalf("the run: %s", l.said("run"))
	}
	port := ports.Claim(t, 1)[0]
	address := strings.Split(l.consul.HTTPAddr, ":")
	l.forward(l.consul.HTTPAddr)
	base := "http://127.0.0.1:" + address[1]
	copies(t, base, "one")
	l.start(0, "ui", "ui", "--registry", l.registry(), "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--state-dir", filepath.Join(l.dir, "none"))
	await(t, "the link", func() bool { return linkLine.MatchString(l.said("ui")) })
	l.forward(fmt.Sprintf("127.0.0.1:%d", port))
	b := newBrowser(t)

	begun := time.Now()
	tell := func(what string) { t.Logf("%s: %s", what, time.Since(begun).Round(time.Millisecond)) }
	b.do("open", chromedp.Navigate(linkLine.FindString(l.said("ui"))))
	b.awaitText("tbody td", "many-")
	tell(fmt.Sprintf("%d apps, first look: link to rows", manyApps))
	begun = time.Now()
	b.do("again", chromedp.Reload())
	b.awaitText("tbody td", "many-")
	tell("again: load to rows")
	b.await("all of them", fmt.Sprintf(`document.querySelector(".tools .dim").textContent.includes("of %d")`, manyApps+2))
	var took float64
	b.do("filter", chromedp.Evaluate(`(() => {
		const filter = document.querySelector('input[type="search"]');
		const begun = performance.now();
		filter.value = "many-777";
		filter.dispatchEvent(new Event("input"));
		return performance.now() - begun;
	})()`, &took))
	t.Logf("filter of %d apps: %.0f ms", manyApps, took)
	b.awaitText("tbody td", "many-7775")
	b.do("sort", chromedp.Evaluate(`(() => {
		const filter = document.querySelector('input[type="search"]');
		filter.value = "";
		const begun = performance.now();
		document.querySelector("th button").click();
		return performance.now() - begun;
	})()`, &took))
	t.Logf("sort of %d apps, 500 rows drawn: %.0f ms", manyApps, took)

	begun = time.Now()
	consul(t, http.MethodDelete, base+"/v1/kv/muster/many-42/?recurse", nil, nil)
	b.await("one less", fmt.Sprintf(`document.querySelector(".tools .dim").textContent.includes("of %d")`, manyApps+1))
	tell("an app is forgotten: registry to screen")

	begun = time.Now()
	b.do("an app", chromedp.Navigate(fmt.Sprintf("http://127.0.0.1:%d/apps/wide", port)))
	b.awaitText("tbody td", "worker-0")
	tell(fmt.Sprintf("an app of %d instances: load to rows", manyInstances))
	b.await("how many", fmt.Sprintf(`[...document.querySelectorAll(".tools .dim")].some((one) => one.textContent.includes("of %d"))`, manyInstances))
	for _, e := range *b.errors {
		t.Errorf("the page's code: %s", e)
	}
}
