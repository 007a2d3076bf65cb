package sim

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// dialect is the wire format of one sort of provider.
type dialect struct {
	idPrefix string

	// check says why the provider would refuse the request, or nothing.
	check func(r *http.Request, body []byte) string
	// success is the answer to work done.
	success func(work) answer
	// failure is an error in the dialect's own shape.
	failure func(failure) answer
	// progress is what a look-up says of accepted work that is queued, in_progress or
	// cancelled.
	progress func(id, status string, created time.Time) answer
	// background reports whether the request asks for work that goes on without a
	// connection. Nil: it cannot.
	background func(body []byte) bool

	// ask reads what a model is asked, and say writes what one with a mind answers.
	// Nil: there are no models.
	ask func(body []byte) (*question, *failure)
	say func(t *thought, id string, now time.Time) answer
	// counts: it is asked only how long a request is.
	counts bool
}

// work is one execution, seen by the writer of its answer.
type work struct {
	ID       string
	Now      time.Time
	Body     []byte
	Ends     End
	Provider *Provider
}

// failure is one error, seen by the writer of its answer.
type failure struct {
	Status  int
	Code    string // empty: the usual one for the status
	Message string
	ID      string // of the work that failed; empty if none began
	Param   string // that is wrong; empty: none in particular
}

// dialectOf tells the dialect by the end of the path, so that base paths do not
// matter.
func dialectOf(path string) dialect {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return openAI
	case strings.HasSuffix(path, responsesPath) || strings.Contains(path, responsesPath+"/"):
		return responses
	case strings.HasSuffix(path, "/v1/messages"):
		return anthropic
	case strings.HasSuffix(path, imagesPath):
		return images
	default:
		return plain
	}
}

// lookUp answers a GET: the charge whose id or reference ends the path, or with
// ?intent=k the charges of that intent.
func (c *call) lookUp() answer {
	if a, asked := c.lookUpModel(); asked {
		return a
	}
	if intents, found := c.r.URL.Query()["intent"]; found {
		list := []json.RawMessage{}
		for _, ch := range c.p.ledger.chargesOf(intents[0]) {
			list = append(list, ch.state(c.dialect, c.p.now()).Body)
		}
		return jsonAnswer(http.StatusOK, map[string]any{"data": list})
	}
	id := c.entry.Path[strings.LastIndex(c.entry.Path, "/")+1:]
	ch, found := c.p.ledger.charge(id)
	if !found {
		return c.dialect.failure(failure{Status: http.StatusNotFound, Message: "there is no such charge"})
	}
	return ch.state(c.dialect, c.p.now())
}

// plainProgress tells of accepted work in the words of most providers.
func plainProgress(id, status string, _ time.Time) answer {
	if status != "cancelled" {
		status = "processing"
	}
	return jsonAnswer(http.StatusOK, map[string]string{"id": id, "status": status})
}

// jsonAnswer encodes v, which must be made of plain structs, maps and valid raw JSON.
func jsonAnswer(status int, v any) answer {
	body, err := json.Marshal(v)
	if err != nil {
		return answer{http.StatusInternalServerError, jsonHeader(), []byte(`{"error":"sim: the answer does not encode"}`)}
	}
	return answer{status, jsonHeader(), body}
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// requestID is a random id of the sort that providers put into their headers.
func requestID() string { return "req_" + rand.Text()[:20] }

// tokens is a rough count, as bills are made of.
func tokens(text string) int { return len(text)/4 + 1 }

// message is one message of a chat, in the form that both chat dialects share.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a string, or a list of parts
}

// text joins the text of a message's parts.
func (m message) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(m.Content, &parts) // no text in it: an empty prompt
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(part.Text)
	}
	return all.String()
}

// chat is what both chat dialects ask.
type chat struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
}

// prompt is the text of the last message.
func (c chat) prompt() string {
	if len(c.Messages) == 0 {
		return ""
	}
	return c.Messages[len(c.Messages)-1].text()
}

// complaint is what is wrong with a chat in either dialect.
func (c chat) complaint(err error) string {
	switch {
	case err != nil:
		return "the body is not a JSON object of this API: " + err.Error()
	case c.Model == "":
		return "you must provide a model parameter"
	case len(c.Messages) == 0:
		return "messages: at least one message is required"
	case c.Stream:
		return "stream: sim does not stream"
	}
	return ""
}

func parseChat(body []byte) (chat, error) {
	var c chat
	err := json.Unmarshal(body, &c)
	return c, err
}
