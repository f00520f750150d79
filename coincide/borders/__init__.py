"""Border crossings: queries, options, the sorted borders that both backends search, and what a crossing says."""
