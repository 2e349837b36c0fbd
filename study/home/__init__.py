"""Where a study's state lives: the home folder, and in a study's folder the ledger, who holds it and its record."""
