package publisher

import "net/http"

type ping struct {
	Time int64  `json:"time"` // ms
	Text string `json:"text"`
	Verb string `json:"verb"`
	Body string `json:"body"`
}

type stopped struct {
	Verb string `json:"verb"`
	Text string `json:"text"`
}

func answerPing(q question) (answer, error) {
	return inJSON(ping{Time: millis(q.now), Verb: q.verb, Body: q.body, Text: "Ping verb " + q.verb + " received at " +
		date(q.now)})
}

// stop asks for the end of the whole app, as a user's stop would. Slider takes it by POST; TensorFlow's package asks by
// GET, because old Hadoop proxies pass nothing else on.
func stop(q question) (answer, error) {
	if err := q.stop("slider action/stop by " + q.verb); err != nil {
		return answer{}, &refusal{
			status: http.StatusServiceUnavailable, text: "stop: " + err.Error(),
			hint: "ask again; muster stop asks the same",
		}
	}
	return inJSON(stopped{Verb: q.verb, Text: "Stopping action " + q.verb + " received at " + date(q.now)})
}
