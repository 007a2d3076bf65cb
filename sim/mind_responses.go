package sim

import (
	"net/http"
	"strings"
	"time"
)

type responseAnswer struct {
	ID          string            `json:"id"`
	Object      string            `json:"object"`
	CreatedAt   int64             `json:"created_at"` // Unix seconds
	Status      string            `json:"status"`
	Background  bool              `json:"background"`
	Error       *responsesError   `json:"error"`
	Incomplete  *responsesWhy     `json:"incomplete_details"`
	Model       string            `json:"model"`
	Output      []responseItem    `json:"output"`
	ServiceTier string            `json:"service_tier"`
	Usage       *responseUsage    `json:"usage"`
	Metadata    map[string]string `json:"metadata"`
}

type responseItem struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Status  string         `json:"status,omitempty"`
	Role    string         `json:"role,omitempty"`
	Content []responsePart `json:"content,omitempty"`
	Summary *[]struct{}    `json:"summary,omitempty"` // of reasoning

	CallID    string  `json:"call_id,omitempty"` // of the call of a function
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

type responsePart struct {
	Type        string      `json:"type"`
	Text        *string     `json:"text,omitempty"`
	Refusal     *string     `json:"refusal,omitempty"`
	Annotations *[]struct{} `json:"annotations,omitempty"`
}

type responseUsage struct {
	Input        int            `json:"input_tokens"`
	InputDetails map[string]int `json:"input_tokens_details"`
	Output       int            `json:"output_tokens"`
	Details      map[string]int `json:"output_tokens_details"`
	Total        int            `json:"total_tokens"`
}

// tellResponse writes an answer as the responses API does.
func tellResponse(t *thought, id string, now time.Time) answer {
	if t.isError {
		return openAIFailure(failure{Status: http.StatusOK, Message: "The model is overloaded."})
	}
	a := t.response(id, now)
	if t.q.stream {
		return streamResponse(t, a)
	}
	return openAIJSON(a)
}

func (t *thought) response(id string, now time.Time) responseAnswer {
	id = t.idOr(id, responsePrefix)
	a := responseAnswer{
		ID: id, Object: "response", CreatedAt: now.Unix(), Status: "completed", Background: isTrue(t.q.body.Get("background")), Model: t.model,
		Output: t.responseItems(strings.TrimPrefix(id, responsePrefix)), ServiceTier: "default", Metadata: map[string]string{},
		Usage: &responseUsage{
			Input: t.in, InputDetails: map[string]int{"cached_tokens": 0}, Output: t.out, Details: map[string]int{"reasoning_tokens": t.reasoning}, Total: t.in + t.out,
		},
	}
	reason := map[finish]string{finishLength: "max_output_tokens", finishFilter: "content_filter"}[t.finish]
	if reason != "" {
		a.Status, a.Incomplete = "incomplete", &responsesWhy{reason}
		for i := range a.Output {
			a.Output[i].Status = "incomplete"
		}
	}
	return a
}

// responseItems is the output: what was reasoned, a message, calls.
func (t *thought) responseItems(of string) []responseItem {
	items := []responseItem{}
	if t.noChoices {
		return items
	}
	if t.reasoning > 0 {
		items = append(items, responseItem{ID: "rs_" + of, Type: "reasoning", Summary: &[]struct{}{}})
	}
	part := responsePart{Type: "output_text", Text: &t.text, Annotations: &[]struct{}{}}
	if t.refusal != "" {
		part = responsePart{Type: "refusal", Refusal: &t.refusal}
	}
	if t.text != "" || t.refusal != "" {
		items = append(items, responseItem{ID: "msg_" + of, Type: "message", Role: "assistant", Status: "completed", Content: []responsePart{part}})
	}
	for i, c := range t.calls {
		items = append(items, responseItem{ID: "fc_" + of, Type: "function_call", Status: "completed", CallID: c.id, Name: c.name, Arguments: &t.calls[i].text})
	}
	return items
}

// responseEvent is any event of a streamed response.
type responseEvent struct {
	Type      string          `json:"type"`
	Number    int             `json:"sequence_number"`
	Response  *responseAnswer `json:"response,omitempty"`
	ItemID    string          `json:"item_id,omitempty"`
	Output    *int            `json:"output_index,omitempty"`
	Content   *int            `json:"content_index,omitempty"`
	Item      *responseItem   `json:"item,omitempty"`
	Part      *responsePart   `json:"part,omitempty"`
	Delta     *string         `json:"delta,omitempty"`
	Text      *string         `json:"text,omitempty"`
	Refusal   *string         `json:"refusal,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
}

// responseStream numbers events.
type responseStream struct {
	stream
	t      *thought
	number int
}

func (s *responseStream) emit(e responseEvent) {
	e.Number = s.number
	s.number++
	s.event(e.Type, e)
}

// streamResponse writes the events of an answer.
func streamResponse(t *thought, whole responseAnswer) answer {
	s := responseStream{t: t}
	begun := whole
	begun.Status, begun.Output, begun.Usage, begun.Incomplete = "in_progress", []responseItem{}, nil, nil
	s.emit(responseEvent{Type: "response.created", Response: &begun})
	s.emit(responseEvent{Type: "response.in_progress", Response: &begun})
	for i, item := range whole.Output {
		open := item
		open.Content, open.Arguments = nil, nil
		if item.Status != "" {
			open.Status = "in_progress"
		}
		s.emit(responseEvent{Type: "response.output_item.added", Output: s.index(item, i), Item: &open})
		s.parts(item, i)
		s.emit(responseEvent{Type: "response.output_item.done", Output: s.index(item, i), Item: &item})
	}
	s.emit(responseEvent{Type: "response." + whole.Status, Response: &whole})
	a := s.answer()
	setOpenAIHeaders(a.Header)
	return a
}

// index is where an item stands, unless that is kept back.
func (s *responseStream) index(item responseItem, i int) *int {
	if s.t.noIndex && item.Type == "function_call" {
		return nil
	}
	return &i
}

// parts streams what is in an item.
func (s *responseStream) parts(item responseItem, i int) {
	if item.Arguments != nil {
		e := responseEvent{Type: "response.function_call_arguments.delta", ItemID: item.ID, Output: s.index(item, i)}
		if s.t.noIndex {
			e.ItemID = ""
		}
		s.deltas(e, *item.Arguments)
		e.Type, e.Arguments = "response.function_call_arguments.done", item.Arguments
		s.emit(e)
	}
	for j, part := range item.Content {
		of := responseEvent{ItemID: item.ID, Output: &i, Content: &j}
		added, done := of, of
		empty := part
		kind, text := "output_text", part.Text
		if part.Refusal != nil {
			kind, text = "refusal", part.Refusal
			empty.Refusal = new(string)
		} else {
			empty.Text = new(string)
		}
		added.Type, added.Part = "response.content_part.added", &empty
		s.emit(added)
		of.Type = "response." + kind + ".delta"
		s.deltas(of, *text)
		of.Type, of.Text, of.Refusal = "response."+kind+".done", part.Text, part.Refusal
		s.emit(of)
		done.Type, done.Part = "response.content_part.done", &part
		s.emit(done)
	}
}

func (s *responseStream) deltas(e responseEvent, text string) {
	for _, part := range pieces(text) {
		e.Delta = &part
		s.emit(e)
	}
}
