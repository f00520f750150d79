"""The public functions, one module an operator: arguments in, a plan or an answer out."""
