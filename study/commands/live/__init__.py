"""The page of a study while it runs: its figures from the ledger, and what may be asked of its driver."""
