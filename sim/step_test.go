package sim_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

func TestParseReadsWhatStringWrites(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want sim.Step
		says string
	}{
		{"", sim.Step{}, "ok"},
		{"late=2s", sim.Step{Fault: "late", Delay: 2 * time.Second}, "late=2s"},
		{"late:2s", sim.Step{Fault: "late", Delay: 2 * time.Second}, "late=2s"},
		{"silent", sim.Step{Fault: "silent"}, "silent"},
		{" status = 503 , retry_after=1s, executed", sim.Step{Fault: "status", Status: 503, RetryAfter: time.Second, Executed: true}, "status=503,retry_after=1s,executed"},
		{"status=404,lookup", sim.Step{Fault: "status", Status: 404, Lookup: true}, "status=404,lookup"},
		{"status=429,code=insufficient_quota", sim.Step{Fault: "status", Status: 429, Code: "insufficient_quota"}, "status=429,code=insufficient_quota"},
		{"accepted=2s,ends=failed,deaf", sim.Step{Fault: "accepted", Delay: 2 * time.Second, Ends: sim.EndsFailed, Deaf: true}, "accepted=2s,ends=failed,deaf"},
		{"accepted,ends=completed", sim.Step{Fault: "accepted"}, "accepted"},
		{"huge=64KiB", sim.Step{Fault: "huge", Bytes: 64 << 10}, "huge=65536"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			got, err := sim.Parse(tt.text)
			if err != nil || got != tt.want || got.String() != tt.says {
				t.Errorf("Parse(%q) = %+v (%s), %v; want %+v (%s)", tt.text, got, got, err, tt.want, tt.says)
			}
			if again, err := sim.Parse(tt.says); err != nil || again.String() != tt.says {
				t.Errorf("Parse(%q) = %s, %v; want itself", tt.says, again, err)
			}
		})
	}
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"lat", "late=soon", "late=-1s", "late=0s", "silent=1s", "status=99", "status=600", "status=ok", "huge=-1", "huge=9999999GiB",
		"late=1s,executed=yes", "late=1s,often", "status=503,retry_after", "status=503,retry_after=x",
		"accepted,ends=well", "accepted,ends", "accepted,deaf=yes",
	} {
		if got, err := sim.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %+v; want an error", text, got)
		}
	}
}

func TestAStepIsTextInJSON(t *testing.T) {
	t.Parallel()
	var steps []sim.Step
	const text = `["late=2s","status=503,retry_after=1s"]`
	if err := json.Unmarshal([]byte(text), &steps); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(steps); err != nil || string(got) != text {
		t.Errorf("%s became %s, %v", text, got, err)
	}
	if err := json.Unmarshal([]byte(`["nonsense"]`), &steps); err == nil {
		t.Errorf("nonsense became %v; want an error", steps)
	}
}
