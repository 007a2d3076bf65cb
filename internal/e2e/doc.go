// Package e2e holds tests of real processes: nodes that are killed, two nodes on
// one database, a database that goes away. It is a module of its own because they
// take minutes; `make e2e` runs them.
package e2e
