package httpapi

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/onejob-dev/onejob"
)

// saysOf is when each webhook is sent.
func saysOf(e onejob.WebhookEvent) string {
	switch e {
	case onejob.WebhookJobSucceeded:
		return "The job has its result"
	case onejob.WebhookJobFailed:
		return "The job failed for good"
	case onejob.WebhookJobCancelled:
		return "The job was given up"
	case onejob.WebhookJobBlocked:
		return "The job waits for evidence, a certificate or a person"
	case onejob.WebhookAttemptUnknown:
		return "Nobody can say whether an attempt had its effect"
	case onejob.WebhookAttemptAsked:
		return "A person is asked what became of an attempt"
	case onejob.WebhookDuplicateEffect:
		return "An attempt that had been ruled otherwise succeeded while another won: it may have happened twice"
	case onejob.WebhookLateEffect:
		return "An attempt succeeded after its job had closed"
	}
	return ""
}

// webhooks describes what endpoints are sent.
func (d documentWriter) webhooks() map[string]*huma.PathItem {
	items := map[string]*huma.PathItem{}
	for _, e := range onejob.WebhookEvents() {
		told := "Only endpoints that ask for it are told."
		if e.Terminal() {
			told = "Every endpoint of the job is told, once a job."
		}
		items[string(e)] = &huma.PathItem{Post: &huma.Operation{
			Summary: saysOf(e), Description: told + " Delivered at least once, under one webhook-id; in no promised order.",
			Parameters:  webhookHeaders(),
			RequestBody: &huma.RequestBody{Required: true, Content: jsonContent("application/json", d.message(e))},
			Responses: map[string]*huma.Response{
				"2XX":     {Description: "It was received"},
				"410":     {Description: "The endpoint is gone: it is disabled, and sent nothing until an operator enables it"},
				"default": {Description: "It is sent again later, Retry-After respected"},
			},
		}}
	}
	return items
}

// webhookHeaders are those of Standard Webhooks.
func webhookHeaders() []*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	return []*huma.Param{
		{Name: "webhook-id", In: "header", Required: true, Description: "The delivery's id, the same with every try: drop what was seen before", Schema: text},
		{Name: "webhook-timestamp", In: "header", Required: true, Description: "Unix seconds of this try", Schema: text},
		{Name: "webhook-signature", In: "header", Required: true, Description: "v1, and the HMAC-SHA256 in base64 of id.timestamp.body; one a secret, parted by spaces", Schema: text},
	}
}

// message is the body of one webhook.
func (d documentWriter) message(e onejob.WebhookEvent) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"type", "timestamp", "data"},
		Properties: map[string]*huma.Schema{
			"type":      {Type: huma.TypeString, Enum: []any{string(e)}},
			"timestamp": {Type: huma.TypeString, Format: "date-time", Description: "When it happened"},
			"data":      d.schema(WebhookJob{}),
		},
	}
}
