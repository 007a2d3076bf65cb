package postgres

// Statements that look for one job among all.
const (
	SQLJobs          = sqlJobs
	SQLResultsOfJobs = sqlResultsOfJobs
	SQLJobsByKey     = sqlJobsByKey
)
