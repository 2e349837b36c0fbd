"""The report of a study: its sentences, its sections and the files that they are written to."""
