//go:build sdks

package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/onejob-dev/onejob/sim"
)

// The client asks by the id that it was given until the response is neither queued nor
// in progress, as its vendor's documentation does.
func TestStockGoClientAsksForAResponseInTheBackground(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, key := range []string{"", "background-1"} {
		c := openai.NewClient(openAIOptions(question{BaseURL: "http://" + s.node.addr, Credential: s.key, Key: key})...)
		params := responses.ResponseNewParams{
			Model: "respond", Background: openai.Bool(true),
			Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("say hello. Order: bg" + key)},
		}
		begun, err := c.Responses.New(t.Context(), params)
		if err != nil || !strings.HasPrefix(begun.ID, "resp_") || !begun.Background || begun.OutputText() != "" {
			t.Fatalf("%+v, %v", begun, err)
		}
		made := begun
		for end := time.Now().Add(waitFor); made.Status == "queued" || made.Status == "in_progress"; time.Sleep(50 * time.Millisecond) {
			if made, err = c.Responses.Get(t.Context(), begun.ID, responses.ResponseGetParams{}); err != nil || time.Now().After(end) {
				t.Fatalf("%+v, %v", made, err)
			}
		}
		if made.Status != "completed" || made.OutputText() == "" || s.provider.Executions("bg"+key) != 1 {
			t.Errorf("it is %s with %q after %d executions", made.Status, made.OutputText(), s.provider.Executions("bg"+key))
		}
	}
}

func TestStockGoClientCancelsAResponseInTheBackground(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.provider.ScriptFor("cancelled", sim.MustParse("accepted=1m")...)
	c := openai.NewClient(openAIOptions(question{BaseURL: "http://" + s.node.addr, Credential: s.key})...)
	begun, err := c.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: "respond", Background: openai.Bool(true),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Order: cancelled")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Responses.Cancel(t.Context(), begun.ID); err != nil {
		t.Fatal(err)
	}
	if !eventually(waitFor, func() bool {
		got, err := c.Responses.Get(t.Context(), begun.ID, responses.ResponseGetParams{})
		return err == nil && got.Status == "cancelled"
	}) {
		t.Error("it is not cancelled")
	}
	_, err = c.Responses.Get(t.Context(), "resp_none", responses.ResponseGetParams{})
	if told := openAIError(err); told.Status != http.StatusNotFound {
		t.Errorf("%+v; want it not found", told)
	}
}
