package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// maxBatchItems bounds how many intents one request may carry.
const maxBatchItems = 1000

// BatchRequest is many intents.
type BatchRequest struct {
	Items []BatchItem `json:"items" nullable:"false" maxItems:"1000"`
}

// BatchItem is one intent of a batch, with its own key.
type BatchItem struct {
	IdempotencyKey string `json:"idempotency_key" minLength:"1" doc:"Read as the header Idempotency-Key is: a key in quotes is the key without them"`
	JobRequest
}

// BatchAnswer answers many intents, in their order.
type BatchAnswer struct {
	Items []BatchResult `json:"items" nullable:"false"`
}

// BatchResult answers one intent as POST /v1/jobs would have, but for the job's
// result: a thousand of them would make one answer.
type BatchResult struct {
	Status  int      `json:"status"`
	Job     *Job     `json:"job,omitzero" doc:"Without its result, as in lists"`
	Problem *Problem `json:"problem,omitzero"`
}

// submitBatch serves POST /v1/jobs:batch. Each item is judged by itself, its
// syntax included.
func (a *api) submitBatch(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	items, err := splitItems(body)
	if err != nil {
		return err
	}
	results := a.submitItems(r, items)
	encoded := make([][]byte, len(results))
	for i := range results {
		if encoded[i], err = encodeResult(&results[i]); err != nil {
			return err
		}
	}
	writeItems(w, encoded, "")
	return nil
}

func (a *api) submitItems(r *http.Request, items []jsontext.Value) []onejob.SubmitResult {
	owner, trace := exchangeOf(r).caller.owner, traceparent(r.Header)
	results := make([]onejob.SubmitResult, len(items))
	var params []onejob.SubmitParams
	var index []int // of each of params among items
	for i, raw := range items {
		var item BatchItem
		key, err := readItem(raw, &item)
		if err != nil {
			results[i].Err = err
			continue
		}
		params = append(params, item.params(owner, key, trace))
		index = append(index, i)
	}
	if len(params) == 0 {
		return results
	}
	for n, result := range a.client.SubmitBatch(r.Context(), params) {
		results[index[n]] = result
		a.observeSubmit(params[n].Kind, result.Existed, result.Err)
	}
	return results
}

func readItem(raw []byte, item *BatchItem) (key string, err error) {
	if err := decode(raw, item); err != nil {
		return "", err
	}
	if key, err = checkKey(item.IdempotencyKey); err != nil {
		return "", err
	}
	return key, item.check()
}

// splitItems parts {"items": […]} without looking into the items: one that is
// malformed must not fail its neighbours.
func splitItems(body []byte) ([]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := expect(dec, "{", "items", "["); err != nil {
		return nil, err
	}
	var items []jsontext.Value
	for dec.PeekKind() != ']' {
		if len(items) == maxBatchItems {
			return nil, &onejob.Error{Code: onejob.CodeInvalidRequest, Message: fmt.Sprintf("there are more than %d items", maxBatchItems)}
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, notABatch(err)
		}
		items = append(items, raw.Clone())
	}
	if err := expect(dec, "]", "}"); err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, notABatch(err)
	}
	return items, nil
}

// expect reads the tokens named and nothing else.
func expect(dec *jsontext.Decoder, tokens ...string) error {
	for _, want := range tokens {
		tok, err := dec.ReadToken()
		if err != nil || tok.String() != want {
			return notABatch(err)
		}
	}
	return nil
}

func notABatch(cause error) error {
	return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: `the body is not {"items": […]}`, Err: cause}
}

func encodeResult(result *onejob.SubmitResult) ([]byte, error) {
	status, name := 0, "job"
	var value []byte
	var err error
	if result.Err != nil {
		p, _ := problemOf(result.Err)
		status, name = p.Status, "problem"
		value, err = encode(p)
	} else {
		status = statusOf(result.Job)
		value, err = encode(jobOf(result.Job))
	}
	if err != nil {
		return nil, err
	}
	item := append(make([]byte, 0, len(value)+32), `{"status":`...)
	item = strconv.AppendInt(item, int64(status), 10)
	item = append(item, `,"`+name+`":`...)
	return append(append(item, value...), '}'), nil
}

func submitBatchDoc() operation {
	return operation{
		id: "submitBatch", summary: "Record many intents",
		description: "Each item is judged by itself; of two with the same key the first wins. Jobs come without their results, as in lists.",
		body:        BatchRequest{},
		answers:     []answer{{status: 200, says: "One entry an item, in their order", body: BatchAnswer{}}},
		problems:    []onejob.Code{onejob.CodeInvalidRequest, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia},
	}
}
