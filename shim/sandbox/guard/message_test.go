package guard

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConstantsOfBothLanguagesAgree(t *testing.T) {
	header, err := os.ReadFile("src/guard.h")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#define GUARD_(\w+) (0x[0-9a-f]+|\d+)`).FindAllStringSubmatch(string(header), -1) {
		got[m[1]] = m[2]
	}
	want := map[string]string{"MAGIC": fmt.Sprintf("0x%x", uint64(magic))}
	for name, v := range map[string]int{
		"VERSION": Version, "FD_LIFELINE": fdLifeline, "FD_SOCKET": FDSocket, "TEXT": textSize, "FDS": mostFDs, "EXECS": MostExecs,
		"FLAG_USER": flagUser, "FLAG_CAPS": flagCaps, "FLAG_NO_NEW_PRIVS": flagNoNewPrivs, "FLAG_UMASK": flagUmask,
		"FLAG_TERMINAL": flagTerminal, "FLAG_LINGER": flagLinger, "FLAG_AWAITED": flagAwaited, "FLAG_STDIN": flagStdin, "FLAG_STDOUT": flagStdout, "EXIT_STARTER": exitStarter, "EXIT_UNKNOWN": exitUnknown, "LEFT_ENDED": leftEnded, "RING": remembered,
		"FILTER_MAX": filterMax,
		"IN_START":   int(Start), "IN_SIGNAL": int(Signal), "IN_KILL": int(Kill), "IN_FEED": int(Feed),
		"IN_EXEC": int(Exec), "IN_EXECSIG": int(ExecSig), "OUT_EXECED": int(Execed), "OUT_EXECEND": int(ExecEnd), "OUT_EXECERR": int(ExecErr),
		"IN_ADOPT": int(Adopt), "IN_FINISH": int(Finish), "IN_SWEEP": int(Sweep), "IN_EXECKILL": int(ExecKill), "IN_ENDED": int(Ended), "OUT_LINGERS": int(Lingers), "OUT_DONE": int(Done),
		"OUT_HELLO": int(Hello), "OUT_STARTED": int(Started), "OUT_EXITED": int(Exited), "OUT_EMPTY": int(Empty),
		"OUT_ERROR": int(Error), "OUT_STUCK": int(Stuck), "OUT_LOST": int(Lost), "OUT_DEADMAN": int(DeadMan),
	} {
		want[name] = fmt.Sprint(v)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("src/guard.h differs from message.go (-go +c):\n%s", diff)
	}
}

func TestMessageRoundTrip(t *testing.T) {
	want := Message{Kind: Stuck, Start: 7, A: -1, B: 1 << 40, C: 'D', Text: "python3"}
	got, err := Decode(want.Encode())
	if err != nil || got != want {
		t.Errorf("Decode(Encode) = %+v, %v; want %+v", got, err, want)
	}
	long, _ := Decode(Message{Kind: Error, Text: strings.Repeat("x", 500)}.Encode())
	if len(long.Text) != textSize-1 {
		t.Errorf("long text: %d bytes, want %d", len(long.Text), textSize-1)
	}
	if _, err := Decode(make([]byte, 3)); err == nil {
		t.Error("a short message was decoded")
	}
}

func TestPayloadRefusesWhatCWouldReadWrongly(t *testing.T) {
	for _, p := range []Payload{
		{},
		{Argv: []string{"a\x00b"}},
		{Argv: []string{"a"}, Env: []string{"X=1\x002"}},
		{Argv: []string{"a"}, Dir: "/\x00"},
		{Argv: []string{"a"}, Filter: make([]byte, sockFilterSize-1)},
		{Argv: []string{"a"}, Filter: make([]byte, sockFilterSize*(filterMax+1))},
	} {
		if b, err := p.Encode(); err == nil {
			t.Errorf("Encode(%+v) = %d bytes, want an error", p, len(b))
		}
	}
}
