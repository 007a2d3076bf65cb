package postgres

// SQLResultsOfJobs is the statement that reads what jobs came to.
const SQLResultsOfJobs = sqlResultsOfJobs
