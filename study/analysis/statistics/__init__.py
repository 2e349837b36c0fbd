"""Numbers computed from trials: frames, cells, differences, claims and verdicts. Nothing is printed or drawn here."""
