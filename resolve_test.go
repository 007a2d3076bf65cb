package onejob_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

func TestQuarantineRunsFromTheLastByteToTheLongestWork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                     string
		sendWithin, maxExecution time.Duration
		want                     time.Time
	}{
		{"Declared", 30 * time.Second, 10 * time.Minute, noon.Add(10*time.Minute + 30*time.Second)},
		{"NotDeclared", 30 * time.Second, 0, time.Time{}},
		{"Negative", 30 * time.Second, -time.Minute, time.Time{}},
		{"NothingOnTheWayOut", 0, time.Minute, noon.Add(time.Minute)},
	} {
		if got := onejob.QuarantineEnd(noon, tt.sendWithin, tt.maxExecution); !got.Equal(tt.want) {
			t.Errorf("%s: quarantine ends %s; want %s", tt.name, got, tt.want)
		}
	}
}

// ruling is one attempt to settle an attempt, and what comes of it.
type ruling struct {
	name   string
	effect onejob.Effect // empty: external
	state  onejob.AttemptState
	sendBy time.Time // zero: a minute ago
	until  time.Time // end of quarantine
	p      onejob.AttemptResolveParams
	code   onejob.Code // empty: allowed
	retry  time.Duration
	says   string
}

func checkRulings(t *testing.T, rulings []ruling) {
	t.Helper()
	for _, r := range rulings {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			job := &onejob.Job{ID: "job_1", Policy: onejob.Policy{Effect: onejob.EffectExternal}}
			if r.effect != "" {
				job.Policy.Effect = r.effect
			}
			a := onejob.Attempt{ID: "att_1", State: onejob.AttemptUnknown, SendBy: noon.Add(-time.Minute), QuarantineUntil: r.until}
			if r.state != "" {
				a.State = r.state
			}
			if !r.sendBy.IsZero() {
				a.SendBy = r.sendBy
			}
			err := onejob.CheckResolve(job, &a, &r.p, noon)
			if r.code == "" {
				if err != nil {
					t.Errorf("CheckResolve = %v; want nil", err)
				}
				return
			}
			e := wantError(t, err, r.code)
			if e.JobID != "job_1" || e.RetryAfter != r.retry || !strings.Contains(e.Message, r.says) {
				t.Errorf("job %q, retry after %s, %q; want job_1, %s, %q", e.JobID, e.RetryAfter, e.Message, r.retry, r.says)
			}
		})
	}
}

func says(o onejob.Outcome) onejob.AttemptResolveParams {
	p := onejob.AttemptResolveParams{ID: "att_1", Actor: "bob", Outcome: o, Evidence: "their dashboard"}
	if o == onejob.OutcomeSucceeded {
		p.Result = &onejob.Result{Body: []byte("null")}
	}
	return p
}

func TestARulingWaitsForTheEndOfQuarantine(t *testing.T) {
	t.Parallel()
	var rulings []ruling
	for _, o := range []onejob.Outcome{onejob.OutcomeNotExecuted, onejob.OutcomeExecutedFailed, onejob.OutcomeCancelled} {
		daring := says(o)
		daring.AcknowledgeRisk = true
		rulings = append(rulings, []ruling{
			{name: string(o) + "/Over", until: noon, p: says(o)},
			{name: string(o) + "/OneMoment", until: noon.Add(time.Nanosecond), p: says(o), code: onejob.CodeQuarantined, retry: time.Nanosecond},
			{name: string(o) + "/AnHour", until: noon.Add(time.Hour), p: says(o), code: onejob.CodeQuarantined, retry: time.Hour, says: "13:00:00Z"},
			{name: string(o) + "/ARiskTakenDoesNotShortenIt", until: noon.Add(time.Hour), p: daring, code: onejob.CodeQuarantined, retry: time.Hour},
			{name: string(o) + "/WithoutEndNobodyRulesByAbsence", p: says(o), code: onejob.CodeInvalidResolution, says: "acknowledge_risk"},
			{name: string(o) + "/WithoutEndAPersonMayTakeTheRisk", p: daring},
			{
				name: string(o) + "/ButNotWhileBytesMayLeave", sendBy: noon.Add(time.Second), p: daring,
				code: onejob.CodeQuarantined, retry: time.Second,
			},
		}...)
	}
	for _, o := range []onejob.Outcome{onejob.OutcomeSucceeded, onejob.OutcomeResultLost} {
		rulings = append(rulings, ruling{name: string(o) + "/ASuccessNeedNotWait", until: noon.Add(time.Hour), p: says(o)})
	}
	checkRulings(t, rulings)
}

func TestOnlyAnUnknownAttemptCanBeRuled(t *testing.T) {
	t.Parallel()
	var rulings []ruling
	for _, s := range onejob.AttemptStates() {
		code := onejob.CodeAttemptNotUnknown
		if s.Terminal() {
			code = onejob.CodeAttemptTerminal
		}
		if s == onejob.AttemptUnknown {
			code = ""
		}
		// What else is wrong with the ruling does not matter then.
		p := says(onejob.OutcomeNotExecuted)
		if s != onejob.AttemptUnknown {
			p.Evidence = ""
		}
		rulings = append(rulings, ruling{name: string(s), state: s, until: noon, p: p, code: code, says: string(s)})
	}
	rulings[2].says = ""
	checkRulings(t, rulings)
}

func TestARulingMustBeWhole(t *testing.T) {
	t.Parallel()
	without := func(o onejob.Outcome, change func(*onejob.AttemptResolveParams)) onejob.AttemptResolveParams {
		p := says(o)
		change(&p)
		return p
	}
	noEvidence := func(p *onejob.AttemptResolveParams) { p.Evidence = "" }
	noResult := func(p *onejob.AttemptResolveParams) { p.Result = nil }
	const invalid = onejob.CodeInvalidResolution
	rulings := []ruling{
		{name: "ASuccessNeedsItsResult", p: without(onejob.OutcomeSucceeded, noResult), code: invalid, says: "result is required"},
		{name: "ASuccessNeedsEvidence", p: without(onejob.OutcomeSucceeded, noEvidence), code: invalid, says: "evidence"},
		{name: "AFailureNeedsEvidence", until: noon, p: without(onejob.OutcomeNotExecuted, noEvidence), code: invalid, says: "evidence"},
		{name: "ALostResultNeedsEvidence", p: without(onejob.OutcomeResultLost, noEvidence), code: invalid, says: "evidence"},
		{name: "ALostResultNeedsAnEffect", effect: onejob.EffectNone, p: says(onejob.OutcomeResultLost), code: invalid, says: "executed_failed"},
		{name: "ALostResultOfAnIdempotentEffect", effect: onejob.EffectIdempotent, p: says(onejob.OutcomeResultLost)},
		{name: "AnEmptyOutcome", p: says(""), code: invalid},
	}
	for _, o := range []onejob.Outcome{onejob.OutcomeRefused, onejob.OutcomeContractViolation, onejob.OutcomeAccepted, onejob.OutcomeUnknown} {
		rulings = append(rulings, ruling{name: "NobodyRules/" + string(o), until: noon, p: says(o), code: invalid})
	}
	checkRulings(t, rulings)
}

func TestWhatARulingDoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outcome onejob.Outcome
		to      onejob.AttemptState
		next    onejob.Next
	}{
		{onejob.OutcomeSucceeded, onejob.AttemptSucceeded, ""}, // there is nothing to go on to
		{onejob.OutcomeResultLost, onejob.AttemptSucceeded, ""},
		{onejob.OutcomeNotExecuted, onejob.AttemptFailed, onejob.NextAgain},
		{onejob.OutcomeExecutedFailed, onejob.AttemptFailed, onejob.NextElsewhere},
		{onejob.OutcomeCancelled, onejob.AttemptCancelled, onejob.NextAgain},
	} {
		to, err := onejob.AttemptUnknown.Next(onejob.EventOfRuling(tt.outcome))
		if next := onejob.NextOfRuling(tt.outcome); err != nil || to != tt.to || (tt.next != "" && next != tt.next) {
			t.Errorf("a ruling %s makes the attempt %s (%v) and the job go on %s; want %s, %s", tt.outcome, to, err, next, tt.to, tt.next)
		}
	}
}
