// Package template is what templates of onejob have in common, whoever renders them:
// how they are scanned, how JSON gets into them with its members in order, and the
// bounds on what an input can make them do.
package template
