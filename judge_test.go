package onejob_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
)

// A request with another body met "in progress" while the first was under way
// (idempot-dev/idempot-js#191).
func TestARepeatIsJudgedByItsFingerprintFirst(t *testing.T) {
	t.Parallel()
	same, other := []byte("one intent"), []byte("another intent")
	byVersion := func(version int) ([]byte, error) {
		if version == 7 {
			return same, nil
		}
		return nil, errors.New("unknown version")
	}
	for _, tt := range []struct {
		name    string
		version int // of the stored fingerprint
		given   []byte
		purged  bool
		want    error
	}{
		{"TheSameIntentIsAReplay", 1, same, false, nil},
		{"AnotherIntentIsAConflict", 1, other, false, onejob.ErrKeyConflict},
		{"WithoutAPayloadItIsGone", 1, same, true, onejob.ErrKeyExpired},
		{"AConflictComesBeforeGone", 1, other, true, onejob.ErrKeyConflict},
		{"AnOlderVersionIsComparedByItsOwnAlgorithm", 7, other, false, nil},
		{"NoFingerprintIsAConflict", 1, nil, false, onejob.ErrKeyConflict},
	} {
		for _, state := range onejob.JobStates() {
			t.Run(tt.name+"/"+string(state), func(t *testing.T) {
				t.Parallel()
				job := &onejob.Job{ID: "job_1", State: state, Fingerprint: same, FingerprintVersion: tt.version}
				if tt.purged {
					job.PurgedAt = noon
				}
				err := onejob.JudgeRepeat(job, &onejob.JobCreateParams{Fingerprint: tt.given, FingerprintVersion: 1, FingerprintFunc: byVersion})
				if !errors.Is(err, tt.want) {
					t.Errorf("JudgeRepeat = %v; want %v", err, tt.want)
				}
			})
		}
	}
	t.Run("AVersionNobodyKnowsIsNoReplay", func(t *testing.T) {
		t.Parallel()
		job := &onejob.Job{ID: "job_1", Fingerprint: same, FingerprintVersion: 8}
		err := onejob.JudgeRepeat(job, &onejob.JobCreateParams{Fingerprint: same, FingerprintVersion: 1, FingerprintFunc: byVersion})
		if err == nil {
			t.Error("a fingerprint of another algorithm counts as the same")
		}
	})
}

func TestAConflictNeverTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	job := &onejob.Job{ID: "job_1", Fingerprint: []byte("one"), Kind: "charge", Target: "acme", Input: []byte("4711")}
	err := onejob.JudgeRepeat(job, &onejob.JobCreateParams{Fingerprint: []byte("two"), Kind: "draw", Input: []byte("4712")})
	e := wantError(t, err, onejob.CodeKeyConflict)
	if e.JobID != "job_1" {
		t.Errorf("the conflict names job %q; want job_1", e.JobID)
	}
	for _, secret := range []string{"charge", "acme", "471", "draw"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the conflict %q tells %q", err, secret)
		}
	}
}

func TestWhatMayBeSuperseded(t *testing.T) {
	t.Parallel()
	for _, s := range onejob.JobStates() {
		err := onejob.CheckSuperseded(&onejob.Job{ID: "job_1", State: s})
		if want := s.Terminal(); (err == nil) != want {
			t.Errorf("superseding a %s job: %v; want allowed %t", s, err, want)
		}
		if err != nil {
			wantCode(t, err, onejob.CodeAttemptUnresolved)
		}
	}
	loser := &onejob.Job{ID: "job_1", State: onejob.JobSucceeded, Attempts: tries(held("a", onejob.AttemptSucceeded), held("b", onejob.AttemptUnknown))}
	if e := wantError(t, onejob.CheckSuperseded(loser), onejob.CodeAttemptUnresolved); e.AttemptID != "att_2" {
		t.Errorf("the refusal names %q; want the attempt in doubt", e.AttemptID)
	}
	err := onejob.CheckSuperseded(&onejob.Job{ID: "job_1", State: onejob.JobFailed, SupersededBy: "job_2"})
	wantCode(t, err, onejob.CodeInvalidJob)
}

func TestARevisionIsCheckedOnlyWhenSaid(t *testing.T) {
	t.Parallel()
	job := &onejob.Job{ID: "job_1", Revision: 7}
	seen, old := int64(7), int64(6)
	if err := onejob.CheckRevision(job, nil); err != nil {
		t.Errorf("without a revision: %v", err)
	}
	if err := onejob.CheckRevision(job, &seen); err != nil {
		t.Errorf("at its revision: %v", err)
	}
	wantCode(t, onejob.CheckRevision(job, &old), onejob.CodeVersionMismatch)
}

func TestWhyAnAttemptThatSomebodyAskedForIsRefused(t *testing.T) {
	t.Parallel()
	candidates := []onejob.Candidate{{Target: "b", Reason: "expired"}}
	doubt := tries(failedOn("a", onejob.OutcomeRefused, onejob.NextElsewhere), held("b", onejob.AttemptUnknown))
	for _, tt := range []struct {
		name     string
		state    onejob.JobState
		attempts []onejob.Attempt
		d        onejob.Decision
		code     onejob.Code // empty: it may start
		reason   string
	}{
		{"ItMayStart", onejob.JobQueued, nil, onejob.Decision{Verb: onejob.Start, Target: "a"}, "", ""},
		{"TheJobIsTerminal", onejob.JobSucceeded, nil, onejob.Decision{Verb: onejob.Rest}, onejob.CodeJobTerminal, ""},
		{"TheJobIsTerminalWhateverIsDecided", onejob.JobFailed, nil, onejob.Decision{Verb: onejob.Start}, onejob.CodeJobTerminal, ""},
		{"TheJobIsAboutToEnd", onejob.JobQueued, nil, onejob.Decision{Verb: onejob.Finish, State: onejob.JobFailed}, onejob.CodeJobTerminal, ""},
		{"AnAttemptIsInDoubt", onejob.JobBlocked, doubt, onejob.Decision{Verb: onejob.Block, Reason: onejob.BlockAttemptUnknown}, onejob.CodeAttemptUnresolved, ""},
		{"NoCertificate", onejob.JobBlocked, nil, onejob.Decision{Verb: onejob.Block, Reason: onejob.BlockFailoverNotCertified, Candidates: candidates}, onejob.CodeFailoverNotCertified, "expired"},
		{"NoProof", onejob.JobBlocked, nil, onejob.Decision{Verb: onejob.Block, Reason: onejob.BlockFailoverUnproven}, onejob.CodeFailoverNotCertified, "failover_unproven"},
		{"NoSuchTarget", onejob.JobBlocked, nil, onejob.Decision{Verb: onejob.Block, Candidates: []onejob.Candidate{{Target: "x", Reason: onejob.GateUnknownTarget}}}, onejob.CodeInvalidJob, onejob.GateUnknownTarget},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := onejob.CheckAsked(&onejob.Job{ID: "job_1", State: tt.state, Attempts: tt.attempts}, tt.d)
			if tt.code == "" {
				if err != nil {
					t.Errorf("CheckAsked = %v; want nil", err)
				}
				return
			}
			if e := wantError(t, err, tt.code); e.JobID != "job_1" || e.Reason != tt.reason {
				t.Errorf("the refusal names job %q, reason %q; want job_1, %q", e.JobID, e.Reason, tt.reason)
			}
		})
	}
}

func TestARefusalForDoubtSaysWhichAttemptAndSinceWhen(t *testing.T) {
	t.Parallel()
	job := &onejob.Job{
		ID: "job_1", State: onejob.JobBlocked, Attempts: tries(held("acme", onejob.AttemptUnknown)),
		Blocked: &onejob.Blocked{Reason: onejob.BlockAttemptUnknown, AttemptID: "att_1", Since: noon},
	}
	e := wantError(t, onejob.CheckAsked(job, onejob.Decision{Verb: onejob.Block}), onejob.CodeAttemptUnresolved)
	const want = "attempt 1 at acme is unknown since 2026-07-01T12:00:00Z; a second one could have its effect twice"
	if e.AttemptID != "att_1" || e.Message != want {
		t.Errorf("%s: %q; want att_1: %q", e.AttemptID, e.Message, want)
	}
}

func TestANewAttempt(t *testing.T) {
	t.Parallel()
	job := openJob(t)
	job.ID, job.Part, job.Version, job.AttemptsMade = onejob.NewJobID(7, noon), 7, 3, 1
	d := onejob.Decision{Verb: onejob.Start, Target: "b", Lane: 1, Verdict: onejob.Verdict{Allowed: true, CertificateID: "cert_1", WaiverID: "waiver_1"}}
	p := onejob.StartParams{Worker: "w1", Lease: time.Minute, Targets: map[string]onejob.TargetPins{"b": {Digest: "v1:b"}}}
	got := onejob.NewAttempt(job, nil, d, p, noon)
	want := onejob.Attempt{
		Part: 7, ID: got.ID, JobID: job.ID, Number: 2, Lane: 1, Target: "b", TargetDigest: "v1:b",
		State: onejob.AttemptStarting, ClaimToken: got.ClaimToken, Worker: "w1",
		LeaseExpiresAt: noon.Add(time.Minute), StartedAt: noon, JobVersion: 3, ProviderKey: got.ProviderKey,
		CertificateID: "cert_1", WaiverID: "waiver_1", Phase: onejob.PhaseNotSent,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("NewAttempt (-want +got):\n%s", diff)
	}
	if part, ok := onejob.PartOfID(got.ID); part != 7 || !ok || !strings.HasPrefix(got.ID, "att_") || got.ClaimToken == "" {
		t.Errorf("id %q, token %q; want an attempt's id of part 7 and a token", got.ID, got.ClaimToken)
	}
	if again := onejob.NewAttempt(job, nil, d, p, noon); again.ID == got.ID || again.ClaimToken == got.ClaimToken {
		t.Error("two attempts share an id or a claim token")
	}
}

// The key is the last guard against a sender that wakes up late: it changes only
// when the provider itself closed the books. A retry that minted a new one refunded
// twice (medusajs/medusa#16681), and a fallback that shared one was refused
// (ubicloud/ubicloud#5898).
func TestTheProvidersKeyRotatesOnlyAfterAnExecutedFailure(t *testing.T) {
	t.Parallel()
	keyAfter := func(jobID, target string, attempts ...onejob.Attempt) string {
		job := &onejob.Job{ID: jobID}
		return onejob.NewAttempt(job, attempts, onejob.Decision{Target: target}, onejob.StartParams{}, noon).ProviderKey
	}
	first := keyAfter("job_1", "a")
	if len(first) < 20 || strings.Trim(first, printable) != "" {
		t.Fatalf("provider key %q; want a long printable one", first)
	}
	rotates := []onejob.Outcome{onejob.OutcomeExecutedFailed, onejob.OutcomeContractViolation}
	for _, o := range append(onejob.Outcomes(), "") {
		key := keyAfter("job_1", "a", failedOn("a", o, onejob.NextAgain))
		if want := slices.Contains(rotates, o); (key != first) != want {
			t.Errorf("after %q the key changes: %t; want %t", o, key != first, want)
		}
		if elsewhere := keyAfter("job_1", "a", failedOn("b", o, onejob.NextAgain)); elsewhere != first {
			t.Errorf("after %q at another target the key changes", o)
		}
	}
	x := failedOn("a", onejob.OutcomeExecutedFailed, onejob.NextAgain)
	keys := []string{first, keyAfter("job_1", "a", x), keyAfter("job_1", "a", x, x), keyAfter("job_1", "b"), keyAfter("job_2", "a")}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 5 {
		t.Errorf("keys of different jobs, targets or generations are the same: %v", keys)
	}
}

func TestSourcesOfAgreesWithTheTable(t *testing.T) {
	t.Parallel()
	for _, e := range append(onejob.TableEvents(), "invented") {
		states, ruled := onejob.SourcesOf(e)
		for _, s := range onejob.AttemptStates() {
			_, err := s.Next(e)
			_, errRuled := s.NextRuled(e)
			if got, want := slices.Contains(states, s), err == nil; got != want {
				t.Errorf("SourcesOf(%s) has %s: %t; want %t", e, s, got, want)
			}
			if got, want := slices.Contains(ruled, s), err != nil && errRuled == nil; got != want {
				t.Errorf("SourcesOf(%s) has ruled %s: %t; want %t", e, s, got, want)
			}
		}
	}
}

func TestIncidents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		ruled  bool
		winner string
		want   onejob.EventKind
	}{
		{"LosingADeclaredRaceIsNone", false, "att_2", ""},
		{"ARulingProvenWrongWhileAnotherWon", true, "att_2", onejob.EventDuplicateEffect},
		{"AnEffectAfterTheJobClosed", false, "", onejob.EventLateEffect},
		{"ARulingProvenWrongAfterTheJobClosed", true, "", onejob.EventLateEffect},
	} {
		got := onejob.IncidentOf(tt.ruled, tt.winner)
		if got != tt.want || got.Incident() != (tt.want != "") {
			t.Errorf("%s: %q, incident %t; want %q", tt.name, got, got.Incident(), tt.want)
		}
	}
}
