package postgres

// SQLMayCostMore is the condition on attempts a that sums are made of.
const SQLMayCostMore = sqlMayCostMore
