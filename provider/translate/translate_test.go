package translate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/translate"
)

// target is one that says what it is told to.
type target struct {
	answer onejob.Answer
	err    error

	got  onejob.Request
	read string
}

func (f *target) Call(_ context.Context, req onejob.Request) (onejob.Answer, error) {
	f.got = req
	return f.answer, f.err
}

func (f *target) Render(onejob.Prompt) (onejob.Rendered, error) { return onejob.Rendered{}, nil }

func (f *target) ReadOutput(body []byte) (onejob.Output, error) {
	f.read = string(body)
	return onejob.Output{}, nil
}

func (f *target) CountTokens(context.Context, []byte) (int, error) { return 7, nil }
func (f *target) Digest() string                                   { return "sha256:1" }
func (f *target) Close()                                           {}

// prober can also be asked.
type prober struct{ target }

func (*prober) Probe(context.Context, onejob.ProbeRequest) (onejob.ProbeAnswer, error) {
	return onejob.ProbeAnswer{Found: true}, nil
}
func (*prober) Cancel(context.Context, onejob.ProbeRequest) error { return nil }

func claude(t translate.Target) translate.Target {
	return translate.New(t, translate.Options{Speaks: translate.Messages, Kinds: []string{"chats"}, NowFunc: func() time.Time { return noon }})
}

const chatBody = `{"messages":[{"role":"user","content":"hi"}],"seed":1}`

func TestACallIsSentAndAnsweredInTheOtherAPI(t *testing.T) {
	t.Parallel()
	f := &target{answer: onejob.Answer{Body: []byte(answers[0].message), ContentType: "text/plain", Evidence: onejob.Evidence{DroppedParams: "user"}, Usage: []byte(`{"x":1}`)}}
	got, err := claude(f).Call(t.Context(), onejob.Request{Kind: "chats", Input: []byte(chatBody), ProviderKey: "k"})
	if err != nil || string(got.Body) != answers[0].completion || got.ContentType != "application/json" {
		t.Errorf("%s as %s, %v; want %s", got.Body, got.ContentType, err, answers[0].completion)
	}
	if want := `{"messages":[{"role":"user","content":"hi"}]}`; string(f.got.Input) != want || f.got.ProviderKey != "k" {
		t.Errorf("sent %s under %q; want %s", f.got.Input, f.got.ProviderKey, want)
	}
	if got.Evidence.DroppedParams != "seed,user" || string(got.Usage) != `{"x":1}` {
		t.Errorf("dropped %q, usage %s; want seed and user, and the provider's own usage", got.Evidence.DroppedParams, got.Usage)
	}
}

func TestWhatIsNotOfTheOtherAPIPassesAsItIs(t *testing.T) {
	t.Parallel()
	for _, req := range []onejob.Request{{Kind: "other"}, {Kind: "chats", Rendered: true}} {
		f := &target{answer: onejob.Answer{Body: []byte("as it is")}}
		req.Input = []byte(chatBody)
		got, err := claude(f).Call(t.Context(), req)
		if err != nil || string(got.Body) != "as it is" || string(f.got.Input) != chatBody {
			t.Errorf("%+v: sent %s, answered %s, %v", req, f.got.Input, got.Body, err)
		}
	}
}

func TestWhatCannotBeTranslatedIsNotSentAndForAnotherTarget(t *testing.T) {
	t.Parallel()
	f := &target{}
	_, err := claude(f).Call(t.Context(), onejob.Request{Kind: "chats", Input: []byte(`{"n":2}`)})
	var told *onejob.CallError
	if !errors.As(err, &told) || told.Proof != onejob.ErrNotSent || told.Next != onejob.NextElsewhere || told.Failure.Code != "input_refused" ||
		told.Failure.Message != `the member "n" cannot be translated: the other API has no place for it` {
		t.Errorf("%+v", err)
	}
	if f.got.Kind != "" {
		t.Error("it was sent")
	}
}

func TestARefusalOfATranslatedRequestSaysNothingOfTheCallers(t *testing.T) {
	t.Parallel()
	f := &target{err: &onejob.CallError{Proof: onejob.ErrRefused, Next: onejob.NextNowhere}}
	_, err := claude(f).Call(t.Context(), onejob.Request{Kind: "chats", Input: []byte(chatBody)})
	var told *onejob.CallError
	if !errors.As(err, &told) || told.Next != onejob.NextElsewhere || told.Evidence.DroppedParams != "seed" || told.Proof != onejob.ErrRefused {
		t.Errorf("%+v; want another target to be tried, and seed said to be dropped", told)
	}
	f.err = errors.ErrUnsupported
	if _, err := claude(f).Call(t.Context(), onejob.Request{Kind: "chats", Input: []byte(chatBody)}); err != errors.ErrUnsupported {
		t.Errorf("an error without proof became %v", err)
	}
}

func TestAnAnswerThatCannotBeSaidFailedOrIsLostByItsEffect(t *testing.T) {
	t.Parallel()
	f := &target{answer: onejob.Answer{Body: []byte(`{"type":"message","content":[{"type":"server_tool_use"}]}`)}}
	for effect, want := range map[onejob.Effect]onejob.Outcome{onejob.EffectNone: onejob.OutcomeExecutedFailed, "": onejob.OutcomeResultLost, onejob.EffectExternal: onejob.OutcomeResultLost} {
		got, err := claude(f).Call(t.Context(), onejob.Request{Kind: "chats", Effect: effect, Input: []byte(chatBody)})
		if err != nil || got.Outcome != want || got.Body != nil || got.Failure == nil || got.Failure.Code != "answer_unusable" {
			t.Errorf("%q: %+v, %v; want %s", effect, got, err, want)
		}
	}
	f.answer = onejob.Answer{Outcome: onejob.OutcomeExecutedFailed, Failure: &onejob.Failure{Code: "provider_failed"}}
	if got, err := claude(f).Call(t.Context(), onejob.Request{Kind: "chats", Input: []byte(chatBody)}); err != nil || got.Failure.Code != "provider_failed" {
		t.Errorf("a failure became %+v, %v", got, err)
	}
}

func TestAnswersAreReadInEitherAPI(t *testing.T) {
	t.Parallel()
	f := &target{}
	if _, err := claude(f).ReadOutput([]byte(answers[0].message)); err != nil || f.read != answers[0].message {
		t.Errorf("its own came as %s, %v", f.read, err)
	}
	want, err := translate.ToMessage([]byte(answers[0].completion))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claude(f).ReadOutput([]byte(answers[0].completion)); err != nil || f.read != string(want) {
		t.Errorf("the other's came as %s, %v; want %s", f.read, err, want)
	}
	gpt := translate.New(f, translate.Options{Speaks: translate.Chat, NowFunc: func() time.Time { return noon }})
	if _, err := gpt.ReadOutput([]byte(answers[1].message)); err != nil || f.read != answers[1].completion {
		t.Errorf("a message came as %s, %v; want %s", f.read, err, answers[1].completion)
	}
}

func TestATargetCanDoWhatItCouldBefore(t *testing.T) {
	t.Parallel()
	if _, able := claude(&target{}).(onejob.Prober); able {
		t.Error("a target that cannot be asked can")
	}
	asked, able := claude(&prober{}).(interface {
		onejob.Prober
		onejob.Canceller
	})
	if !able {
		t.Fatal("a target that can be asked cannot")
	}
	if found, err := asked.Probe(t.Context(), onejob.ProbeRequest{}); err != nil || !found.Found || asked.Cancel(t.Context(), onejob.ProbeRequest{}) != nil {
		t.Errorf("%+v, %v", found, err)
	}
	if n, err := claude(&target{}).CountTokens(t.Context(), nil); n != 7 || err != nil {
		t.Errorf("%d tokens, %v", n, err)
	}
}
