"""Border crossings: queries and options, the sorted borders that are searched, what a crossing says."""
