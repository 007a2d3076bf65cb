package sim

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// responses is the OpenAI responses API; only models with a mind stream. With "background": true
// in a request the answer is queued, and the work is looked up and cancelled by id.
var responses = dialect{
	idPrefix: responsePrefix, check: responsesCheck, success: responsesSuccess, failure: openAIFailure,
	progress: responsesProgress, background: responsesBackground, ask: askResponses, say: tellResponse,
}

// responsePrefix begins the id of a response.
const responsePrefix = "resp_"

// responsesPath holds the responses, below whatever base path.
const responsesPath = "/responses"

type responsesRequest struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"` // a string, or a list of messages
	Background bool            `json:"background"`
	Store      *bool           `json:"store"`
	Stream     bool            `json:"stream"`
}

type responsesAnswer struct {
	ID         string            `json:"id"`
	Object     string            `json:"object"`
	CreatedAt  int64             `json:"created_at"` // Unix seconds
	Status     string            `json:"status"`
	Background bool              `json:"background"`
	Error      *responsesError   `json:"error"`
	Incomplete *responsesWhy     `json:"incomplete_details"`
	Model      string            `json:"model"`
	Output     []responsesOutput `json:"output"`
	Usage      *responsesUsage   `json:"usage"`
}

type responsesError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type responsesWhy struct {
	Reason string `json:"reason"`
}

type responsesOutput struct {
	ID      string             `json:"id"`
	Type    string             `json:"type"`
	Role    string             `json:"role"`
	Status  string             `json:"status"`
	Content []responsesContent `json:"content"`
}

type responsesContent struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations"`
}

type responsesUsage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Total  int `json:"total_tokens"`
}

func parseResponses(body []byte) (responsesRequest, error) {
	var r responsesRequest
	err := json.Unmarshal(body, &r)
	return r, err
}

func responsesCheck(_ *http.Request, body []byte) string {
	r, err := parseResponses(body)
	switch {
	case err != nil:
		return "the body is not a JSON object of this API: " + err.Error()
	case r.Model == "":
		return "you must provide a model parameter"
	case len(r.Input) == 0:
		return "you must provide an input parameter"
	case r.Stream:
		return "stream: sim does not stream"
	case r.Background && r.Store != nil && !*r.Store:
		return "background responses must be stored"
	}
	return ""
}

func responsesBackground(body []byte) bool {
	r, err := parseResponses(body)
	return err == nil && r.Background
}

// prompt is the text of the input, or of its last message.
func (r responsesRequest) prompt() string {
	if text := (message{Content: r.Input}).text(); text != "" {
		return text
	}
	var messages []message
	_ = json.Unmarshal(r.Input, &messages) // no text in it: an empty prompt
	return chat{Messages: messages}.prompt()
}

func responsesSuccess(w work) answer {
	r, _ := parseResponses(w.Body) // has been checked
	text := w.Provider.reply(r.Model, r.prompt())
	in, out := tokens(string(w.Body)), tokens(text)
	a := responsesAnswer{
		ID: w.ID, Object: "response", CreatedAt: w.Now.Unix(), Status: "completed", Background: r.Background, Model: r.Model,
		Usage: &responsesUsage{Input: in, Output: out, Total: in + out},
		Output: []responsesOutput{{
			ID: "msg_" + strings.TrimPrefix(w.ID, responsePrefix), Type: "message", Role: "assistant", Status: "completed",
			Content: []responsesContent{{Type: "output_text", Text: text, Annotations: []struct{}{}}},
		}},
	}
	a.end(w.Ends)
	return responsesJSON(a)
}

// end makes a finished response end in another way.
func (a *responsesAnswer) end(ends End) {
	switch ends {
	case EndsFailed:
		a.Status, a.Error, a.Output = "failed", &responsesError{Code: "server_error", Message: "the work failed"}, []responsesOutput{}
	case EndsCancelled:
		a.Status, a.Output = "cancelled", []responsesOutput{}
	case EndsIncomplete:
		a.Status, a.Incomplete = "incomplete", &responsesWhy{Reason: "max_output_tokens"}
		a.Output[0].Status = "incomplete"
	case EndsCompleted:
	}
}

// responsesProgress is a response before its end.
func responsesProgress(id, status string, created time.Time) answer {
	return responsesJSON(responsesAnswer{
		ID: id, Object: "response", CreatedAt: created.Unix(), Status: status, Background: true, Output: []responsesOutput{},
	})
}

func responsesJSON(a responsesAnswer) answer {
	made := jsonAnswer(http.StatusOK, a)
	setOpenAIHeaders(made.Header)
	return made
}
