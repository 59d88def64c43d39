package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/view"
)

// Show prints what an app's instances use; "": what all apps do.
func Show(ctx context.Context, out io.Writer, k apps.Lookup, app string, json bool) error {
	s, err := look(ctx, k, app)
	switch {
	case err != nil:
		return err
	case json:
		return console.PrintJSON(out, s)
	}
	return s.print(out, console.Width(out))
}

// shown is what is used now.
type shown interface {
	print(out io.Writer, width int) error
}

func look(ctx context.Context, k apps.Lookup, app string) (shown, error) {
	if app == "" {
		return lookAtAll(ctx, k)
	}
	return lookAt(ctx, k, app)
}

// period is how often Watch draws.
const period = 2 * time.Second

// Watch draws on a terminal of rows lines until ctx ends.
func Watch(ctx context.Context, out io.Writer, k apps.Lookup, app string, size func() (width, rows int)) error {
	if _, err := io.WriteString(out, "\x1b[?1049h\x1b[?25l"); err != nil { // another screen, without a cursor
		return err
	}
	defer func() { _, _ = io.WriteString(out, "\x1b[?25h\x1b[?1049l") }() // the terminal may be gone
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		width, rows := size()
		s, err := look(ctx, k, app)
		if ctx.Err() != nil {
			return nil
		}
		var text bytes.Buffer
		if err == nil {
			err = s.print(console.Printable(&text), width) // hosts are strangers' words
		}
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, screen(text.String(), width, rows)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// screen is a text as it is drawn over the last one: what does not fit is left out.
func screen(text string, width, rows int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if rows > 0 && len(lines) > rows-1 {
		lines = append(lines[:max(rows-2, 0)], fmt.Sprintf("… %d more", len(lines)-rows+2))
	}
	for i, line := range lines {
		if all := []rune(line); width > 0 && len(all) > width {
			lines[i] = string(all[:width])
		}
	}
	return "\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\r\n\x1b[J"
}

const usual = 80 // columns

func (a all) print(out io.Writer, _ int) error {
	if len(a.Apps) == 0 {
		return console.Print(out, a.none+"\n")
	}
	var cells [][]string
	for _, r := range a.Apps {
		cells = append(cells, append([]string{r.App, r.Phase, strconv.Itoa(r.Live)}, r.cells()...))
	}
	head, cells := view.Filled("APP PHASE LIVE "+useHead, cells)
	return console.Table(out, head, cells)
}

func (o one) print(out io.Writer, width int) error {
	var cells [][]string
	gpus := false
	for _, r := range o.Instances {
		gpus = gpus || r.GPUs > 0
		cells = append(cells, append(append([]string{r.Instance, r.Phase}, r.cells()...), r.Host))
	}
	if gpus && width <= usual { // status has the hosts
		for i := range cells {
			cells[i][len(cells[i])-1] = ""
		}
	}
	title := fmt.Sprintf("%s: %s\n", o.App, o.Phase)
	if err := console.Print(out, title); err != nil || len(cells) == 0 {
		return err
	}
	head, cells := view.Filled("INSTANCE PHASE "+useHead+" HOST", cells)
	if err := console.Print(out, "\n"); err != nil {
		return err
	}
	return console.Table(out, head, cells)
}

const useHead = "MEMORY LIMIT CORES OF GPU GPU-MEMORY"

func (u use) cells() []string {
	c := make([]string, 6)
	if u.Memory != nil {
		c[0] = megabytes(*u.Memory)
	}
	if u.MemoryLimit > 0 {
		c[1] = megabytes(u.MemoryLimit)
	}
	if u.Cores != nil {
		c[2] = strconv.FormatFloat(*u.Cores, 'f', 2, 64)
	}
	if u.CoresLimit > 0 {
		c[3] = strconv.Itoa(u.CoresLimit)
	}
	if u.GPUUse != nil {
		c[4] = strconv.FormatFloat(*u.GPUUse, 'f', 0, 64) + " %"
	}
	if u.GPUMemory != nil {
		c[5] = megabytes(*u.GPUMemory)
	}
	return c
}

// megabytes are those of the definition's limits, 1024 * 1024 bytes.
func megabytes(n int64) string {
	mb := float64(n) / (1 << 20)
	if mb < 10_000 {
		return strconv.FormatFloat(mb, 'f', 0, 64) + " MB"
	}
	return strconv.FormatFloat(mb/1024, 'f', 1, 64) + " GB"
}
