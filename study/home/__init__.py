"""The state of studies: the home folder, and in a study's folder the ledger, its lease and its record."""
