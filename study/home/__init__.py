"""The place of a study's state: the home folder, and in a study's folder the ledger, who holds it and its record."""
