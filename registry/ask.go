package registry

// The kinds of an ask, with their args. stop: By is `stop` or `interrupt`; grace (seconds, optional), who (a person,
// optional), save (seconds, optional: all save before they stop, and the stop waits at most this long). flex: component
// → count. gone: instance, inc. save: none.
const (
	AskStop = "stop"
	AskFlex = "flex"
	AskGone = "gone"
	AskSave = "save"
)

// Ask is a client's request to the gang: stop, flex, save, gone.
type Ask struct {
	Kind  string            `json:"kind"`
	ID    string            `json:"id"`
	By    string            `json:"by"`
	Run   string            `json:"run,omitempty"` // that it is made to; empty: by a muster that did not say
	Gen   int               `json:"gen,omitempty"` // of the directive that was seen when it was made
	Args  map[string]string `json:"args,omitempty"`
	Later later             `json:"-"`
}
