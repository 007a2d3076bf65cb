.DEFAULT_GOAL := help
.PHONY: help build test test-llama race e2e e2e-full test-sdks bench bench-peers bench-gateways bench-growth overload mutate generate check-generate lint check

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

build: ## build bin/onejob
	CGO_ENABLED=0 go build -trimpath -o bin/onejob ./cmd/onejob

test: ## everything that needs nothing but Go, and the PostgreSQL half where it can
	go test ./...
	@if [ -n "$$ONEJOB_TEST_POSTGRES" ] || command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; \
	then echo 'halves that ran: SQLite and PostgreSQL'; \
	else echo 'halves that ran: SQLite only; install PostgreSQL, or set ONEJOB_TEST_POSTGRES, for the other'; fi

test-llama: ## a real llama.cpp, whose answers have the structure and not the meaning: needs Node.js and npm
	ONEJOB_TEST_LLAMA=1 go test -count=1 -v -timeout 5m ./internal/llama

race: ## the same under the race detector, short
	go test -race -short ./...

e2e: ## real processes: kill -9, two nodes, both stores
	cd internal/e2e && go test -count=1 -timeout 20m ./...

e2e-full: ## the same at full size: every pair of crash points, runs of 500 jobs
	cd internal/e2e && ONEJOB_E2E_FULL=1 go test -count=1 -timeout 60m ./...

test-sdks: ## stock client libraries for Go and Node.js against the front doors: needs Node.js, npm and its registry, a minute
	cd internal/e2e && go test -tags sdks -count=1 -v -timeout 10m -run 'TestStock|StockClient' .

bench: ## jobs/s, p50/p99 and CPU a job on both stores, POST beside an echo server, and a minute of overload
	go test -run "^$$" -bench . -benchtime 3s ./internal/bench
	go run ./cmd/onejob bench --dev --mode open --rate 960 --slots 16 --provider-latency 50ms --max-queued 2000 --for 1m

mutate: ## break the guards one by one; a named test must notice each
	go run ./internal/mutate

generate: ## rewrite what is printed from code: OpenAPI, the configuration's schema, states, outcomes, faults
	go test . ./internal/httpapi ./internal/config ./provider/wire ./sim \
	  -run 'TestStateMachineDoc|TestTheCommittedDocumentIsTheServed|TestTheCommittedSchemaIsTheOneOfTheDecoder|TestOutcomesDoc|TestSimDoc' -update

check-generate: generate ## fail if that changes anything
	git diff --exit-code api docs

lint: ## golangci-lint over the three modules: CONTRIBUTING.md says which version
	golangci-lint run
	cd internal/e2e && golangci-lint run -c ../../.golangci.yml
	cd bench && golangci-lint run -c ../.golangci.yml

check: ## what a change must pass
	gofmt -l . | (! grep .)
	go vet ./...
	go test ./...

bench-peers: ## onejob beside raw SQL, River, DBOS, goqite, Asynq and Node.js peers, in turns, medians of three runs, and its goals: under twenty minutes
	cd bench && go run . -contest lives,post,start,stages,batches,nodes,idle,memory -runs 3 -rounds 3 -for 1500ms -idle 15s -overload 30s $(BENCH)

bench-gateways: ## a call through the front door beside a plain proxy, Bifrost, Portkey and GoModel, and one call whose provider is slow: five minutes
	cd bench && go run . -contest gateways,timeouts -rounds 3 -for 3s $(BENCH)

bench-growth: ## a store of ten million jobs beside an empty one, and bytes on disk: long, up to 60 GB of disk
	cd bench && go run . -contest growth,disk -rounds 5 -for 10s -svg ../docs/growth.svg $(BENCH)

overload: ## ten minutes of three times what a provider of 50 ms can do: memory, refusals, p99, lost, executions per intent
	go run ./internal/load -for 10m -times 3 -latency 50ms -slots 16 $(LOAD)
