// Package translate lets a target that speaks one of two protocols answer requests of
// the other: OpenAI's chat completions and Anthropic's messages.
//
// What has no place on the other side is refused before anything is sent, by name, so
// that another target may take it. What asks for nothing is left out and told: labels
// and hints, of which the answer does not depend. Nothing else is lost; the tables
// in chat.go and messages.go say what becomes of each member. Answers are translated
// back, and keep the provider's own id and the name of its model. An answer of these two
// protocols, or of OpenAI's responses, that came whole can be told as the stream of it.
package translate
