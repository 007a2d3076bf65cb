package contract_test

import (
	"os"
	"testing"

	"github.com/onejob-dev/onejob/contract"
)

func TestAKeptContractComesBackWhole(t *testing.T) {
	t.Parallel()

	const folder = "../examples/triage"
	text, err := os.ReadFile(folder + "/triage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	written, err := contract.Parse("triage.yaml", text, os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := written.Body()
	if err != nil {
		t.Fatal(err)
	}
	read, err := contract.ParseBody(kept)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := contract.Digest(written)
	if got, err := contract.Digest(read); err != nil || got != want {
		t.Errorf("the digest is %s, %v; want %s", got, err, want)
	}
	if len(read.CaseList) != len(written.CaseList) || read.Runtime != written.Runtime || read.Failover != written.Failover {
		t.Errorf("%d cases, %+v, %+v came back", len(read.CaseList), read.Runtime, read.Failover)
	}
	if _, err := contract.Compile(read); err != nil {
		t.Errorf("it does not compile: %v", err)
	}
}

func TestAContractSaysWhatStandsInItsFile(t *testing.T) {
	t.Parallel()

	const folder = "../examples/triage"
	text, err := os.ReadFile(folder + "/triage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Parse("triage.yaml", text, os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	if !c.Says("failover.automatic") || c.Says("render.bos") {
		t.Errorf("failover.automatic is said: %v; render.bos: %v", c.Says("failover.automatic"), c.Says("render.bos"))
	}
}
