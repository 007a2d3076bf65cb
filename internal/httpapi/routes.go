package httpapi

import (
	"net/http"
	"strings"

	"github.com/onejob-dev/onejob"
)

// route is one line of the API: where it is, who may use it, what serves it and
// what the document says of it.
type route struct {
	pattern string
	role    onejob.Role // the least that may; empty: anybody, without a credential
	handle  func(http.ResponseWriter, *http.Request) error
	doc     operation
}

func (rt route) method() string {
	method, _, _ := strings.Cut(rt.pattern, " ")
	return method
}

// path is the pattern's, without what only the mux understands.
func (rt route) path() string {
	_, path, _ := strings.Cut(rt.pattern, " ")
	return strings.TrimSuffix(path, "{$}")
}

// isVerb reports whether the pattern ends in {id}:verb, which the mux cannot match.
func (rt route) isVerb() bool { return strings.Contains(rt.pattern, "{id}:") }

// verbs are the routes that end in {id}:verb, by pattern.
type verbs map[string]http.Handler

// find returns the handler of a request to such a route and the id in it, or nil.
func (v verbs) find(r *http.Request) (handler http.Handler, id string) {
	slash := strings.LastIndexByte(r.URL.Path, '/') + 1
	last := r.URL.Path[slash:]
	colon := strings.LastIndexByte(last, ':')
	if colon <= 0 {
		return nil, ""
	}
	return v[r.Method+" "+r.URL.Path[:slash]+"{id}"+last[colon:]], last[:colon]
}

// routes is the whole API.
func (a *api) routes() []route {
	const (
		viewer    = onejob.RoleViewer
		submitter = onejob.RoleSubmitter
		operator  = onejob.RoleOperator
	)
	return []route{
		{"POST /v1/jobs", submitter, a.submitJob, submitJobDoc()},
		{"POST /v1/jobs:batch", submitter, a.submitBatch, submitBatchDoc()},
		{"GET /v1/jobs", viewer, a.listJobs, listJobsDoc()},
		{"GET /v1/jobs/{id}", viewer, a.getJob, getJobDoc()},
		{"GET /v1/jobs/{id}/result", viewer, a.getResult, getResultDoc()},
		{"GET /v1/jobs/{id}/events", viewer, a.watchJob, watchJobDoc()},
		{"GET /v1/jobs/{id}/attempts", viewer, a.listJobAttempts, listJobAttemptsDoc()},
		{"GET /v1/jobs/{id}/deliveries", viewer, a.listJobDeliveries, listJobDeliveriesDoc()},
		{"POST /v1/jobs/{id}/attempts", submitter, a.startAttempt, startAttemptDoc()},
		{"POST /v1/jobs/{id}/cancel", submitter, a.cancelJob, cancelJobDoc()},
		{"POST /v1/jobs/{id}/unblock", operator, a.unblockJob, unblockJobDoc()},

		{"GET /v1/attempts", viewer, a.listAttempts, listAttemptsDoc()},
		{"GET /v1/attempts/{id}", viewer, a.getAttempt, getAttemptDoc()},
		{"POST /v1/attempts:claim", submitter, a.claimAttempts, claimAttemptsDoc()},
		{"POST /v1/attempts/{id}:heartbeat", submitter, a.renewAttempt, renewAttemptDoc()},
		{"POST /v1/attempts/{id}:release", submitter, a.releaseAttempt, releaseAttemptDoc()},
		{"POST /v1/attempts/{id}:finish", submitter, a.finishAttempt, finishAttemptDoc()},
		{"POST /v1/attempts/{id}/resolve", operator, a.resolveAttempt, resolveAttemptDoc()},
		{"POST /v1/attempts/{id}/reconcile", operator, a.reconcileAttempt, reconcileAttemptDoc()},
		{"GET /v1/attempts/{id}/probes", viewer, a.listProbes, listProbesDoc()},
		{"POST /v1/callbacks/{target}/{token}", "", a.receiveCallback, receiveCallbackDoc()},

		{"GET /v1/deliveries", viewer, a.listDeliveries, listDeliveriesDoc()},
		{"GET /v1/deliveries/{id}", viewer, a.getDelivery, getDeliveryDoc()},
		{"POST /v1/deliveries/{id}:resend", submitter, a.resendDelivery, resendDeliveryDoc()},
		{"GET /v1/webhook-endpoints", operator, a.listWebhookEndpoints, listWebhookEndpointsDoc()},
		{"POST /v1/webhook-endpoints/{id}:enable", operator, a.enableWebhookEndpoint, enableWebhookEndpointDoc()},
		{"GET /v1/incidents", viewer, a.listIncidents, listIncidentsDoc()},
		{"GET /v1/incidents/{id}", viewer, a.getIncident, getIncidentDoc()},
		{"POST /v1/incidents/{id}:close", operator, a.closeIncident, closeIncidentDoc()},
		{"GET /v1/audit", operator, a.listAudit, listAuditDoc()},
		{"GET /v1/costs", viewer, a.listCosts, listCostsDoc()},

		{"GET /v1/contracts", viewer, a.listContracts, listContractsDoc()},
		{"GET /v1/contracts/{kind}/matrix", viewer, a.getMatrix, getMatrixDoc()},
		{"GET /v1/contracts/{kind}/can-failover", viewer, a.getFailover, getFailoverDoc()},
		{"POST /v1/contracts/{kind}/verify", operator, a.verifyContract, verifyContractDoc()},
		{"GET /v1/verifications/{id}", viewer, a.getVerification, getVerificationDoc()},
		{"GET /v1/certificates", viewer, a.listCertificates, listCertificatesDoc()},
		{"POST /v1/certificates/{id}/revoke", operator, a.revokeCertificate, revokeCertificateDoc()},
		{"GET /v1/waivers", viewer, a.listWaivers, listWaiversDoc()},
		{"POST /v1/waivers", operator, a.grantWaiver, grantWaiverDoc()},
		{"DELETE /v1/waivers/{id}", operator, a.revokeWaiver, revokeWaiverDoc()},

		{"GET /v1/limits", viewer, a.getLimits, getLimitsDoc()},
		{"GET /openapi.json", viewer, a.getOpenAPI, getOpenAPIDoc()},
		{"GET /docs", viewer, a.getDocs, getDocsDoc()},
		{"GET /{$}", viewer, a.getIndex, getIndexDoc()},
		{"GET /metrics", operator, a.getMetrics, getMetricsDoc()},
		{"GET /healthz", viewer, a.getLive, getHealthDoc()},

		{"GET /livez", "", a.getLive, getLiveDoc()},
		{"GET /readyz", "", a.getReady, getReadyDoc()},
	}
}
